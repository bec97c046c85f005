//! I3: the records of one key within a partition are handled in the order of their offsets.
//!
//! A stretch is one reader's time with a partition. Within it a lane goes forward only, one record at a
//! time. A new stretch may begin at an earlier record, but nobody starts a record before those ahead of
//! it in its lane were done at some time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Spot, some};

type Lane = (i32, String);

/// Knows the lanes, and what was started and done in them.
#[derive(Debug, Default)]
pub struct LaneOrder {
    lanes: BTreeMap<Lane, Vec<i64>>,
    done: BTreeSet<Spot>,
    /// By reader: the record of each lane that was started last.
    last: HashMap<(u32, Lane), i64>,
    /// Which of all starts was the last of each record.
    last_starts: HashMap<Spot, usize>,
    starts: usize,
    broken: Vec<String>,
}

impl LaneOrder {
    /// This record of the lane was sent.
    pub fn sent(&mut self, (partition, offset): Spot, key: &str) {
        let lane = self.lanes.entry((partition, key.to_owned())).or_default();
        lane.push(offset);
        lane.sort_unstable();
    }

    /// A reader begins a partition, perhaps again.
    pub fn begins(&mut self, reader: u32, partition: i32) {
        self.last.retain(|(other, lane), _| *other != reader || lane.0 != partition);
    }

    /// A letter of this record is known to be there in the end: in its lane it counts as done as soon as
    /// its handler has failed.
    pub fn done(&mut self, spot: Spot) {
        self.done.insert(spot);
    }

    /// A reader hands a record to the handler, not necessarily for the first time.
    pub fn starts(&mut self, reader: u32, (partition, offset): Spot, key: &str) {
        self.starts += 1;
        self.last_starts.insert((partition, offset), self.starts);
        let lane = (partition, key.to_owned());
        let ahead = self.lanes.get(&lane).into_iter().flatten().take_while(|other| **other < offset);
        let undone: Vec<i64> =
            ahead.copied().filter(|other| !self.done.contains(&(partition, *other))).collect();
        if !undone.is_empty() {
            let what = format!("{partition}/{offset} of {key} was started before {undone:?} were done");
            self.broken.push(what);
        }
        let before = self.last.insert((reader, lane), offset);
        if let Some(before) = before.filter(|before| *before > offset) {
            self.broken
                .push(format!("{partition}/{offset} of {key} was started after {before}, by {reader}"));
        }
    }

    /// Whoever looks at what was done last finds the order too: what is repeated is repeated with all that
    /// came after it in its lane. Not so where one that slept wakes up amid its handlers.
    ///
    /// # Panics
    /// If something was repeated alone.
    pub fn check_repeats(&self) {
        let mut broken = Vec::new();
        for ((partition, key), lane) in &self.lanes {
            let last = lane
                .iter()
                .filter_map(|offset| Some((offset, self.last_starts.get(&(*partition, *offset))?)));
            let last: Vec<_> = last.collect();
            for pair in last.windows(2).filter(|pair| pair[0].1 > pair[1].1) {
                broken.push(format!("{partition}/{} of {key} came again after {}", pair[0].0, pair[1].0));
            }
        }
        assert!(broken.is_empty(), "repeated alone: {}", some(&broken));
    }

    /// # Panics
    /// If the order was broken.
    pub fn check(&self) {
        assert!(self.broken.is_empty(), "out of order: {}", some(&self.broken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> LaneOrder {
        let mut order = LaneOrder::default();
        (0..3).for_each(|offset| order.sent((0, offset), "k"));
        order
    }

    #[test]
    fn retries_and_repeats_in_a_new_stretch_are_in_order() {
        let mut order = lane();
        order.begins(1, 0);
        for offset in [0, 0, 1] {
            order.starts(1, (0, offset), "k");
            order.done((0, offset));
        }
        order.begins(2, 0);
        for offset in 0..3 {
            order.starts(2, (0, offset), "k");
            order.done((0, offset));
        }
        order.check();
    }

    #[test]
    #[should_panic(expected = "0/0 of k came again after 1")]
    fn nothing_is_repeated_alone() {
        let mut order = lane();
        for offset in [0, 1] {
            order.starts(1, (0, offset), "k");
            order.done((0, offset));
        }
        order.begins(2, 0);
        for offset in [0, 2] {
            order.starts(2, (0, offset), "k");
            order.done((0, offset));
        }
        order.check();
        order.check_repeats();
    }

    #[test]
    #[should_panic(expected = "before [1] were done")]
    fn nothing_is_passed_over() {
        let mut order = lane();
        order.starts(1, (0, 0), "k");
        order.done((0, 0));
        order.starts(1, (0, 2), "k");
        order.check();
    }

    #[test]
    #[should_panic(expected = "was started after 1")]
    fn a_stretch_does_not_go_back() {
        let mut order = lane();
        for offset in [0, 1, 0] {
            order.starts(1, (0, offset), "k");
            order.done((0, offset));
        }
        order.check();
    }
}
