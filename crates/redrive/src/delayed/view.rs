//! A shelf as it is at a moment: every partition folded to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::shelf::{Entry, Identity, Order, Wait};
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Passage, Picker, Settings, read_through};

use super::Error;
use super::part::Part;
use super::record::{Closure, Delayed};

/// Which records are wanted; the others take 48 bytes each and are not told.
pub type Keep = Arc<dyn Fn(&Wait) -> bool + Send + Sync>;

/// How far the reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Offsets that were read.
    pub read: u64,
    /// Offsets that are to be read.
    pub of: u64,
}

/// How often it is told how far the reading has come, in entries.
const TELL: u64 = 10_000;

/// A shelf as it is at a moment.
pub struct View {
    pub(super) settings: Settings,
    pub(super) shelf: Topic,
    pub(super) partitions: i32,
    pub(super) parts: BTreeMap<i32, Part>,
    pub(super) keep: Keep,
}

impl View {
    /// Reads these partitions of a shelf to their ends, or all if none is named. `progress` is told now and then how far it is.
    pub async fn read(
        settings: &Settings,
        shelf: Topic,
        only: &[i32],
        keep: Keep,
        progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Self, Error> {
        let admin = Admin::new(settings)?;
        let found = admin.outline(std::slice::from_ref(&shelf)).await?;
        let partitions = found.get(&shelf).ok_or_else(|| Error::NoShelf(shelf.clone()))?.partitions;
        if let Some(partition) = only.iter().copied().find(|one| !(0..partitions).contains(one)) {
            return Err(Error::NoPartition { shelf, partitions, partition });
        }
        let wanted = if only.is_empty() { (0..partitions).collect() } else { only.to_vec() };
        let folding = Folding {
            parts: BTreeMap::new(),
            spans: BTreeMap::new(),
            keep: keep.clone(),
            entries: 0,
            bad: None,
            progress: Box::new(progress),
        };
        let folding = read_through(settings, shelf.clone(), wanted, folding, Folding::pass).await?;
        match folding.bad {
            Some(bad) => Err(bad),
            None => Ok(Self { settings: settings.clone(), shelf, partitions, parts: folding.parts, keep }),
        }
    }

    /// The shelf's topic.
    #[must_use]
    pub fn shelf(&self) -> &Topic {
        &self.shelf
    }

    /// Whose shelf it is, if anything in it says so.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.parts.values().find_map(|part| part.shelf.identity())
    }

    /// The waiting records that were wanted: the one that can be handled first first, what is held last.
    #[must_use]
    pub fn records(&self) -> Vec<Delayed> {
        let all = self.parts.iter().flat_map(|(partition, part)| part.records(*partition));
        let mut records: Vec<_> = all.collect();
        let turn = |one: &Delayed| (one.earliest.is_none(), one.earliest);
        records.sort_by(|one, other| turn(one).cmp(&turn(other)).then_with(|| one.origin.cmp(&other.origin)));
        records
    }

    /// How many lanes letters closed; each may be closed by several.
    #[must_use]
    pub fn closed_lanes(&self) -> usize {
        self.parts.values().map(|part| part.shelf.closed_lanes()).sum()
    }

    /// The letters that close lanes.
    #[must_use]
    pub fn closures(&self) -> Vec<Closure> {
        self.parts.iter().flat_map(|(partition, part)| part.closures(*partition)).collect()
    }

    /// What this letter closes, if it does.
    pub(crate) fn closure(&self, letter: &Origin) -> Option<&redrive_core::shelf::Closure> {
        self.parts.get(&letter.partition)?.shelf.closure(letter.offset)
    }

    /// Letters that were sent back and have no answer.
    pub(crate) fn unanswered_replays(&self) -> usize {
        self.parts.values().map(|part| part.shelf.replays.len()).sum()
    }

    /// The orders without an answer, each with its partition, in the order they were given.
    #[must_use]
    pub fn orders(&self) -> Vec<(i32, Order)> {
        let mut orders = Vec::new();
        for (partition, part) in &self.parts {
            let mut own: Vec<_> = part.shelf.orders().collect();
            own.sort_by_key(|(at, _)| *at);
            orders.extend(own.into_iter().map(|(_, order)| (*partition, order.clone())));
        }
        orders
    }

    /// The origins of a record's lane that wait, in order, its own included; none without a lane.
    #[must_use]
    pub fn lane_of(&self, origin: &Origin) -> Vec<i64> {
        self.parts.get(&origin.partition).map_or_else(Vec::new, |part| part.lane_of(origin.offset))
    }

    /// Records of the topic that are no entries of a shelf.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        self.parts.values().map(|part| part.foreign).sum()
    }

    /// A waiting record with its payload; `None` if it does not wait any more. Where only a pointer waits, the
    /// payload is read from the source; it is missing if that is gone.
    pub async fn whole(&self, origin: &Origin) -> Result<Option<Wait>, Error> {
        let part = self.parts.get(&origin.partition);
        let Some(waiting) = part.and_then(|part| part.shelf.waiting.get(origin.offset)) else {
            return Ok(None);
        };
        let picker = Picker::new(&self.settings)?;
        let at = Origin { topic: self.shelf.clone(), partition: origin.partition, offset: waiting.at };
        let picked = picker.pick(at.clone(), at.offset).await?;
        let Some(record) = picked.into_iter().find(|record| record.at == at) else { return Ok(None) };
        let mut wait = match Entry::read(&record) {
            Ok(Entry::Wait(_, wait)) => Arc::unwrap_or_clone(wait),
            Ok(_) => return Ok(None),
            Err(source) => return Err(Error::Entry { at, source }),
        };
        if let Some(original) = wait.trail.pointer.clone() {
            let picked = picker.pick(original.clone(), original.offset).await?;
            if let Some(record) = picked.into_iter().find(|record| record.at == original) {
                wait.record = Arc::new(record);
            }
        }
        Ok(Some(wait))
    }
}

/// The partitions of a shelf on the way to their ends.
struct Folding {
    parts: BTreeMap<i32, Part>,
    /// From where to where each partition goes.
    spans: BTreeMap<i32, (i64, i64)>,
    keep: Keep,
    entries: u64,
    bad: Option<Error>,
    progress: Box<dyn FnMut(Progress) + Send>,
}

impl Folding {
    fn pass(&mut self, passage: Passage) {
        match passage {
            Passage::Begin { partition, from, to } => {
                self.spans.insert(partition, (from, to));
                self.parts.insert(partition, Part::from(from));
            }
            Passage::Record(record) => {
                let part = self.parts.entry(record.at.partition).or_default();
                if let Err(source) = part.read(&record, &self.keep) {
                    self.bad.get_or_insert(Error::Entry { at: record.at, source });
                }
                self.entries += 1;
                if self.entries.is_multiple_of(TELL) {
                    self.tell();
                }
            }
        }
    }

    fn tell(&mut self) {
        let length = |from: i64, to: i64| u64::try_from(to - from).unwrap_or(0);
        let mut progress = Progress::default();
        for (partition, (from, to)) in &self.spans {
            progress.of += length(*from, *to);
            progress.read += self.parts.get(partition).map_or(0, |part| length(*from, part.next));
        }
        (self.progress)(progress);
    }
}
