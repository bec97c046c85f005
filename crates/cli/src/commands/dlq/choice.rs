//! Which letters are meant: by where they lie, or by what is known of them.

use std::collections::BTreeSet;

use clap::Args;
use redrive::Clock;
use redrive_core::Origin;
use redrive_letters::{Index, Query, State, query};

use super::filter::Filter;
use super::place::Reached;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(super) struct Choice {
    /// The letters: topic/partition/offset of the letter topic, as `redrive dlq list` shows them
    #[arg(value_name = "LETTER")]
    ids: Vec<Origin>,
    /// All that match; without anything to match, all there are
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    filter: Filter,
}

impl Choice {
    /// The question, as of now. `states` are asked for where none is named; `is_narrow` says that something else is
    /// asked for, too.
    pub(super) fn query(&self, states: &[State], is_narrow: bool) -> Result<Query, Exit> {
        let now = Clock::system().now().wall;
        let usual = if self.ids.is_empty() { states } else { &[] };
        let asked = self.filter.query(self.ids.clone(), &[], now)?;
        if asked.is_everything() && !self.all && !is_narrow {
            screen::say("error: which letters?\nhelp: name them, say what they have in common, or say --all");
            return Err(Exit::Usage);
        }
        self.filter.query(self.ids.clone(), usual, now)
    }

    /// Says which of the letters that are named are not there; whether all are.
    pub(super) fn are_all_there(&self, reached: &Reached, index: &mut Index) -> Result<bool, Exit> {
        are_all_there(reached, index, &self.ids)
    }

    /// Whether the letters are not named one by one.
    pub(super) fn is_bulk(&self) -> bool {
        self.ids.is_empty()
    }
}

/// As many letters that are not there are named.
const NAMED: usize = 3;

/// Says which of these letters are not there; whether all are.
pub(super) fn are_all_there(reached: &Reached, index: &mut Index, ids: &[Origin]) -> Result<bool, Exit> {
    if ids.is_empty() {
        return Ok(true);
    }
    let query = Query { ids: ids.to_vec(), ..Query::default() };
    let there = index.select(&query).map_err(|error| reached.failed(&error))?;
    let there: BTreeSet<Origin> = there.into_iter().collect();
    let missing: BTreeSet<&Origin> = ids.iter().filter(|id| !there.contains(*id)).collect();
    if missing.is_empty() {
        return Ok(true);
    }
    let named: Vec<String> = missing.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    screen::say(&format!(
        "error: there is no letter {}{more}\nhelp: redrive dlq list --state all shows those that are there; of a topic that is not read, --letters TOPIC",
        named.join(", ")
    ));
    Ok(false)
}

/// The question as the index alone can answer it: a header is looked for in Kafka.
pub(super) async fn answerable(
    reached: &Reached,
    index: &mut Index,
    query: &Query,
    worded: &str,
) -> Result<Query, Exit> {
    let found = query::without_header(index, &reached.settings, query).await;
    found.map_err(|error| reached.failed(&error))?.ok_or_else(|| {
        screen::say(&format!("no letter matches: {worded}"));
        Exit::NothingMatched
    })
}
