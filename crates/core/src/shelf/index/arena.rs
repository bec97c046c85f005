//! The slots, by number, in chunks that are never moved: growing costs one chunk and no copy.

use std::ops::{Index, IndexMut};

use super::slot::Slot;
use super::waiting::Waiting;

/// Slots in a chunk: small beside ten thousand records, large beside the pointer to it.
const CHUNK: usize = 128;

/// The end of the list of free slots.
const NONE: i64 = -1;

/// Records by slot number.
#[derive(Debug)]
pub(super) struct Arena {
    #[allow(clippy::vec_box, reason = "one more chunk must not move the others")]
    chunks: Vec<Box<[Slot; CHUNK]>>,
    /// Slots that have been handed out: the ones above have never been.
    used: u32,
    /// The first free slot below `used`; each names the next.
    free: i64,
    live: usize,
}

impl Default for Arena {
    fn default() -> Self {
        Self { chunks: Vec::new(), used: 0, free: NONE, live: 0 }
    }
}

impl Arena {
    /// How many records there are.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn add(&mut self, slot: Slot) -> u32 {
        self.live += 1;
        if let Ok(id) = u32::try_from(self.free) {
            self.free = self[id].origin();
            self[id] = slot;
            return id;
        }
        let id = self.used;
        if id as usize == self.chunks.len() * CHUNK {
            if self.chunks.len() == self.chunks.capacity() {
                self.chunks.reserve_exact(self.chunks.len() / 8 + 8);
            }
            self.chunks.push(Box::new([Slot::vacant(NONE); CHUNK]));
        }
        self.used += 1;
        self[id] = slot;
        id
    }

    /// The record is gone. Its slot stays as it is while the heap has it.
    pub(super) fn retire(&mut self, id: u32) {
        self.live -= 1;
        self[id].set_live(false);
        if !self[id].is_heaped() {
            self.free(id);
        }
    }

    /// The heap has let go of it.
    pub(super) fn unheap(&mut self, id: u32) {
        self[id].set_heaped(false);
        if !self[id].is_live() {
            self.free(id);
        }
    }

    fn free(&mut self, id: u32) {
        self[id] = Slot::vacant(self.free);
        self.free = id.into();
    }

    pub(super) fn is_sparse(&self) -> bool {
        let used = self.used as usize;
        used > 2 * CHUNK && self.live < used / 4
    }

    /// Moves the records together and gives back the chunks behind them. The result is the new number
    /// of each record by its old one. The heap must have nothing but records.
    pub(super) fn compact(&mut self) -> Vec<u32> {
        let mut moved = vec![u32::MAX; self.used as usize];
        let mut next = 0;
        for id in 0..self.used {
            debug_assert!(self[id].is_live() || !self[id].is_heaped());
            if self[id].is_live() {
                self[next] = self[id];
                moved[id as usize] = next;
                next += 1;
            }
        }
        self.used = next;
        self.free = NONE;
        self.chunks.truncate((next as usize).div_ceil(CHUNK));
        self.chunks.shrink_to_fit();
        moved
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Waiting> + '_ {
        (0..self.used).map(|id| &self[id]).filter(|slot| slot.is_live()).map(Slot::waiting)
    }

    pub(super) fn memory(&self) -> usize {
        self.chunks.len() * size_of::<[Slot; CHUNK]>() + self.chunks.capacity() * size_of::<usize>()
    }
}

impl Index<u32> for Arena {
    type Output = Slot;

    fn index(&self, id: u32) -> &Slot {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}

impl IndexMut<u32> for Arena {
    fn index_mut(&mut self, id: u32) -> &mut Slot {
        &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}
