//! What a subscription is doing, and what keeps it from it: for health, metrics and people.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::flow::{ByDue, Counts, Gauges};
use redrive_core::histogram::Histogram;
use redrive_core::route::Reason;
use redrive_core::{Class, Timestamp, Topic};

/// The state of one subscription on this instance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What is consumed.
    pub topic: Topic,
    /// By whom.
    pub group: String,
    /// Whether it runs.
    pub state: State,
    /// Who wants it to start nothing, if somebody does.
    pub paused: Option<Pause>,
    /// Totals since the start.
    pub counts: Counts,
    /// The same by kinds.
    pub tally: Tally,
    /// Letters that could not be written at once.
    pub publish_errors: u64,
    /// Records in memory.
    pub in_memory: usize,
    /// Records with the handler.
    pub running: u32,
    /// The partitions of this instance and the offsets up to which they are complete.
    pub marks: BTreeMap<i32, i64>,
    /// How many records of them are not complete, once that is known.
    pub lag: Option<u64>,
    /// The share that was dropped, in thousandths of a percent.
    pub loss: u32,
    /// What is on the shelves, and how far they are.
    pub shelf: Gauges,
    /// What waits there, by when it is due.
    pub by_due: ByDue,
    /// How long handlers took.
    pub took: Histogram,
    /// How long after their due times records came back from the shelf.
    pub lateness: Histogram,
    /// What is wrong now.
    pub problems: Vec<Problem>,
}

/// Whether a subscription runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is about to.
    Starting,
    /// It does.
    Running,
    /// It could not start, or ended by an error; it is tried again.
    Failed,
    /// It was told to stop, and has.
    Stopped,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// Why a subscription starts nothing for a while, and by whose wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who wants it.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

/// Totals since the start, by kinds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Failures by the class and the type of the error. Types beyond a number of them are `other`.
    pub failures: Vec<Failures>,
    /// Letters that are confirmed, by the reason; in the order of [`Reason::ALL`].
    pub letters: [u64; Reason::ALL.len()],
    /// Records that were dropped, by the reason; in the order of [`Reason::ALL`].
    pub dropped: [u64; Reason::ALL.len()],
    /// Records that were passed over because they are letters already.
    pub skipped: u64,
    /// Entries that were read from shelves.
    pub entries_read: u64,
    /// Lanes that were opened as whoever announced a replay of them was not done in time.
    pub lanes_overdue: u64,
    /// Reports of what became of letters that were sent back, given up.
    pub reports_lost: u64,
}

/// Failures of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// Their class.
    pub class: Class,
    /// The type of the error.
    pub error_type: Arc<str>,
    /// How many.
    pub count: u64,
}

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is, in a word.
    pub kind: &'static str,
    /// Which partition it is about, if it is one.
    pub partition: Option<i32>,
    /// What is wrong.
    pub what: String,
    /// What mends it.
    pub remedy: String,
}

impl Status {
    pub(crate) fn of(topic: Topic, group: String) -> Self {
        Self {
            topic,
            group,
            state: State::Starting,
            paused: None,
            counts: Counts::default(),
            tally: Tally::default(),
            publish_errors: 0,
            in_memory: 0,
            running: 0,
            marks: BTreeMap::new(),
            lag: None,
            loss: 0,
            shelf: Gauges::default(),
            by_due: ByDue::default(),
            took: Histogram::default(),
            lateness: Histogram::default(),
            problems: Vec::new(),
        }
    }

    /// Whether it runs and nothing is wrong. One that is paused is ready: somebody wants it so.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Running && self.problems.is_empty()
    }
}
