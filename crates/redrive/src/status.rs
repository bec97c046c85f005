//! What a subscription is doing, and what keeps it from it: for health, metrics and people.

use std::collections::BTreeMap;

use redrive_core::Topic;
use redrive_core::flow::Counts;

/// The state of one subscription on this instance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What is consumed.
    pub topic: Topic,
    /// By whom.
    pub group: String,
    /// Totals since the start.
    pub counts: Counts,
    /// Letters that could not be written at once.
    pub publish_errors: u64,
    /// Records in memory.
    pub in_memory: usize,
    /// Records with the handler.
    pub running: u32,
    /// The partitions of this instance and the offsets up to which they are complete.
    pub marks: BTreeMap<i32, i64>,
    /// The share that was dropped, in thousandths of a percent.
    pub loss: u32,
    /// What is wrong now.
    pub problems: Vec<Problem>,
}

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
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
            counts: Counts::default(),
            publish_errors: 0,
            in_memory: 0,
            running: 0,
            marks: BTreeMap::new(),
            loss: 0,
            problems: Vec::new(),
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.problems.is_empty()
    }
}
