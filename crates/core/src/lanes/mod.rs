//! Order within a business key: which record may run now, which waits behind which.
//!
//! One [`Lanes`] for each source partition; a lane is the records of one key in it, in the order of
//! their offsets. Events come in, [`Step`]s go out: run this, set that aside behind its leader, bury
//! that as a follower. A record without a key has no lane and never waits.
//!
//! Here is what is in memory, and which lanes are closed. What waits on the shelf may be millions, and is
//! asked for: a [`Shelved`] says whether something of a lane waits there, and from which offset on.

mod lane;
mod records;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use hashbrown::HashMap;
use hashbrown::hash_map::{EntryRef, OccupiedEntry};

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

/// What waits on the shelf.
pub trait Shelved {
    /// What waits there of this lane.
    fn of(&self, lane: &Bytes) -> Option<Ahead>;
}

/// What of a lane is on the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The lowest offset.
    pub first: i64,
    /// Whether that one is alone there and in memory at the moment: nobody has to wait for long.
    pub is_out: bool,
}

/// The lanes of one source partition, as far as they are in memory.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    followers: Followers,
    lanes: HashMap<Bytes, Lane>,
}

impl Followers {
    /// Whether a letter closes its lane.
    #[must_use]
    pub fn closes(self) -> bool {
        match self {
            Self::Pass => false,
            Self::Hold | Self::Bury => true,
        }
    }
}

impl Lanes {
    /// No lanes yet.
    #[must_use]
    pub fn new(followers: Followers) -> Self {
        Self { followers, ..Self::default() }
    }

    /// A record was read from the source.
    pub fn arrive(&mut self, key: Option<&Bytes>, offset: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        let Some(key) = key else {
            steps.push(Step::Run(offset));
            return;
        };
        let mut entry = match self.lanes.entry_ref(key) {
            EntryRef::Occupied(entry) => entry,
            EntryRef::Vacant(entry) => entry.insert_entry_with_key(key.clone(), Lane::default()),
        };
        entry.get_mut().arrive(offset, self.followers, shelf.of(key), steps);
        go_on(entry, shelf, steps);
    }

    /// A record came back from the shelf.
    pub fn come_back(
        &mut self,
        key: Option<&Bytes>,
        offset: i64,
        shelf: &impl Shelved,
        steps: &mut Vec<Step>,
    ) {
        let Some(key) = key else {
            steps.push(Step::Run(offset));
            return;
        };
        let mut entry = match self.lanes.entry_ref(key) {
            EntryRef::Occupied(entry) => entry,
            EntryRef::Vacant(entry) => entry.insert_entry_with_key(key.clone(), Lane::default()),
        };
        entry.get_mut().enter(offset, self.followers, shelf.of(key), steps);
        go_on(entry, shelf, steps);
    }

    /// The record of this lane that is with the handler, or about to be.
    #[must_use]
    pub fn running(&self, key: &Bytes) -> Option<i64> {
        self.lanes.get(key).and_then(Lane::running)
    }

    /// The first of this lane that is in memory.
    #[must_use]
    pub fn first(&self, key: &Bytes) -> Option<i64> {
        self.lanes.get(key).and_then(Lane::first)
    }

    /// A letter that was sent back waits on the shelf: what is queued behind it waits with it, and so does
    /// `unstarted`, which was to run and has not begun.
    pub fn sent_back(
        &mut self,
        key: Option<&Bytes>,
        offset: i64,
        unstarted: Option<i64>,
        shelf: &impl Shelved,
        steps: &mut Vec<Step>,
    ) {
        self.change(key, shelf, steps, |lane, _, steps| lane.sent_back(offset, unstarted, steps));
    }

    /// Somebody is about to send back the letters of a lane from this one on: everything from there is held.
    pub fn announce(&mut self, key: &Bytes, leader: i64, steps: &mut Vec<Step>) {
        self.lanes.entry(key.clone()).or_default().announce(leader, steps);
    }

    /// Nobody is about to send them back any more.
    pub fn unannounce(&mut self, key: &Bytes, leader: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        self.change(Some(key), shelf, steps, |lane, _, _| lane.unannounce(leader));
    }

    /// A running record is complete.
    pub fn done(&mut self, key: Option<&Bytes>, offset: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        self.change(key, shelf, steps, |lane, _, _| lane.remove(offset));
    }

    /// A running record is being set aside; until it is there nothing behind it runs.
    pub fn shelve(&mut self, key: Option<&Bytes>, offset: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        self.change(key, shelf, steps, |lane, _, steps| lane.shelve(offset, steps));
    }

    /// A record is on the shelf, and no longer in memory.
    pub fn shelved(&mut self, key: Option<&Bytes>, offset: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        self.change(key, shelf, steps, |lane, _, _| lane.remove(offset));
    }

    /// A record became a dead letter.
    pub fn bury(&mut self, key: Option<&Bytes>, offset: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        let Some(key) = key else { return };
        let closes = self.followers.closes();
        let mut entry = match self.lanes.entry_ref(key) {
            EntryRef::Occupied(entry) => entry,
            EntryRef::Vacant(entry) if closes => entry.insert_entry_with_key(key.clone(), Lane::default()),
            EntryRef::Vacant(_) => return,
        };
        entry.get_mut().bury(offset, self.followers, steps);
        go_on(entry, shelf, steps);
    }

    /// Letters that closed the lane were dealt with, each with whether it closes it again: it is open unless one
    /// does.
    pub fn resolve_all(
        &mut self,
        key: &Bytes,
        letters: impl Iterator<Item = (i64, bool)>,
        shelf: &impl Shelved,
        steps: &mut Vec<Step>,
    ) {
        self.change(Some(key), shelf, steps, |lane, _, _| {
            letters.for_each(|(letter, closes_again)| {
                if !closes_again {
                    lane.open(letter);
                }
                lane.unannounce(letter);
            });
        });
    }

    /// A letter that closed the lane was dealt with: the lane is open again unless another closes it.
    pub fn resolve(&mut self, key: &Bytes, letter: i64, shelf: &impl Shelved, steps: &mut Vec<Step>) {
        self.change(Some(key), shelf, steps, |lane, _, _| lane.open(letter));
    }

    /// A lane that this letter closes already, as found when taking over.
    pub fn restore_closed(&mut self, key: &Bytes, letter: i64) {
        self.lanes.entry(key.clone()).or_default().close(letter);
    }

    /// The lane that this letter closes.
    #[must_use]
    pub fn closed_by(&self, letter: i64) -> Option<Bytes> {
        let found = self.lanes.iter().find(|(_, lane)| lane.is_closed_by(letter));
        found.map(|(key, _)| key.clone())
    }

    /// How many lanes there are: with a record in memory, or closed.
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
        shelf: &impl Shelved,
        steps: &mut Vec<Step>,
        event: impl FnOnce(&mut Lane, Followers, &mut Vec<Step>),
    ) {
        let Some(key) = key else { return };
        if let EntryRef::Occupied(mut entry) = self.lanes.entry_ref(key) {
            event(entry.get_mut(), self.followers, steps);
            go_on(entry, shelf, steps);
        }
    }
}

/// Lets the head of the lane run if nothing stands against it, and forgets an empty lane.
fn go_on(mut entry: OccupiedEntry<'_, Bytes, Lane>, shelf: &impl Shelved, steps: &mut Vec<Step>) {
    if entry.get().is_ready() {
        let ahead = shelf.of(entry.key());
        if let Some(head) = entry.get_mut().next(ahead) {
            steps.push(Step::Run(head));
        }
    }
    if entry.get().is_idle() {
        entry.remove();
    }
}
