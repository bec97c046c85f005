//! Records by offset, from the lowest on. They arrive in order and leave in about that order, so a queue
//! with holes does what a tree would, for less.

use std::collections::VecDeque;

use super::Id;

#[derive(Debug, Default)]
pub(super) struct Window {
    slots: VecDeque<(i64, Option<Id>)>,
    count: usize,
}

impl Window {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts in a record above all that were put in before.
    pub(super) fn push(&mut self, offset: i64, id: Id) {
        debug_assert!(self.slots.back().is_none_or(|(last, _)| *last < offset));
        self.slots.push_back((offset, Some(id)));
        self.count += 1;
    }

    pub(super) fn get(&self, offset: i64) -> Option<Id> {
        let slot = self.slots.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        self.slots[slot].1
    }

    pub(super) fn remove(&mut self, offset: i64) {
        let Ok(slot) = self.slots.binary_search_by_key(&offset, |(offset, _)| *offset) else { return };
        self.count -= usize::from(self.slots[slot].1.take().is_some());
        while self.slots.front().is_some_and(|(_, id)| id.is_none()) {
            self.slots.pop_front();
        }
        // One record that stays for long must not keep the holes of all that went by.
        if self.slots.len() > 64 && self.count < self.slots.len() / 4 {
            self.slots.retain(|(_, id)| id.is_some());
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.slots.iter().filter_map(|(_, id)| *id)
    }
}
