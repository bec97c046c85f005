//! What is wrong now, kept until it is right again.

use std::collections::BTreeMap;

use tracing::{info, warn};

use crate::status::Problem;

/// What a problem is about: one of each kind at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// The connection to Kafka.
    Kafka,
    /// The topics.
    Topics,
    /// A partition whose output waits for its transaction.
    Output(i32),
    /// Commits.
    Commits,
    /// A partition that cannot begin, or was stopped.
    Stopped(i32),
    /// A partition whose letters cannot be written.
    Held(i32),
    /// A partition whose shelf cannot be read or written.
    Shelf(i32),
    /// A partition of which originals cannot be read back.
    Originals(i32),
    /// A partition of which a record does not fit on the shelf.
    Unfit(i32),
    /// A partition with a record on its shelf that is no entry, and cannot be buried.
    Undecodable(i32),
    /// A partition of which as much waits as may.
    Full(i32),
    /// A partition of which a lane was opened although its letters were not all sent back.
    Overdue(i32),
    /// Shelves cannot be cut.
    Growing,
    /// The source cannot be cut, although it is to be.
    Source,
    /// The clock of this machine is wrong, or the broker's.
    Clock,
    /// An outage: of one partition, or of all.
    Blocked(Option<i32>),
    /// Too much is dropped.
    Loss,
}

impl About {
    /// The word for it in health, metrics and events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Topics => "topics",
            Self::Output(_) => "output",
            Self::Commits => "commits",
            Self::Stopped(_) => "stopped",
            Self::Held(_) => "held",
            Self::Shelf(_) => "shelf",
            Self::Full(_) => "full",
            Self::Overdue(_) => "overdue",
            Self::Growing | Self::Source => "growing",
            Self::Clock => "clock",
            Self::Blocked(_) => "blocked",
            Self::Loss => "loss",
            Self::Originals(_) => "originals",
            Self::Unfit(_) => "unfit",
            Self::Undecodable(_) => "undecodable",
        }
    }
}

/// Everything that is wrong.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    now: BTreeMap<About, Problem>,
    /// How often something became wrong or right.
    changes: u64,
}

impl Troubles {
    /// Something is wrong; said once for as long as it stays the same.
    pub(crate) fn raise(&mut self, about: About, what: String, remedy: &str) {
        let partition = match about {
            About::Stopped(partition)
            | About::Held(partition)
            | About::Output(partition)
            | About::Shelf(partition)
            | About::Originals(partition)
            | About::Undecodable(partition)
            | About::Unfit(partition)
            | About::Full(partition)
            | About::Overdue(partition)
            | About::Blocked(Some(partition)) => Some(partition),
            About::Kafka
            | About::Topics
            | About::Commits
            | About::Growing
            | About::Source
            | About::Clock
            | About::Blocked(None)
            | About::Loss => None,
        };
        let problem = Problem { kind: about.name(), partition, what, remedy: remedy.to_owned() };
        if self.now.get(&about) != Some(&problem) {
            warn!(
                partition,
                kind = problem.kind,
                problem = problem.what,
                remedy = problem.remedy,
                "not ready"
            );
            self.now.insert(about, problem);
            self.changes += 1;
        }
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// It is right again.
    pub(crate) fn clear(&mut self, about: About) {
        if self.now.is_empty() {
            return;
        }
        if let Some(problem) = self.now.remove(&about) {
            self.changes += 1;
            info!(partition = problem.partition, kind = problem.kind, problem = problem.what, "ready again");
        }
    }

    /// A partition is no longer ours, nor are its problems.
    pub(crate) fn forget(&mut self, partition: i32) {
        self.now.retain(|_, problem| problem.partition != Some(partition));
        self.changes += 1;
    }

    /// Whether something is wrong with this.
    pub(crate) fn has(&self, about: About) -> bool {
        self.now.contains_key(&about)
    }

    /// How often something became wrong or right.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn list(&self) -> Vec<Problem> {
        self.now.values().cloned().collect()
    }
}
