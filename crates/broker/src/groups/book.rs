//! All groups and their journal: an entry is written first and applied after, at start as at work.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::Bytes;
use tracing::warn;

use super::entry::{Entry, Generation};
use super::group::{Group, State};
use crate::journal::Journal;

#[derive(Debug)]
pub(super) struct Book {
    pub(super) groups: BTreeMap<String, Group>,
    journal: Journal,
    compact_above: u64,
    /// The journal's size when only the living was in it.
    live_bytes: u64,
    last_arrival: i64,
}

impl Book {
    pub(super) fn open(dir: Option<&Path>, compact_above: u64) -> io::Result<Self> {
        let path = dir.map(|dir| dir.join("groups.journal"));
        let (journal, entries) = Journal::open(path.as_deref())?;
        let mut book =
            Self { groups: BTreeMap::new(), journal, compact_above, live_bytes: 0, last_arrival: 0 };
        for entry in entries {
            book.apply(Entry::decode(&entry)?);
        }
        book.compact_if_mostly_dead();
        Ok(book)
    }

    /// Forces the journal onto the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }

    /// Written down, then done.
    pub(super) fn write(&mut self, entry: Entry) -> io::Result<()> {
        self.journal.append(&entry.encode())?;
        self.apply(entry);
        self.compact_if_mostly_dead();
        Ok(())
    }

    /// The group as it stands is in the journal before anyone acts on it.
    pub(super) fn write_generation(&mut self, group_id: &str, now_ms: i64) -> io::Result<()> {
        let Some(group) = self.groups.get_mut(group_id) else {
            return Ok(());
        };
        group.empty_since_ms = (group.state == State::Empty).then_some(now_ms);
        self.journal.append(&Entry::Generation(Generation::of(group)).encode())?;
        self.compact_if_mostly_dead();
        Ok(())
    }

    pub(super) fn next_arrival(&mut self) -> i64 {
        self.last_arrival += 1;
        self.last_arrival
    }

    pub(super) fn group(&mut self, id: &str) -> &mut Group {
        self.groups.entry(id.to_owned()).or_insert_with(|| Group::new(id))
    }

    /// A group that was only asked for and never came to be.
    pub(super) fn drop_if_unborn(&mut self, id: &str) {
        if self.groups.get(id).is_some_and(|group| group.generation == 0 && is_forgettable(group)) {
            self.groups.remove(id);
        }
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Generation(generation) => {
                let group = generation.group.clone();
                generation.restore(self.group(&group));
            }
            Entry::Committed { group, offsets } => {
                self.note_arrivals(offsets.iter().map(|(_, offset)| offset.arrival));
                self.group(&group).offsets.commit(offsets);
            }
            Entry::Held { group, producer_id, offsets } => {
                self.note_arrivals(offsets.iter().map(|(_, offset)| offset.arrival));
                self.group(&group).offsets.hold(producer_id, offsets);
            }
            Entry::TransactionEnded { producer_id, commit, groups } => {
                for group in groups {
                    if let Some(group) = self.groups.get_mut(&group) {
                        group.offsets.complete(producer_id, commit);
                    }
                }
            }
            Entry::OffsetsForgotten { group, places } => {
                if let Some(group) = self.groups.get_mut(&group) {
                    group.offsets.forget(|place| places.contains(place));
                }
            }
            Entry::TopicForgotten { topic } => {
                for group in self.groups.values_mut() {
                    group.offsets.forget(|(of, _)| *of == topic);
                }
            }
            Entry::GroupForgotten { group } => {
                self.groups.remove(&group);
            }
        }
    }

    fn note_arrivals(&mut self, arrivals: impl Iterator<Item = i64>) {
        self.last_arrival = arrivals.fold(self.last_arrival, i64::max);
    }

    fn compact_if_mostly_dead(&mut self) {
        let len = self.journal.len_bytes();
        if len <= self.compact_above || len / 2 < self.live_bytes {
            return;
        }
        // What is neither a group at work nor keeps offsets would otherwise stay for ever.
        self.groups.retain(|_, group| !is_forgettable(group));
        match self.journal.rewrite(self.groups.values().flat_map(snapshot)) {
            Ok(()) => self.live_bytes = self.journal.len_bytes(),
            // The old entries are all there: nothing is lost but room, and the next doubling tries again.
            Err(error) => {
                warn!(%error, "cannot rewrite the groups' journal");
                self.live_bytes = len;
            }
        }
    }
}

fn is_forgettable(group: &Group) -> bool {
    group.state == State::Empty && group.pending.is_empty() && group.offsets.is_empty()
}

/// The entries that bring the group back. One that is between two generations comes back as empty,
/// with its number: whoever was in it joins again and gets a later one.
fn snapshot(group: &Group) -> Vec<Bytes> {
    let mut generation = Generation::of(group);
    match group.state {
        State::Empty | State::Stable => {}
        State::Preparing { .. } | State::Completing => generation.members.clear(),
    }
    let id = group.id.clone();
    let offsets = group.offsets.committed.clone().into_iter().collect();
    let held = group.offsets.pending.clone().into_iter().map(|(producer_id, held)| Entry::Held {
        group: group.id.clone(),
        producer_id,
        offsets: held.into_iter().collect(),
    });
    let entries = [Entry::Generation(generation), Entry::Committed { group: id, offsets }];
    entries.into_iter().chain(held).map(|entry| entry.encode()).collect()
}
