//! Slots by when they are due, the earliest on top, in four bytes each. A member cannot be found again
//! but from the top, so a slot neither changes its due nor is given away while it is in here; the index
//! sweeps out what has become stale before it is much.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arena::Arena;

/// Four children each: half the levels of two, and a level's slots are fetched from memory at a time.
const CHILDREN: usize = 4;

/// Slots by due, then origin.
#[derive(Debug, Default)]
pub(super) struct Heap {
    ids: Vec<u32>,
}

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn top(&self) -> Option<u32> {
        self.ids.first().copied()
    }

    pub(super) fn push(&mut self, arena: &Arena, id: u32) {
        if self.ids.len() == self.ids.capacity() {
            // By an eighth: doubling would cost four bytes a record.
            self.ids.reserve_exact(self.ids.len() / 8 + 16);
        }
        self.ids.push(id);
        self.rise(arena, self.ids.len() - 1);
    }

    pub(super) fn pop(&mut self, arena: &Arena) -> Option<u32> {
        let last = self.ids.pop()?;
        let top = match self.ids.first_mut() {
            Some(top) => std::mem::replace(top, last),
            None => return Some(last),
        };
        self.sink(arena, 0);
        self.spare();
        Some(top)
    }

    /// The slots by due, then origin, one after the other.
    pub(super) fn ordered<'a>(&'a self, arena: &'a Arena) -> impl Iterator<Item = u32> + 'a {
        let ranked = move |at: usize| self.ids.get(at).map(|id| Reverse((rank(arena, *id), at)));
        let mut next: BinaryHeap<_> = ranked(0).into_iter().collect();
        std::iter::from_fn(move || {
            let Reverse((_, at)) = next.pop()?;
            let first = at * CHILDREN + 1;
            next.extend((first..first + CHILDREN).filter_map(ranked));
            self.ids.get(at).copied()
        })
    }

    /// Keeps the candidates and lets go of the others.
    pub(super) fn sweep(&mut self, arena: &mut Arena) {
        self.ids.retain(|id| {
            let kept = arena[*id].is_candidate();
            if !kept {
                arena.unheap(*id);
            }
            kept
        });
        for at in (0..self.ids.len().div_ceil(CHILDREN)).rev() {
            self.sink(arena, at);
        }
        self.spare();
    }

    /// Every record has moved, from slot `id` to slot `moved[id]`.
    pub(super) fn renumber(&mut self, moved: &[u32]) {
        self.ids.iter_mut().for_each(|id| *id = moved[*id as usize]);
    }

    pub(super) fn memory(&self) -> usize {
        self.ids.capacity() * size_of::<u32>()
    }

    fn spare(&mut self) {
        let len = self.ids.len();
        if self.ids.capacity() > 4 * len + 64 {
            self.ids.shrink_to(len + len / 4 + 16);
        }
    }

    fn rise(&mut self, arena: &Arena, mut at: usize) {
        let id = self.ids[at];
        let rank = rank(arena, id);
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self::rank(arena, self.ids[parent]) <= rank {
                break;
            }
            self.ids[at] = self.ids[parent];
            at = parent;
        }
        self.ids[at] = id;
    }

    fn sink(&mut self, arena: &Arena, mut at: usize) {
        let id = self.ids[at];
        let rank = rank(arena, id);
        loop {
            let first = at * CHILDREN + 1;
            let children = first..self.ids.len().min(first + CHILDREN);
            let ranked = children.map(|child| (self::rank(arena, self.ids[child]), child));
            let Some((_, child)) = ranked.min().filter(|(least, _)| *least < rank) else { break };
            self.ids[at] = self.ids[child];
            at = child;
        }
        self.ids[at] = id;
    }
}

fn rank(arena: &Arena, id: u32) -> (i64, i64) {
    let slot = &arena[id];
    (slot.due().millis(), slot.origin())
}
