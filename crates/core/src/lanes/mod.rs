//! Order within a business key: which record may run now, which waits behind which.
//!
//! One [`Lanes`] for each source partition; a lane is the records of one key in it, in the order of
//! their offsets. Events come in, [`Step`]s go out: run this, set that aside behind its leader, bury
//! that as a follower. A record without a key has no lane and never waits.

mod lane;
mod records;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use hashbrown::HashMap;
use hashbrown::hash_map::{Entry, EntryRef, OccupiedEntry};

use lane::Lane;

/// What becomes of the records behind one that is dead-lettered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Followers {
    /// They go on.
    #[default]
    Pass,
    /// They wait until the letter is replayed or resolved.
    Hold,
    /// They become letters too.
    Bury,
}

/// What is to be done about a record. Offsets are of the source partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Hand it to the handler now.
    Run(i64),
    /// Set it aside behind `leader`: it has no delay of its own and runs when its turn comes.
    Follow {
        /// The record.
        offset: i64,
        /// The one it waits for.
        leader: i64,
    },
    /// Dead-letter it as a follower of `leader`.
    BuryFollower {
        /// The record.
        offset: i64,
        /// The letter it follows.
        leader: i64,
    },
    /// Nothing: it waits already, or it is the letter that closed the lane. Its offset is complete.
    Known(i64),
}

/// The lanes of one source partition.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    followers: Followers,
    /// Where the source is read: what lies below has arrived.
    position: i64,
    lanes: HashMap<Bytes, Lane>,
    /// Restored records that the reader has not passed yet, so that one before them may still arrive.
    unpassed: BTreeMap<i64, Bytes>,
}

impl Lanes {
    /// The empty lanes of a partition that is read from `position` on.
    #[must_use]
    pub fn new(followers: Followers, position: i64) -> Self {
        Self { followers, position, ..Self::default() }
    }

    /// A record was read from the source.
    pub fn arrive(&mut self, key: Option<&Bytes>, offset: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.arrive_into(key, offset, &mut steps);
        steps
    }

    /// As [`Self::arrive`], the steps added to those that are there.
    pub fn arrive_into(&mut self, key: Option<&Bytes>, offset: i64, steps: &mut Vec<Step>) {
        self.pass_into(offset + 1, steps);
        match key {
            Some(key) => {
                let mut entry = match self.lanes.entry_ref(key) {
                    EntryRef::Occupied(entry) => entry,
                    EntryRef::Vacant(entry) => entry.insert_entry_with_key(key.clone(), Lane::default()),
                };
                entry.get_mut().arrive(offset, self.followers, steps);
                go_on(entry, self.position, steps);
            }
            None => steps.push(Step::Run(offset)),
        }
    }

    /// The reader is at `position`, whatever was or was not delivered below.
    pub fn pass(&mut self, position: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.pass_into(position, &mut steps);
        steps
    }

    fn pass_into(&mut self, position: i64, steps: &mut Vec<Step>) {
        self.position = self.position.max(position);
        if self.unpassed.is_empty() {
            return;
        }
        let later = self.unpassed.split_off(&self.position);
        for key in std::mem::replace(&mut self.unpassed, later).into_values() {
            if let Entry::Occupied(entry) = self.lanes.entry(key) {
                go_on(entry, self.position, steps);
            }
        }
    }

    /// A running record is complete.
    pub fn done(&mut self, key: Option<&Bytes>, offset: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.done_into(key, offset, &mut steps);
        steps
    }

    /// As [`Self::done`], the steps added to those that are there.
    pub fn done_into(&mut self, key: Option<&Bytes>, offset: i64, steps: &mut Vec<Step>) {
        self.change_into(key, steps, |lane, _, _| lane.remove(offset));
    }

    /// A running record was set aside; it waits until it is released.
    pub fn shelve(&mut self, key: Option<&Bytes>, offset: i64) -> Vec<Step> {
        self.change(key, |lane, _, steps| lane.shelve(offset, steps))
    }

    /// A waiting record is due: it runs as soon as its turn comes.
    pub fn release(&mut self, key: Option<&Bytes>, offset: i64) -> Vec<Step> {
        match key {
            Some(_) => self.change(key, |lane, _, _| lane.release(offset)),
            None => vec![Step::Run(offset)],
        }
    }

    /// A record, running or waiting, became a dead letter.
    pub fn bury(&mut self, key: Option<&Bytes>, offset: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        self.bury_into(key, offset, &mut steps);
        steps
    }

    /// As [`Self::bury`], the steps added to those that are there.
    pub fn bury_into(&mut self, key: Option<&Bytes>, offset: i64, steps: &mut Vec<Step>) {
        self.change_into(key, steps, |lane, followers, steps| lane.bury(offset, followers, steps));
    }

    /// A letter that closed the lane was dealt with: the lane is open again unless another closes it.
    pub fn resolve(&mut self, key: &Bytes, letter: i64) -> Vec<Step> {
        self.change(Some(key), |lane, _, _| lane.open(letter))
    }

    /// A record that waits already, as found when taking over. One without a key has no lane: that it
    /// waits, and need not be handled when it is read again, is for the caller to know.
    pub fn restore(&mut self, key: Option<&Bytes>, offset: i64) {
        let Some(key) = key else { return };
        self.lanes.entry(key.clone()).or_default().restore(offset);
        if offset >= self.position {
            self.unpassed.insert(offset, key.clone());
        }
    }

    /// A lane that this letter closes already, as found when taking over.
    pub fn restore_closed(&mut self, key: &Bytes, letter: i64) {
        self.lanes.entry(key.clone()).or_default().close(letter);
    }

    /// How many lanes there are: with a record in them, or closed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is no lane.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The letters that close this lane, the first first; none if it is open.
    #[must_use]
    pub fn letters(&self, key: &Bytes) -> Vec<i64> {
        self.lanes.get(key).map(|lane| lane.letters().collect()).unwrap_or_default()
    }

    fn change(
        &mut self,
        key: Option<&Bytes>,
        event: impl FnOnce(&mut Lane, Followers, &mut Vec<Step>),
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        self.change_into(key, &mut steps, event);
        steps
    }

    fn change_into(
        &mut self,
        key: Option<&Bytes>,
        steps: &mut Vec<Step>,
        event: impl FnOnce(&mut Lane, Followers, &mut Vec<Step>),
    ) {
        let Some(key) = key else { return };
        if let EntryRef::Occupied(mut entry) = self.lanes.entry_ref(key) {
            event(entry.get_mut(), self.followers, steps);
            go_on(entry, self.position, steps);
        }
    }
}

/// Lets the head of the lane run if nothing stands against it, and forgets an empty lane.
fn go_on(mut entry: OccupiedEntry<'_, Bytes, Lane>, position: i64, steps: &mut Vec<Step>) {
    if let Some(head) = entry.get_mut().next(position) {
        steps.push(Step::Run(head));
    }
    if entry.get().is_idle() {
        entry.remove();
    }
}
