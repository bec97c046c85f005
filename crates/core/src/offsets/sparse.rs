//! Things by offset, from the lowest on. Offsets arrive in order and leave in about that order, so a
//! queue with holes does what a tree would, for less.

use std::collections::VecDeque;

/// Things by offset.
#[derive(Debug, Clone)]
pub(crate) struct Sparse<T> {
    slots: VecDeque<(i64, Option<T>)>,
    count: usize,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), count: 0 }
    }
}

impl<T> Sparse<T> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Puts in something above all that was put in before.
    pub(crate) fn push(&mut self, offset: i64, thing: T) {
        debug_assert!(self.slots.back().is_none_or(|(last, _)| *last < offset));
        self.slots.push_back((offset, Some(thing)));
        self.count += 1;
    }

    pub(crate) fn get(&self, offset: i64) -> Option<&T> {
        self.slots[self.find(offset)?].1.as_ref()
    }

    pub(crate) fn remove(&mut self, offset: i64) -> Option<T> {
        let slot = self.find(offset)?;
        let removed = self.slots[slot].1.take()?;
        self.count -= 1;
        while self.slots.front().is_some_and(|(_, thing)| thing.is_none()) {
            self.slots.pop_front();
        }
        // One that stays for long must not keep the holes of all that went by.
        if self.slots.len() > 64 && self.count < self.slots.len() / 4 {
            self.slots.retain(|(_, thing)| thing.is_some());
        }
        Some(removed)
    }

    /// The lowest offset.
    pub(crate) fn first(&self) -> Option<i64> {
        // The front is never a hole.
        self.slots.front().map(|(offset, _)| *offset)
    }

    pub(crate) fn offsets(&self) -> impl Iterator<Item = i64> {
        self.slots.iter().filter(|(_, thing)| thing.is_some()).map(|(offset, _)| *offset)
    }

    pub(crate) fn things(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, thing)| thing.as_ref())
    }

    fn find(&self, offset: i64) -> Option<usize> {
        // Without holes in the log the place is known; otherwise it is searched.
        let first = self.slots.front()?.0;
        let guess = usize::try_from(offset.checked_sub(first)?).ok()?;
        match self.slots.get(guess) {
            Some((found, _)) if *found == offset => Some(guess),
            Some(_) | None => self.slots.binary_search_by_key(&offset, |(offset, _)| *offset).ok(),
        }
    }
}
