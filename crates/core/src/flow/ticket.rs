//! A record on its way through the flow, and the slots that hold all of them.

use std::sync::Arc;

use bytes::Bytes;

use crate::class::Class;
use crate::failure::Failure;
use crate::headers::Trail;
use crate::record::Record;
use crate::route::{History, Reason};
use crate::settings::OrderBy;
use crate::shelf::Done;

/// Names one record in the flow; never given out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    slot: u32,
    turn: u32,
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind others of its lane.
    Queued,
    /// Next as soon as there is room.
    Ready,
    /// With the handler.
    Running,
    /// Waiting for its time.
    Parked,
    /// Failed by an outage, waiting for the gate.
    Blocked,
    /// Its letter is being written.
    Burying,
    /// It is being written to the shelf.
    Shelving,
    /// Its letter is confirmed, and that its lane is closed is being written.
    Closing,
}

/// A record on its way.
#[derive(Debug)]
pub struct Ticket {
    /// The record.
    pub record: Arc<Record>,
    pub(super) lane: Lane,
    /// What went wrong with it so far.
    pub past: Option<Box<Past>>,
    /// Why it is being buried, and because of which earlier record.
    pub burial: Option<Burial>,
    pub(super) place: Place,
    pub(super) bytes: usize,
    /// The number of its last start among all starts.
    pub(super) started: u64,
    /// What names it on the shelf, if it came from there.
    pub(super) shelved: Option<Done>,
    /// What is known of a letter that was sent back to the shelf, and has not failed since.
    pub(super) sent_back: Option<Arc<Trail>>,
}

/// The failures of a record.
#[derive(Debug)]
pub struct Past {
    /// What is known of it, as headers carry it.
    pub trail: Arc<Trail>,
    /// What the next route depends on.
    pub history: History,
    /// The last failure.
    pub failure: Failure,
    /// The class it was given.
    pub class: Class,
    /// The start of the attempt that last met an outage: what started later and succeeds speaks against it.
    pub(super) blocked_at: Option<u64>,
}

/// Why a record becomes a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burial {
    /// Why.
    pub reason: Reason,
    /// The offset of the letter it follows, if it does.
    pub leader: Option<i64>,
}

/// Where the business key of a record is.
#[derive(Debug)]
pub(super) enum Lane {
    None,
    /// In the record: nothing is kept twice.
    Key,
    Own(Bytes),
}

impl Lane {
    pub(super) fn of(order: &OrderBy, record: &Record) -> Self {
        match order {
            OrderBy::Key => Self::Key,
            OrderBy::Header(_) | OrderBy::Json(_) | OrderBy::Partition => {
                order.lane(record).map_or(Self::None, Self::Own)
            }
            OrderBy::None => Self::None,
        }
    }

    pub(super) fn key<'a>(&'a self, record: &'a Record) -> Option<&'a Bytes> {
        match self {
            Self::None => None,
            Self::Key => record.key.as_ref(),
            Self::Own(key) => Some(key),
        }
    }

    /// The key in memory of its own, of a record that is.
    pub(super) fn detached(&self, record: &Record) -> Option<Bytes> {
        match self {
            Self::None => None,
            Self::Key => record.key.clone(),
            Self::Own(key) => Some(Bytes::copy_from_slice(key)),
        }
    }
}

impl Ticket {
    /// Its business key.
    #[must_use]
    pub fn lane(&self) -> Option<&Bytes> {
        self.lane.key(&self.record)
    }

    /// What its next letter or entry says of it if it never failed since it was read or sent back.
    #[must_use]
    pub(crate) fn untried(&self, group: &str) -> Trail {
        match &self.sent_back {
            Some(trail) => Trail::clone(trail),
            None => Trail { lane: self.lane().cloned(), ..Trail::of_replay(&self.record.headers, group) },
        }
    }

    /// The job that sent it back and its number there, if one did: to the shelf, or to its topic for this group.
    pub(super) fn replay(&self, group: &str) -> Option<&str> {
        let trail = self.past.as_ref().map(|past| &past.trail).or(self.sent_back.as_ref());
        if let Some(trail) = trail {
            return trail.replay.as_deref();
        }
        self.record.headers.replay(group)
    }

    /// How often the handler has had it, the running attempt included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        let failed = self.past.as_ref().and_then(|past| past.trail.attempt).unwrap_or(0);
        failed + u32::from(self.place == Place::Running)
    }
}

/// All records in the flow.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    slots: Vec<(u32, Option<Ticket>)>,
    free: Vec<u32>,
}

impl Tickets {
    pub(super) fn insert(&mut self, ticket: Ticket) -> Id {
        if let Some(slot) = self.free.pop() {
            let (turn, place) = &mut self.slots[slot as usize];
            *place = Some(ticket);
            return Id { slot, turn: *turn };
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than four billion records in flight");
        self.slots.push((0, Some(ticket)));
        Id { slot, turn: 0 }
    }

    pub(super) fn get(&self, id: Id) -> Option<&Ticket> {
        let (turn, ticket) = self.slots.get(id.slot as usize)?;
        ticket.as_ref().filter(|_| *turn == id.turn)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.slots.iter().filter_map(|(_, ticket)| ticket.as_ref())
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Ticket> {
        let (turn, ticket) = self.slots.get_mut(id.slot as usize)?;
        ticket.as_mut().filter(|_| *turn == id.turn)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Ticket> {
        let (turn, ticket) = self.slots.get_mut(id.slot as usize)?;
        if *turn != id.turn {
            return None;
        }
        let ticket = ticket.take()?;
        *turn = turn.wrapping_add(1);
        self.free.push(id.slot);
        Some(ticket)
    }
}
