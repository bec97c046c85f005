//! Which record may run next. A candidate is at stage Waiting, first of its lane or without one, and
//! not taken since it became that. Every candidate is in the heap; not every member is a candidate.

use super::waiting::{Stage, Waiting};
use super::{Index, Timestamp};

impl Index {
    /// When the earliest candidate is due.
    #[must_use]
    pub fn next_due(&mut self) -> Option<Timestamp> {
        self.top().map(|id| self.arena[id].due())
    }

    /// The candidates, the earliest first.
    pub fn upcoming(&self) -> impl Iterator<Item = Waiting> + '_ {
        let candidates = self.heap.ordered(&self.arena).filter(|id| self.arena[*id].is_candidate());
        candidates.map(|id| self.arena[id].waiting())
    }

    /// Takes the earliest candidate whose due has come, the lowest origin of those due together. It stays
    /// as it is, but is a candidate again only after another stage, [`Self::put`] or [`Self::offer`].
    pub fn pop_due(&mut self, now: Timestamp) -> Option<i64> {
        let id = self.top().filter(|id| self.arena[*id].due() <= now)?;
        self.heap.pop(&self.arena);
        self.arena[id].set_candidate(false);
        self.candidates -= 1;
        self.arena.unheap(id);
        self.tidy();
        Some(self.arena[id].origin())
    }

    /// Makes a record that was taken a candidate again, if it still may be one.
    pub fn offer(&mut self, origin: i64) {
        if let Some(id) = self.find(origin) {
            self.offer_slot(id);
        }
    }

    pub(super) fn offer_slot(&mut self, id: u32) {
        let slot = self.arena[id];
        let may_run = match slot.stage() {
            Stage::Waiting => slot.lane().is_none_or(|lane| self.lanes.first(&self.arena, lane) == Some(id)),
            Stage::Out | Stage::Finished | Stage::Held => false,
        };
        if !may_run || slot.is_candidate() {
            return;
        }
        self.arena[id].set_candidate(true);
        self.candidates += 1;
        if !slot.is_heaped() {
            self.arena[id].set_heaped(true);
            self.heap.push(&self.arena, id);
        }
    }

    pub(super) fn withdraw(&mut self, id: u32) {
        if !self.arena[id].is_candidate() {
            return;
        }
        self.arena[id].set_candidate(false);
        self.candidates -= 1;
        self.tidy();
    }

    /// The earliest candidate, after what is stale above it has gone.
    fn top(&mut self) -> Option<u32> {
        loop {
            let id = self.heap.top()?;
            if self.arena[id].is_candidate() {
                return Some(id);
            }
            self.heap.pop(&self.arena);
            self.arena.unheap(id);
        }
    }

    fn tidy(&mut self) {
        let stale = self.heap.len() - self.candidates;
        // A sweep looks at every member: so many go with it that each pays for a few only.
        if stale > 16 + self.heap.len() / 8 {
            self.heap.sweep(&mut self.arena);
        }
    }
}
