//! The offsets of one group: those that count, and those that wait for the end of a transaction.

use std::collections::BTreeMap;

/// A topic and a partition of it.
pub(super) type Place = (String, i32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) metadata: String,
    pub(super) committed_ms: i64,
    /// The order in which commits arrived: of two, the later counts, whenever its transaction ends.
    pub(super) arrival: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) committed: BTreeMap<Place, Committed>,
    /// By producer id: at most one transaction of a producer is open.
    pub(super) pending: BTreeMap<i64, BTreeMap<Place, Committed>>,
}

impl Offsets {
    pub(super) fn commit(&mut self, offsets: Vec<(Place, Committed)>) {
        self.committed.extend(offsets);
    }

    pub(super) fn hold(&mut self, producer_id: i64, offsets: Vec<(Place, Committed)>) {
        self.pending.entry(producer_id).or_default().extend(offsets);
    }

    pub(super) fn complete(&mut self, producer_id: i64, commit: bool) {
        let Some(held) = self.pending.remove(&producer_id) else {
            return;
        };
        if !commit {
            return;
        }
        for (place, offset) in held {
            let newer = self
                .committed
                .get(&place)
                .is_some_and(|known| known.arrival > offset.arrival);
            if !newer {
                self.committed.insert(place, offset);
            }
        }
    }

    /// Whether a transaction that is still open may change this offset.
    pub(super) fn is_unstable(&self, place: &Place) -> bool {
        self.pending.values().any(|held| held.contains_key(place))
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&Place) -> bool) {
        self.committed.retain(|place, _| !gone(place));
        for held in self.pending.values_mut() {
            held.retain(|place, _| !gone(place));
        }
        self.pending.retain(|_, held| !held.is_empty());
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.committed
            .keys()
            .chain(self.pending.values().flat_map(BTreeMap::keys))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }
}
