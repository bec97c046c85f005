//! Which slots stand in which lane, in the order of their origins. Most lanes have a record or two, and
//! a queue for each would cost more than its records: a short lane is just those of the table with its
//! tag, and its order is read from the slots. Only a long one has a queue.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::arena::Arena;
use super::table::Table;
use super::waiting::LaneTag;

/// A lane with more than this is long. From here on a queue's own cost is small beside its records.
const SHORT: usize = 16;

/// The slots of each lane.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    short: Table,
    long: HashMap<LaneTag, VecDeque<u32>>,
}

impl Lanes {
    pub(super) fn first(&self, arena: &Arena, lane: LaneTag) -> Option<u32> {
        match self.long.get(&lane) {
            Some(queue) => queue.front().copied(),
            None => self.short(arena, lane).min_by_key(|id| arena[*id].origin()),
        }
    }

    /// All of the lane, in order.
    pub(super) fn all(&self, arena: &Arena, lane: LaneTag) -> impl Iterator<Item = u32> {
        let queue = self.long.get(&lane);
        let short = if queue.is_none() { self.sorted(arena, lane) } else { Vec::new() };
        short.into_iter().chain(queue.into_iter().flatten().copied())
    }

    /// Adds a slot whose record stands in the lane from now on.
    pub(super) fn add(&mut self, arena: &Arena, lane: LaneTag, id: u32) {
        if let Some(queue) = self.long.get_mut(&lane) {
            let at = place(queue, arena, arena[id].origin());
            return queue.insert(at, id);
        }
        self.short.insert(lane.bits(), id, tags(arena));
        // Few have that many with their home, whatever the lane: for most no slot is read.
        if self.short.like(lane.bits()).count() > SHORT && self.short(arena, lane).count() > SHORT {
            self.lengthen(arena, lane);
        }
    }

    /// Removes a slot of the lane; its record must still be in it.
    pub(super) fn remove(&mut self, arena: &Arena, lane: LaneTag, id: u32) {
        let Some(queue) = self.long.get_mut(&lane) else {
            return self.short.remove(lane.bits(), id, tags(arena));
        };
        queue.remove(place(queue, arena, arena[id].origin()));
        if queue.len() <= SHORT / 2 {
            self.shorten(arena, lane);
        } else if queue.capacity() > 4 * queue.len() {
            queue.shrink_to(2 * queue.len());
        }
    }

    /// A record of the lane has moved from one slot to another; it must be in both.
    pub(super) fn replace(&mut self, arena: &Arena, lane: LaneTag, from: u32, to: u32) {
        match self.long.get_mut(&lane) {
            Some(queue) => {
                let at = place(queue, arena, arena[from].origin());
                queue[at] = to;
            }
            None => self.short.replace(lane.bits(), from, to),
        }
    }

    /// Every record has moved, from slot `id` to slot `moved[id]`.
    pub(super) fn renumber(&mut self, moved: &[u32]) {
        self.short.renumber(moved);
        self.long.values_mut().flatten().for_each(|id| *id = moved[*id as usize]);
    }

    pub(super) fn memory(&self) -> usize {
        let queues = self.long.values().map(VecDeque::capacity).sum::<usize>();
        self.short.memory() + self.long.allocation_size() + queues * size_of::<u32>()
    }

    fn short(&self, arena: &Arena, lane: LaneTag) -> impl Iterator<Item = u32> {
        self.short.like(lane.bits()).filter(move |id| arena[*id].lane() == Some(lane))
    }

    fn sorted(&self, arena: &Arena, lane: LaneTag) -> Vec<u32> {
        let mut ids: Vec<u32> = self.short(arena, lane).collect();
        ids.sort_unstable_by_key(|id| arena[*id].origin());
        ids
    }

    fn lengthen(&mut self, arena: &Arena, lane: LaneTag) {
        let ids = self.sorted(arena, lane);
        ids.iter().for_each(|id| self.short.remove(lane.bits(), *id, tags(arena)));
        let mut queue = VecDeque::with_capacity(SHORT * 3 / 2);
        queue.extend(ids);
        self.long.insert(lane, queue);
    }

    fn shorten(&mut self, arena: &Arena, lane: LaneTag) {
        for id in self.long.remove(&lane).into_iter().flatten() {
            self.short.insert(lane.bits(), id, tags(arena));
        }
        if self.long.capacity() > 4 * self.long.len() + 16 {
            self.long.shrink_to(2 * self.long.len());
        }
    }
}

/// Where the record of `origin` stands in a queue, or would.
fn place(queue: &VecDeque<u32>, arena: &Arena, origin: i64) -> usize {
    // Records come at the end and go at the front: those two are not searched for.
    let before = |id: &u32| arena[*id].origin() < origin;
    match (queue.front(), queue.back()) {
        (Some(front), _) if !before(front) => 0,
        (_, Some(back)) if before(back) => queue.len(),
        (Some(_) | None, Some(_) | None) => queue.partition_point(before),
    }
}

fn tags(arena: &Arena) -> impl Fn(u32) -> u64 {
    |id| arena[id].lane().map_or(0, LaneTag::bits)
}
