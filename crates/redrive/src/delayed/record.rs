//! A waiting record as a person sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use redrive_core::{Class, Origin, Timestamp};

/// A record that waits: everything but its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delayed {
    /// Where it was first consumed.
    pub origin: Origin,
    /// The earliest time it may be handled, if it waits for nothing else.
    pub due: Timestamp,
    /// The earliest time as things stand: not before the one it is behind; unknown while its lane is closed.
    pub earliest: Option<Timestamp>,
    /// Since when it is not handled: its first failure, or when it was set aside behind another.
    pub since: Option<Timestamp>,
    /// Handler calls so far.
    pub attempts: u32,
    /// How often it was sent back.
    pub replays: u32,
    /// The class of the last failure; none if it never reached the handler.
    pub class: Option<Class>,
    /// The type of the last error.
    pub error_type: Option<Arc<str>>,
    /// What it says.
    pub error_message: Option<Arc<str>>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its business key.
    pub lane: Option<Bytes>,
    /// What it waits for beside its time.
    pub standing: Standing,
    /// Whether it was cancelled, and is about to become a dead letter.
    pub cancelled: bool,
    /// Bytes of its entry, about.
    pub size: u32,
    /// The offset of its entry in the shelf partition, which has the number of the source partition.
    pub at: i64,
}

/// What a record waits for beside its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it is first of its lane, or has none.
    First,
    /// An earlier record that waits too: the first of its lane, or the one it named.
    Behind {
        /// The source offset of that one.
        leader: i64,
    },
    /// Somebody who deals with the dead letter that closed its lane.
    Closed {
        /// The source offset of the letter.
        letter: i64,
    },
}

/// A lane that a dead letter closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closure {
    /// The business key.
    pub lane: Bytes,
    /// The origin of the letter.
    pub letter: Origin,
}

/// How much waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// By partition.
    pub by_partition: BTreeMap<i32, u64>,
    /// Those that may be handled now.
    pub due_now: u64,
    /// Those that wait for another record.
    pub behind: u64,
    /// Those whose lane is closed.
    pub held: u64,
    /// Those that are about to become letters.
    pub cancelled: u64,
    /// Bytes of their entries, about.
    pub bytes: u64,
    /// Since when the oldest is not handled.
    pub oldest: Option<Timestamp>,
    /// When the next is due of those that wait for nothing else.
    pub next_due: Option<Timestamp>,
}

impl Counts {
    /// Counts records, some of which are due by `now`.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Delayed>, now: Timestamp) -> Self {
        let mut counts = Self::default();
        for record in records {
            counts.add(record, now);
        }
        counts
    }

    fn add(&mut self, record: &Delayed, now: Timestamp) {
        self.total += 1;
        *self.by_partition.entry(record.origin.partition).or_default() += 1;
        self.bytes += u64::from(record.size);
        self.oldest = self.oldest.into_iter().chain(record.since).min();
        self.cancelled += u64::from(record.cancelled);
        match record.standing {
            Standing::Behind { .. } => self.behind += 1,
            Standing::Closed { .. } => self.held += 1,
            Standing::First if record.cancelled => {}
            Standing::First if record.due <= now => self.due_now += 1,
            Standing::First => self.next_due = self.next_due.into_iter().chain([record.due]).min(),
        }
    }
}
