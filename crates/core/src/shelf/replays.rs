//! Letters that somebody wants tried again, as the log has them: each an order until it has its outcome.
//!
//! Beside them it is remembered for a while how often records were sent back, so that an order that is there
//! twice is known as such even when the record does not wait any more.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;

use super::entry::Wait;
use super::index::LaneTag;

/// Of how many records it is remembered how often they were sent back.
const REMEMBERED: usize = 10_000;

/// An order to try a letter again that has no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The job and the number of the letter in it.
    pub id: Box<str>,
    /// The source offset.
    pub origin: i64,
    /// How often it was sent back, this time included.
    pub replays: u32,
    /// Its lane.
    pub lane: Option<LaneTag>,
}

/// The orders to try letters again, by where they stand.
#[derive(Debug, Default)]
pub struct Replays {
    orders: BTreeMap<i64, Replay>,
    origins: HashMap<i64, u32>,
    lanes: HashMap<LaneTag, u32>,
    /// How often records were sent back and by which job last, and in which order they came to be known.
    known: HashMap<i64, (u32, Box<str>)>,
    oldest: VecDeque<i64>,
}

impl Replays {
    /// An order was read.
    pub(super) fn ordered(&mut self, at: i64, wait: &Wait, lane: Option<LaneTag>) {
        let done = wait.done();
        let id = wait.trail.replay.as_deref().unwrap_or_default().into();
        let replay = Replay { id, origin: done.origin, replays: done.replay, lane };
        *self.origins.entry(replay.origin).or_default() += 1;
        if let Some(lane) = lane {
            *self.lanes.entry(lane).or_default() += 1;
        }
        self.orders.insert(at, replay);
    }

    /// The order that stands there has its outcome.
    pub(super) fn answered(&mut self, at: i64) {
        let Some(replay) = self.orders.remove(&at) else { return };
        count_down(&mut self.origins, replay.origin);
        if let Some(lane) = replay.lane {
            count_down(&mut self.lanes, lane);
        }
    }

    /// A record waits that was sent back so often.
    pub(super) fn waits(&mut self, origin: i64, wait: &Wait) {
        let replays = wait.done().replay;
        let Some(id) = wait.trail.replay.as_deref().filter(|_| replays > 0) else { return };
        let known = self.known.entry(origin).or_insert_with(|| {
            self.oldest.push_back(origin);
            (0, Box::default())
        });
        if replays > known.0 {
            *known = (replays, id.into());
        }
        if self.oldest.len() > REMEMBERED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether it is remembered that this record was sent back so often, or more.
    #[must_use]
    pub fn is_known(&self, origin: i64, replays: u32) -> bool {
        self.known.get(&origin).is_some_and(|(known, _)| *known >= replays)
    }

    /// The job that sent this record back last, and its number there, if that is remembered.
    #[must_use]
    pub fn last_of(&self, origin: i64) -> Option<&str> {
        self.known.get(&origin).map(|(_, id)| &**id)
    }

    /// The orders, from this place on.
    pub fn from(&self, at: i64) -> impl Iterator<Item = (i64, &Replay)> {
        self.orders.range(at..).map(|(at, replay)| (*at, replay))
    }

    /// The order that stands there.
    #[must_use]
    pub fn get(&self, at: i64) -> Option<&Replay> {
        self.orders.get(&at)
    }

    /// Whether something is ordered about this record.
    #[must_use]
    pub fn is_about(&self, origin: i64) -> bool {
        !self.origins.is_empty() && self.origins.contains_key(&origin)
    }

    /// Whether something is ordered about a record of this lane.
    #[must_use]
    pub fn is_about_lane(&self, lane: LaneTag) -> bool {
        self.lanes.contains_key(&lane)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Where the first one stands.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.orders.first_key_value().map(|(at, _)| *at)
    }
}

fn count_down<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, of: K) {
    if let hashbrown::hash_map::Entry::Occupied(mut count) = counts.entry(of) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}
