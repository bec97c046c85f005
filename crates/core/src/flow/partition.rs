//! What the flow knows of one source partition.

use std::collections::VecDeque;

use super::Id;
use crate::lanes::Lanes;
use crate::offsets::Offsets;
use crate::offsets::sparse::Sparse;

/// One source partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) offsets: Offsets,
    pub(super) lanes: Lanes,
    /// Every record in memory, by its offset.
    pub(super) records: Sparse<Id>,
    pub(super) bytes: usize,
    /// With the handler, or with a letter on its way.
    pub(super) active: usize,
    /// Ready, but the partition stands still.
    pub(super) stalled: VecDeque<Id>,
    /// A letter cannot be written.
    pub(super) held: bool,
    /// It is being given up: nothing new starts.
    pub(super) draining: bool,
    /// Whoever acts has no room for what would come of more records.
    pub(super) throttled: bool,
    /// The source was asked not to deliver.
    pub(super) paused: bool,
}

impl Partition {
    pub(super) fn new(offsets: Offsets, lanes: Lanes) -> Self {
        Self {
            offsets,
            lanes,
            records: Sparse::default(),
            bytes: 0,
            active: 0,
            stalled: VecDeque::new(),
            held: false,
            draining: false,
            throttled: false,
            paused: false,
        }
    }
}

/// The partitions by their numbers, which are small.
#[derive(Debug, Default)]
pub(super) struct Partitions(Vec<Option<Box<Partition>>>);

impl Partitions {
    pub(super) fn get(&self, number: i32) -> Option<&Partition> {
        self.0.get(usize::try_from(number).ok()?)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: i32) -> Option<&mut Partition> {
        self.0.get_mut(usize::try_from(number).ok()?)?.as_deref_mut()
    }

    pub(super) fn insert(&mut self, number: i32, partition: Partition) {
        let index = usize::try_from(number).unwrap_or(0);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(Box::new(partition));
    }

    pub(super) fn remove(&mut self, number: i32) -> Option<Partition> {
        self.0.get_mut(usize::try_from(number).ok()?)?.take().map(|partition| *partition)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &Partition)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(number, partition)| Some((i32::try_from(number).ok()?, partition.as_deref()?)))
    }
}
