//! Which records are meant.

use clap::Args;
use redrive::Timestamp;
use redrive::delayed::{Delayed, Keep};
use redrive_letters::waiting;

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
    fn asked(&self) -> waiting::Filter {
        let (key, lane) = (self.key.clone(), self.lane.clone());
        waiting::Filter { key, lane, due_before: self.due_before, due_after: self.due_after }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked().is_empty()
    }

    pub(super) fn keep(&self) -> Keep {
        self.asked().keep()
    }

    /// Whether this record is meant, now that it is known when it is due.
    pub(super) fn accepts(&self, record: &Delayed, now: Timestamp) -> bool {
        self.asked().accepts(record, now)
    }

    pub(super) fn accepts_lane(&self, lane: &[u8]) -> bool {
        self.asked().accepts_lane(lane)
    }
}
