//! The transactions of a partition: which are open, which were aborted, and so how far a
//! read-committed reader may read. Fed with every batch in order; it never looks at records itself.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::batch::BatchHeader;

/// An aborted transaction: its producer's records between these offsets do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Aborted {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// The offset of the abort marker.
    pub(crate) last_offset: i64,
    /// Where the first transaction began that was open then: none that was aborted later begins before it.
    #[serde(default)]
    pub(crate) stable_offset: i64,
}

/// Open and aborted transactions of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenTransactions {
    open: HashMap<i64, i64>,
    /// In the order of their markers.
    aborted: Vec<Aborted>,
}

impl OpenTransactions {
    /// Takes note of a client's batch: the first transactional one of a producer opens its transaction.
    pub(crate) fn appended(&mut self, header: &BatchHeader) {
        if header.is_transactional() && !header.is_control() {
            self.open.entry(header.producer_id).or_insert(header.base_offset);
        }
    }

    /// Takes note of a marker at `offset`.
    pub(crate) fn ended(&mut self, producer_id: i64, offset: i64, commit: bool) {
        let Some(first_offset) = self.open.remove(&producer_id) else {
            return;
        };
        if !commit {
            let stable_offset = self.first_open().unwrap_or(offset + 1);
            self.aborted.push(Aborted { producer_id, first_offset, last_offset: offset, stable_offset });
        }
    }

    /// Where the first open transaction began.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.open.values().min().copied()
    }

    pub(crate) fn started(&self, producer_id: i64) -> Option<i64> {
        self.open.get(&producer_id).copied()
    }

    /// The aborted transactions that touch the offsets from `from` up to `to` (excluded).
    pub(crate) fn aborted(&self, from: i64, to: i64) -> impl Iterator<Item = &Aborted> {
        let first = self.aborted.partition_point(|aborted| aborted.last_offset < from);
        let mut before = i64::MIN;
        self.aborted[first..]
            .iter()
            .take_while(move |aborted| std::mem::replace(&mut before, aborted.stable_offset) < to)
            .filter(move |aborted| aborted.first_offset < to)
    }

    /// Forgets what lies wholly before `offset`.
    pub(crate) fn forget_before(&mut self, offset: i64) {
        let gone = self.aborted.partition_point(|aborted| aborted.last_offset < offset);
        self.aborted.drain(..gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A naive model: every offset with its producer, and every marker.
    fn reference(steps: &[(i64, u8)]) -> (Option<i64>, Vec<Aborted>) {
        let (mut open, mut aborted) = (Vec::<(i64, i64)>::new(), Vec::new());
        for (offset, (producer, step)) in steps.iter().enumerate() {
            let at = offset as i64;
            let known = open.iter().position(|(p, _)| p == producer);
            match (step % 3, known) {
                (0, None) => open.push((*producer, at)),
                (0, Some(_)) | (_, None) => {}
                (1, Some(i)) => drop(open.remove(i)),
                (_, Some(i)) => {
                    let (producer_id, first_offset) = open.remove(i);
                    let stable_offset = open.iter().map(|(_, first)| *first).min().unwrap_or(at + 1);
                    aborted.push(Aborted { producer_id, first_offset, last_offset: at, stable_offset });
                }
            }
        }
        (open.iter().map(|(_, first)| *first).min(), aborted)
    }

    proptest! {
        #[test]
        fn the_last_stable_offset_and_the_aborted_list_follow_the_log(
            steps in proptest::collection::vec((0..4i64, 0..3u8), 0..60), from in 0..60i64, len in 0..60i64,
        ) {
            let mut seen = OpenTransactions::default();
            for (offset, (producer, step)) in steps.iter().enumerate() {
                let at = offset as i64;
                match step % 3 {
                    0 => drop(seen.open.entry(*producer).or_insert(at)),
                    1 => seen.ended(*producer, at, true),
                    _ => seen.ended(*producer, at, false),
                }
            }
            let (first_open, aborted) = reference(&steps);
            prop_assert_eq!(seen.first_open(), first_open);
            let touching: Vec<_> =
                aborted.into_iter().filter(|a| a.last_offset >= from && a.first_offset < from + len).collect();
            prop_assert_eq!(seen.aborted(from, from + len).copied().collect::<Vec<_>>(), touching);
        }
    }
}
