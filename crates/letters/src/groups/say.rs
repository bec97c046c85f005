//! What people say of failure groups, for all machines: in the journal first, then in `redrive.state`.

use redrive::{Clock, Settings, pauses};
use redrive_kafka::{Admin, Publisher, Publishing};

use super::Group;
use crate::error::Error;
use crate::jobs::{GroupStanding, GroupState, Key, outgoing};
use crate::journal::{self, Deed};
use crate::{Query, Wish};

/// What somebody says of failure groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What.
    pub wish: Wish,
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

/// Why it was not said.
#[derive(Debug, thiserror::Error)]
pub enum Unsaid {
    /// It is not in the journal.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// It is in the journal, and nowhere else.
    #[error(transparent)]
    State(#[from] Error),
}

/// Writes down what somebody says of these groups.
pub async fn say(settings: &Settings, clock: &Clock, said: &Said, groups: &[Group]) -> Result<(), Unsaid> {
    let at = clock.now().wall.millis();
    let query = Query { failures: groups.iter().map(|group| group.failure).collect(), ..Query::default() };
    let counts = [("groups", groups.len() as u64), ("letters", groups.iter().map(|group| group.count).sum())];
    let deed = Deed {
        who: said.by.clone(),
        at,
        what: format!("group {}", said.wish.name()),
        selection: query.to_string(),
        job: None,
        counts: counts.map(|(name, count)| (name.to_owned(), count)).into(),
        why: said.why.clone(),
    };
    journal::append(settings, deed).await?;
    let state = match said.wish {
        Wish::Open => GroupStanding::Open,
        Wish::Muted => GroupStanding::Muted,
        Wish::Resolved => GroupStanding::Resolved,
    };
    let value = GroupState { state, by: said.by.clone(), at, why: said.why.clone() };
    let written = async {
        pauses::prepare(&Admin::new(settings)?).await?;
        let publisher = Publisher::new(settings, &Publishing::default())?;
        for group in groups {
            publisher.publish(outgoing(&Key::Group(group.failure.to_string()), &value)).await?;
        }
        Ok::<_, redrive_kafka::Error>(())
    };
    written.await.map_err(|error| Unsaid::State(error.into()))
}
