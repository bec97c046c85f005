//! Which records are meant.

use std::sync::Arc;

use clap::Args;
use redrive::Timestamp;
use redrive::delayed::{Delayed, Keep, Wait};

use crate::bytes_text;
use crate::when::When;

#[derive(Args)]
pub(super) struct Filter {
    /// Only records with this key, as text or as 0x and hexadecimal digits
    #[arg(short, long)]
    key: Option<String>,
    /// Only records of this business key
    #[arg(short, long)]
    pub(super) lane: Option<String>,
    /// Only what is due before this time: 2026-11-01T06:00:00Z, 10m from now, -2h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    due_before: Option<When>,
    /// Only what is due at this time or after it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    due_after: Option<When>,
}

impl Filter {
    pub(super) fn is_empty(&self) -> bool {
        let Self { key, lane, due_before, due_after } = self;
        key.is_none() && lane.is_none() && due_before.is_none() && due_after.is_none()
    }

    /// What never changes of a record is looked at while it is read; the rest need not be kept.
    pub(super) fn keep(&self) -> Keep {
        let (key, lane) = (meant(self.key.as_ref()), meant(self.lane.as_ref()));
        Arc::new(move |wait: &Wait| {
            is_meant(key.as_deref(), wait.record.key.as_deref())
                && is_meant(lane.as_deref(), wait.lane().map(AsRef::as_ref))
        })
    }

    /// Whether this record is meant, now that it is known when it is due.
    pub(super) fn accepts(&self, record: &Delayed, now: Timestamp) -> bool {
        let is_due = |is_so: &dyn Fn(Timestamp) -> bool| record.earliest.is_some_and(is_so);
        self.due_before.is_none_or(|time| is_due(&|due| due < time.at(now)))
            && self.due_after.is_none_or(|time| is_due(&|due| due >= time.at(now)))
    }

    pub(super) fn accepts_lane(&self, lane: &[u8]) -> bool {
        is_meant(meant(self.lane.as_ref()).as_deref(), Some(lane))
    }
}

fn meant(name: Option<&String>) -> Option<Vec<Vec<u8>>> {
    name.map(|name| bytes_text::named(name))
}

fn is_meant(meant: Option<&[Vec<u8>]>, found: Option<&[u8]>) -> bool {
    meant.is_none_or(|meant| found.is_some_and(|found| meant.iter().any(|one| one == found)))
}
