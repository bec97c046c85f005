//! Which waiting records are meant, as people write it.

use std::sync::Arc;

use redrive::delayed::{Delayed, Keep, Wait};
use redrive_core::Timestamp;

use crate::When;
use crate::query::named;

/// Which waiting records are meant. What is `None` asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// The key, as text or as `0x` and hexadecimal digits.
    pub key: Option<String>,
    /// The business key, written as a key is.
    pub lane: Option<String>,
    /// Due before this time.
    pub due_before: Option<When>,
    /// Due at this time or after it.
    pub due_after: Option<When>,
}

impl Filter {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What never changes of a record is looked at while it is read; the rest need not be kept.
    #[must_use]
    pub fn keep(&self) -> Keep {
        let (key, lane) = (meant(self.key.as_ref()), meant(self.lane.as_ref()));
        Arc::new(move |wait: &Wait| {
            is_meant(key.as_deref(), wait.record.key.as_deref())
                && is_meant(lane.as_deref(), wait.lane().map(AsRef::as_ref))
        })
    }

    /// Whether this record is meant, now that it is known when it is due.
    #[must_use]
    pub fn accepts(&self, record: &Delayed, now: Timestamp) -> bool {
        let is_due = |is_so: &dyn Fn(Timestamp) -> bool| record.earliest.is_some_and(is_so);
        self.due_before.is_none_or(|time| is_due(&|due| due < time.at(now)))
            && self.due_after.is_none_or(|time| is_due(&|due| due >= time.at(now)))
    }

    /// Whether records of this lane are meant.
    #[must_use]
    pub fn accepts_lane(&self, lane: &[u8]) -> bool {
        is_meant(meant(self.lane.as_ref()).as_deref(), Some(lane))
    }
}

fn meant(name: Option<&String>) -> Option<Vec<Vec<u8>>> {
    name.map(|name| named(name))
}

fn is_meant(meant: Option<&[Vec<u8>]>, found: Option<&[u8]>) -> bool {
    meant.is_none_or(|meant| found.is_some_and(|found| meant.iter().any(|one| one == found)))
}
