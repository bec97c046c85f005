//! Where a record stands: in which slot, and where in its lane.

use super::slot::Slot;
use super::waiting::LaneTag;
use super::{Index, Timestamp};

impl Index {
    /// The lowest origin of this lane that is not finished.
    #[must_use]
    pub fn first_of(&self, lane: LaneTag) -> Option<i64> {
        self.lanes.first(&self.arena, lane).map(|id| self.arena[id].origin())
    }

    /// All origins of the lane that are not finished, in order.
    pub fn of_lane(&self, lane: LaneTag) -> impl Iterator<Item = i64> {
        self.lanes.all(&self.arena, lane).map(|id| self.arena[id].origin())
    }

    pub(super) fn find(&self, origin: i64) -> Option<u32> {
        // Most come in the order of their origins, and a look at a table of millions costs.
        if self.highest.is_none_or(|highest| origin > highest) {
            return None;
        }
        self.origins.like(origin.cast_unsigned()).find(|id| self.arena[*id].origin() == origin)
    }

    /// A record that was not there.
    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        let id = self.arena.add(slot);
        let arena = &self.arena;
        self.origins.insert(slot.origin().cast_unsigned(), id, |id| arena[id].origin().cast_unsigned());
        self.link(id);
        id
    }

    /// Another state of the record in slot `id`, which is no candidate after that. Returns its slot.
    pub(super) fn replace(&mut self, id: u32, slot: Slot) -> u32 {
        self.withdraw(id);
        let id = self.set_due_of(id, slot.due());
        let old = self.arena[id];
        let moves = old.place() != slot.place();
        if moves {
            self.unlink(id);
        }
        self.arena[id] = slot;
        self.arena[id].set_candidate(false);
        self.arena[id].set_heaped(old.is_heaped());
        if moves {
            self.link(id);
        }
        id
    }

    /// It leaves its lane; the next one is first then, if it was.
    pub(super) fn unlink(&mut self, id: u32) {
        let Some(lane) = self.arena[id].place() else { return };
        let was_first = self.lanes.first(&self.arena, lane) == Some(id);
        self.lanes.remove(&self.arena, lane, id);
        let next = self.lanes.first(&self.arena, lane);
        if let Some(next) = next.filter(|_| was_first) {
            self.offer_slot(next);
        }
    }

    /// Moves the records together, after most have gone.
    pub(super) fn compact(&mut self) {
        self.heap.sweep(&mut self.arena);
        let moved = self.arena.compact();
        self.origins.renumber(&moved);
        self.lanes.renumber(&moved);
        self.heap.renumber(&moved);
    }

    /// It enters its lane; one that was first and is not any more is no candidate either.
    fn link(&mut self, id: u32) {
        let Some(lane) = self.arena[id].place() else { return };
        let first = self.lanes.first(&self.arena, lane);
        self.lanes.add(&self.arena, lane, id);
        if let Some(first) = first.filter(|first| self.arena[id].origin() < self.arena[*first].origin()) {
            self.withdraw(first);
        }
    }

    /// The heap cannot find a member to move it. So one that is due at another time moves out into
    /// another slot, and the heap keeps the old one, without a record, until it comes up or is swept.
    fn set_due_of(&mut self, id: u32, due: Timestamp) -> u32 {
        let mut slot = self.arena[id];
        if slot.due() == due || !slot.is_heaped() {
            self.arena[id].set_due(due);
            return id;
        }
        slot.set_due(due);
        slot.set_heaped(false);
        let to = self.arena.add(slot);
        self.origins.replace(slot.origin().cast_unsigned(), id, to);
        if let Some(lane) = slot.place() {
            self.lanes.replace(&self.arena, lane, id, to);
        }
        self.arena.retire(id);
        to
    }
}
