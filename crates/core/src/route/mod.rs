//! What becomes of a failed record: class, history and time in, one [`Route`] out.
//!
//! Total: every class in every situation has an answer. What is done about it happens elsewhere.

mod history;
mod strategy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;
use std::time::Duration;

pub use history::{BadRetries, History, Retries};
pub use strategy::{BadStrategy, Strategy};

use crate::class::Class;
use crate::classify::{Classifier, Subject};
use crate::failure::Failure;
use crate::policy::{Next, Policy};
use crate::seed::Seed;
use crate::time::Timestamp;
use crate::topic::Topic;

/// What becomes of a failed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Try again in place, in memory.
    Again {
        /// How long to wait first.
        after: Duration,
    },
    /// The partition or the whole subscription waits.
    Block {
        /// When to try again.
        until: Timestamp,
    },
    /// The record waits aside, its neighbours go on.
    Shelve {
        /// The earliest time it may be handled.
        due: Timestamp,
    },
    /// The record goes to another topic and waits there.
    Forward {
        /// Which one.
        topic: Topic,
        /// The earliest time it may be handled.
        due: Timestamp,
    },
    /// The record becomes a dead letter.
    Bury(Reason),
    /// The record is given up, by a rule that says so.
    Drop(Reason),
}

/// Why a record was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No further try will help.
    Permanent,
    /// The tries are used up.
    Exhausted,
    /// The policy lasts no longer, or there is no original any more that could be tried.
    Expired,
    /// The bytes are not what the handler reads.
    Undecodable,
    /// An earlier record of its lane is a letter.
    Follower,
    /// It was not accepted: a bad signature, say.
    Rejected,
    /// A person gave it up.
    Cancelled,
}

/// What follows when the tries of a class are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Exhausted {
    /// A dead letter.
    #[default]
    Bury,
    /// The record waits aside, by the policy of `not-ready`.
    Shelve,
    /// The flow waits, by the policy of `outage`.
    Block,
    /// Nothing: the record is skipped and counted.
    Drop,
}

/// One value for each class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerClass<T>([T; 4]);

/// Everything that decides about the failures of one subscription.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Which class a failure has.
    pub classifier: Classifier,
    /// When each class is tried again.
    pub policies: PerClass<Policy>,
    /// What follows when its tries are used up.
    pub exhausted: PerClass<Exhausted>,
    /// Where records wait that are set aside.
    pub strategy: Strategy,
}

/// The longest wait that a failure may ask for: whatever it says, somebody looks again.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3_600);
/// The same for an outage, which stops everybody.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

impl Rules {
    /// The class of a failure and the policy that goes with it.
    #[must_use]
    pub fn classify(&self, failure: &Failure, subject: Subject<'_>) -> (Class, &Policy) {
        let (class, _) = self.classifier.classify(failure, subject);
        (class, &self.policies[class])
    }

    /// What becomes of a record that has just failed with this class, `history` being all before it.
    /// `asked` is the wait that the failure asked for.
    #[must_use]
    pub fn route(&self, class: Class, asked: Option<Duration>, history: &History, now: Timestamp) -> Route {
        let elapsed = now.since(history.first_failed_at.unwrap_or(now));
        let mut stage = class;
        let mut reason = Reason::Exhausted;
        // Used-up tries lead from class to class, and a circle leads nowhere: each is asked once.
        for _ in Class::ALL {
            let retry = history.retries.next(stage);
            let asked = asked.map(|wait| match stage {
                Class::NotReady => self.strategy.rounded(wait.min(LONGEST_WAIT)),
                Class::Permanent | Class::Transient => wait.min(LONGEST_WAIT),
                Class::Outage => wait.min(LONGEST_PAUSE),
            });
            match self.policies[stage].next(retry, elapsed, asked, Seed::of(&history.origin)) {
                Next::After(wait) => return self.wait(stage, wait, now),
                Next::UsedUp if stage == Class::Permanent => reason = Reason::Permanent,
                Next::UsedUp => reason = Reason::Exhausted,
                Next::Expired => reason = Reason::Expired,
            }
            stage = match self.exhausted[stage] {
                Exhausted::Bury => return Route::Bury(reason),
                Exhausted::Drop => return Route::Drop(reason),
                Exhausted::Shelve => Class::NotReady,
                Exhausted::Block => Class::Outage,
            };
        }
        Route::Bury(reason)
    }

    fn wait(&self, stage: Class, wait: Duration, now: Timestamp) -> Route {
        match stage {
            // A permanent failure has no policy of its own; if someone gives it one, it is tried in place.
            Class::Permanent | Class::Transient => Route::Again { after: wait },
            Class::Outage => Route::Block { until: now.plus(wait) },
            Class::NotReady => self.strategy.set_aside(wait, now),
        }
    }
}

impl Route {
    /// The word for it in events and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Again { .. } => "again",
            Self::Block { .. } => "block",
            Self::Shelve { .. } => "shelve",
            Self::Forward { .. } => "forward",
            Self::Bury(_) => "bury",
            Self::Drop(_) => "drop",
        }
    }
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Permanent,
        Self::Exhausted,
        Self::Expired,
        Self::Undecodable,
        Self::Follower,
        Self::Rejected,
        Self::Cancelled,
    ];

    /// The word for it in headers and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Undecodable => "undecodable",
            Self::Follower => "follower",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.name() == text)
            .ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

/// A word that is no reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reason for a dead letter")]
pub struct UnknownReason(String);

impl<T> PerClass<T> {
    /// A value for each class, made by `value`.
    pub fn from_fn(value: impl FnMut(Class) -> T) -> Self {
        Self(Class::ALL.map(value))
    }
}

impl<T> Index<Class> for PerClass<T> {
    type Output = T;

    fn index(&self, class: Class) -> &T {
        &self.0[class as usize]
    }
}

impl<T> IndexMut<Class> for PerClass<T> {
    fn index_mut(&mut self, class: Class) -> &mut T {
        &mut self.0[class as usize]
    }
}
