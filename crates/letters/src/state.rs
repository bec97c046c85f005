//! What became of letters and failure groups, as the topic `redrive.state` tells it. The index keeps it beside each
//! letter; who folds that topic hands it over with [`Index::set_states`](crate::Index::set_states).

use std::fmt;
use std::str::FromStr;

use redrive_core::{Origin, Timestamp};

use crate::Fingerprint;

/// What is the matter with a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Nobody dealt with it.
    Open,
    /// A job is about to send it back.
    Replaying,
    /// It was sent back.
    Replayed,
    /// Somebody said that it needs nothing more.
    Resolved,
    /// It was deleted, and Kafka has yet to do so.
    Purged,
    /// It was erased, or lies elsewhere now: the index knows nothing of it, and takes nothing in.
    Erased,
}

impl State {
    /// Every state that a letter of the index can have.
    pub const ALL: [Self; 5] = [Self::Open, Self::Replaying, Self::Replayed, Self::Resolved, Self::Purged];

    /// As it is named everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Replaying => "replaying",
            Self::Replayed => "replayed",
            Self::Resolved => "resolved",
            Self::Purged => "purged",
            Self::Erased => "erased",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state; there are open, replaying, replayed, resolved, purged")]
pub struct UnknownState(pub String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// What became of a record that was sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its handler took it.
    Handled,
    /// It waits again.
    Waiting,
    /// It is a letter again.
    Buried,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Handled, Self::Waiting, Self::Buried];

    /// As it is named everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Waiting => "waiting",
            Self::Buried => "buried",
        }
    }
}

/// What is said of one letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterState {
    /// Which.
    pub letter: Origin,
    /// What is the matter with it.
    pub state: State,
    /// The job that has to do with it.
    pub job: Option<String>,
    /// What became of it, if it was sent back.
    pub outcome: Option<Outcome>,
    /// Since when.
    pub at: Option<Timestamp>,
}

/// What somebody said of a failure group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupWish {
    /// Which.
    pub failure: Fingerprint,
    /// What.
    pub wish: Wish,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: Option<String>,
}

/// What can be said of a failure group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wish {
    /// Nothing any more.
    Open,
    /// It is known, and nobody wants to hear of it.
    Muted,
    /// Its cause is gone.
    Resolved,
}

impl Wish {
    /// As it is written in `redrive.state`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
        }
    }

    /// What a name means.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Open, Self::Muted, Self::Resolved].into_iter().find(|wish| wish.name() == name)
    }
}
