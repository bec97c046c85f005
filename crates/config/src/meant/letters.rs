//! How dead letters are found, indexed and linked to logs and traces.

use std::path::PathBuf;

use super::Property;
use crate::problem::Problem;
use crate::typed::{self, At};

/// How dead letters are found and indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Letters {
    /// The folder of the index, if it is not the usual one.
    pub state: Option<PathBuf>,
    /// Expressions that the names of letter topics match, if they are not the usual ones.
    pub topics: Option<Vec<String>>,
    /// Addresses of logs and traces.
    pub links: Vec<Link>,
    /// A letter that was sent back so often is left out of replays, if it is not the usual number.
    pub max_replays: Option<u32>,
}

/// An address with places for what a letter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What it leads to.
    pub name: String,
    /// The address.
    pub template: String,
}

impl Link {
    /// What may stand in braces; a header is `header:NAME`.
    pub const PLACES: &[&str] =
        &["topic", "partition", "offset", "group", "key", "service", "instance", "handler", "time", "error"];
}

impl Letters {
    pub(super) fn from_typed(typed: Option<&typed::Letters>, problems: &mut Vec<Problem>) -> Self {
        let Some(typed) = typed else { return Self::default() };
        let links = typed.links.iter().flat_map(|named| &named.value.0);
        for link in links.clone() {
            check(link, problems);
        }
        Self {
            state: typed.state.as_ref().map(|state| PathBuf::from(&state.value.0)),
            topics: typed
                .topics
                .as_ref()
                .map(|topics| topics.value.iter().map(|pattern| pattern.value.as_str().to_owned()).collect()),
            links: links
                .map(|link| Link { name: link.value.name.clone(), template: link.value.value.clone() })
                .collect(),
            max_replays: typed.max_replays.as_ref().map(|count| count.value.0.get()),
        }
    }
}

fn check(link: &At<Property>, problems: &mut Vec<Problem>) {
    for part in link.value.value.split('{').skip(1) {
        let Some((place, _)) = part.split_once('}') else {
            let problem = Problem::error(link.span.clone(), "a brace is not closed");
            problems.push(problem.help("write {service}, for example"));
            continue;
        };
        if !Link::PLACES.contains(&place) && !place.starts_with("header:") {
            let message = format!("a letter has no {{{place}}}");
            let problem = Problem::error(link.span.clone(), message);
            problems.push(
                problem.help(format!("there are {{{}}} and {{header:NAME}}", Link::PLACES.join("}, {"))),
            );
        }
    }
}
