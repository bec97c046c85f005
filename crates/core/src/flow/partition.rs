//! What the flow knows of one source partition.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};

use super::Id;
use super::replaying::Replaying;
use super::reporting::End;
use crate::lanes::{Ahead, Lanes, Shelved};
use crate::offsets::Offsets;
use crate::offsets::sparse::Sparse;
use crate::shelf::{LaneTag, Owner, Stage, Wait};

/// One source partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) offsets: Offsets,
    pub(super) lanes: Lanes,
    /// The records in memory that came from the source, by offset.
    pub(super) records: Sparse<Id>,
    /// The records in memory that came back from the shelf, by offset.
    pub(super) returned: HashMap<i64, Id>,
    pub(super) bytes: usize,
    /// With the handler, or with a letter or an entry on its way.
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
    /// Its shelf, where there is one.
    pub(super) aside: Option<Aside>,
    /// Letters that were sent back and are over, until the log says so.
    pub(super) ends: Vec<End>,
}

/// The shelf of a partition, and what of it is on its way.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) owner: Owner,
    /// Due, but the reader has not passed them.
    pub(super) unpassed: BTreeSet<i64>,
    /// Due, but the record they named is not complete: by that record.
    pub(super) dependents: HashMap<i64, Vec<i64>>,
    /// Being read back, by where they stand.
    pub(super) fetching: HashMap<i64, i64>,
    /// Pointers whose originals are being read back, by origin.
    pub(super) recalling: HashMap<i64, Arc<Wait>>,
    /// When pointers to old originals were last looked for.
    pub(super) looked: Option<Duration>,
    /// A record of the log that is no entry, and whose letter is being written.
    pub(super) burying: Option<i64>,
    /// Too large for the shelf: pointers that stay pointers.
    pub(super) unfit: HashSet<i64>,
    /// Sent back as their lane is closed, or the one before them is on its way to the shelf: by lane.
    held: HashMap<LaneTag, BTreeSet<i64>>,
    pub(super) carry: Option<Carry>,
    /// The limit on what may wait was told as reached.
    pub(super) is_full: bool,
    /// A cut that was asked for and not answered.
    pub(super) cutting: bool,
    /// Letters that are sent back.
    pub(super) replaying: Replaying,
}

/// What is carried to the end of the log.
#[derive(Debug)]
pub(super) struct Carry {
    pub(super) what: Carried,
    pub(super) queue: VecDeque<i64>,
    /// Being read back for it, by where they stand.
    pub(super) fetching: HashMap<i64, i64>,
    /// Pointers whose originals are being read back for it, by origin.
    pub(super) recalling: HashMap<i64, Arc<Wait>>,
    pub(super) on_the_way: HashSet<i64>,
}

/// What of the shelf is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// What stands below this in the log.
    Below(i64),
    /// Pointers to originals that are gone soon, with these.
    Expiring,
}

impl Carry {
    pub(super) fn of(what: Carried, origins: impl IntoIterator<Item = i64>) -> Self {
        Self {
            what,
            queue: origins.into_iter().collect(),
            fetching: HashMap::new(),
            recalling: HashMap::new(),
            on_the_way: HashSet::new(),
        }
    }

    /// How many are being read or written.
    pub(super) fn under_way(&self) -> usize {
        self.fetching.len() + self.recalling.len() + self.on_the_way.len()
    }
}

impl Partition {
    pub(super) fn new(offsets: Offsets, lanes: Lanes) -> Self {
        Self {
            offsets,
            lanes,
            records: Sparse::default(),
            returned: HashMap::new(),
            bytes: 0,
            active: 0,
            stalled: VecDeque::new(),
            held: false,
            draining: false,
            throttled: false,
            paused: false,
            aside: None,
            ends: Vec::new(),
        }
    }

    /// Whether somebody waits for the records of this lane to leave memory, so that its letters can be sent back.
    pub(super) fn is_announcing(&self, lane: Option<&Bytes>) -> bool {
        let announcing = self.aside.as_ref().map(|aside| &aside.replaying.announcing);
        announcing
            .filter(|lanes| !lanes.is_empty())
            .zip(lane)
            .is_some_and(|(lanes, lane)| lanes.contains_key(lane))
    }

    /// The record of this offset that is in memory.
    pub(super) fn find(&self, offset: i64) -> Option<Id> {
        self.records.get(offset).or_else(|| self.returned.get(&offset)).copied()
    }

    pub(super) fn in_memory(&self) -> usize {
        self.records.len() + self.returned.len()
    }

    /// All records in memory.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.records.things().chain(self.returned.values()).copied()
    }

    /// Whether the source has begun.
    pub(super) fn has_started(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| aside.owner.has_started())
    }
}

impl Aside {
    pub(super) fn new(owner: Owner) -> Self {
        Self {
            owner,
            unpassed: BTreeSet::new(),
            dependents: HashMap::new(),
            fetching: HashMap::new(),
            recalling: HashMap::new(),
            looked: None,
            burying: None,
            unfit: HashSet::new(),
            held: HashMap::new(),
            carry: None,
            is_full: false,
            cutting: false,
            replaying: Replaying::default(),
        }
    }

    /// A record that came back too early stays on the shelf.
    pub(super) fn hold_back(&mut self, origin: i64, lane: &[u8]) {
        let shelf = &mut self.owner.shelf;
        let tag = shelf.tag(lane);
        if shelf.waiting.first_of(tag).is_some_and(|first| first < origin) {
            // Its turn comes when that one is complete.
            shelf.waiting.set_stage(origin, Stage::Waiting);
            return;
        }
        shelf.waiting.set_stage(origin, Stage::Held);
        self.held.entry(tag).or_default().insert(origin);
    }

    /// What was held in this lane may be looked at again.
    pub(super) fn let_go(&mut self, lane: &[u8]) {
        let shelf = &mut self.owner.shelf;
        for origin in self.held.remove(&shelf.tag(lane)).unwrap_or_default() {
            if shelf.waiting.get(origin).is_some_and(|waiting| waiting.stage == Stage::Held) {
                shelf.waiting.set_stage(origin, Stage::Waiting);
            }
        }
    }

    /// What was bound by something that was dropped may be released again.
    pub(super) fn set_free(&mut self) {
        for origin in self.owner.take_unbound() {
            self.owner.shelf.waiting.offer(origin);
            if let Some(carry) = &mut self.carry {
                carry.on_the_way.remove(&origin);
            }
        }
    }
}

impl Shelved for Option<Aside> {
    fn of(&self, lane: &Bytes) -> Option<Ahead> {
        let shelf = &self.as_ref()?.owner.shelf;
        if shelf.waiting.is_empty() {
            return None;
        }
        let tag = shelf.tag(lane);
        let mut lane = shelf.waiting.of_lane(tag);
        let first = lane.next()?;
        let is_out = || shelf.waiting.get(first).is_some_and(|waiting| waiting.stage == Stage::Out);
        Some(Ahead { first, is_out: lane.next().is_none() && is_out() })
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

    pub(super) fn aside(&mut self, number: i32) -> Option<&mut Aside> {
        self.get_mut(number)?.aside.as_mut()
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
