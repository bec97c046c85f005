//! The records of one shelf partition that wait, as little of them as tells what to do next: up to
//! millions, in at most 48 bytes each.
//!
//! What comes in: records, their stages, the time. What goes out: the origins of those that may run,
//! the earliest first. It never lets one run before another of its lane with a lower origin.

mod arena;
mod candidates;
mod heap;
mod lanes;
mod places;
mod shard;
mod slot;
mod table;
#[cfg(test)]
mod tests;
mod waiting;

pub use waiting::{LaneTag, Stage, Waiting};

use crate::time::Timestamp;
use arena::Arena;
use heap::Heap;
use lanes::Lanes;
use slot::Slot;
use table::Table;

/// The waiting records of one shelf partition, by origin, by lane and by due.
#[derive(Debug, Default)]
pub struct Index {
    arena: Arena,
    origins: Table,
    lanes: Lanes,
    /// Every candidate, and a few that were.
    heap: Heap,
    candidates: usize,
    bytes: u64,
    highest: Option<i64>,
}

impl Index {
    /// An index without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record, or replaces the one of this origin. At [`Stage::Waiting`] and first of its lane,
    /// or without one, it becomes a candidate for release.
    ///
    /// # Panics
    /// If the origin is beyond 2^47.
    pub fn put(&mut self, waiting: Waiting) {
        let slot = Slot::of(&waiting);
        self.bytes += u64::from(slot.size());
        let id = match self.find(waiting.origin) {
            Some(id) => {
                self.bytes -= u64::from(self.arena[id].size());
                self.replace(id, slot)
            }
            None => self.insert(slot),
        };
        self.highest = self.highest.max(Some(waiting.origin));
        self.offer_slot(id);
    }

    /// The record of this origin.
    #[must_use]
    pub fn get(&self, origin: i64) -> Option<Waiting> {
        self.find(origin).map(|id| self.arena[id].waiting())
    }

    /// Whether there is a record of this origin.
    #[must_use]
    pub fn contains(&self, origin: i64) -> bool {
        self.find(origin).is_some()
    }

    /// Takes the record of this origin out. The next of its lane becomes first.
    pub fn remove(&mut self, origin: i64) -> Option<Waiting> {
        let id = self.find(origin)?;
        let waiting = self.arena[id].waiting();
        self.bytes -= u64::from(waiting.size);
        let arena = &self.arena;
        self.origins.remove(origin.cast_unsigned(), id, |id| arena[id].origin().cast_unsigned());
        self.withdraw(id);
        self.unlink(id);
        self.arena.retire(id);
        if self.is_empty() {
            self.highest = None;
        }
        if self.arena.is_sparse() {
            self.compact();
        }
        Some(waiting)
    }

    /// The record has come to this stage. Finished, it leaves its lane, and the next one becomes first;
    /// back at [`Stage::Waiting`], it is a candidate again if it is first.
    pub fn set_stage(&mut self, origin: i64, stage: Stage) {
        let Some(id) = self.find(origin) else { return };
        let mut slot = self.arena[id];
        if slot.stage() == stage {
            return;
        }
        slot.set_stage(stage);
        let id = self.replace(id, slot);
        self.offer_slot(id);
    }

    /// The record is due at another time.
    pub fn set_due(&mut self, origin: i64, due: Timestamp) {
        let Some(id) = self.find(origin) else { return };
        let mut slot = self.arena[id];
        slot.set_due(due);
        let id = self.replace(id, slot);
        // One that was taken already is not offered again for that.
        if slot.is_candidate() {
            self.offer_slot(id);
        }
    }

    /// The record is not to run any more.
    pub fn set_cancelled(&mut self, origin: i64) {
        if let Some(id) = self.find(origin) {
            self.arena[id].set_cancelled();
        }
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arena.live()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sizes of all records together, as [`Self::get`] tells them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The highest origin there was since the index was last empty: none is higher, and it may be gone.
    #[must_use]
    pub fn highest(&self) -> Option<i64> {
        self.highest
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.arena.iter()
    }

    /// The bytes that all this takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let parts = [self.arena.memory(), self.origins.memory(), self.lanes.memory(), self.heap.memory()];
        size_of::<Self>() + parts.iter().sum::<usize>()
    }
}
