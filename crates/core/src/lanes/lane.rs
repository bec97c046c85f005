//! One lane: its records in memory in the order of their offsets, each somewhere on its way.

use std::collections::BTreeSet;

use super::records::Records;
use super::{Ahead, Followers, Step};

/// Where a record of a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Next when its turn comes.
    Queued,
    /// With the handler.
    Running,
    /// On its way to the shelf, or to the letters as a follower.
    Aside,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    records: Records,
    /// The letters that close the lane: what comes after one of them is held or buried.
    letters: BTreeSet<i64>,
    /// Those of them from which on somebody is about to send the letters back: from there on everything is held.
    announced: BTreeSet<i64>,
    /// Whether one is with the handler. A letter that is sent back comes before it, and waits for it.
    is_running: bool,
}

impl Lane {
    pub(super) fn arrive(
        &mut self,
        offset: i64,
        followers: Followers,
        ahead: Option<Ahead>,
        steps: &mut Vec<Step>,
    ) {
        if self.letters.contains(&offset) || self.records.contains(offset) {
            steps.push(Step::Known(offset));
            return;
        }
        self.enter(offset, followers, ahead, steps);
    }

    /// A record comes back from the shelf. Its own letter may close the lane still: somebody sent it back.
    pub(super) fn enter(
        &mut self,
        offset: i64,
        followers: Followers,
        ahead: Option<Ahead>,
        steps: &mut Vec<Step>,
    ) {
        if let Some(leader) = self.announced.first().copied().filter(|leader| *leader <= offset) {
            self.follow(offset, leader, steps);
            return;
        }
        // The first of them: those behind it are its followers, mostly, and say so themselves.
        if let Some(leader) = self.letters.range(..offset).next().copied() {
            match followers {
                // A lane that an earlier configuration closed is still closed: nothing passes unasked.
                Followers::Hold | Followers::Pass => self.follow(offset, leader, steps),
                Followers::Bury => {
                    // In the lane until its letter is confirmed: were the lane opened before, the next would overtake.
                    self.records.insert(offset, Place::Aside);
                    steps.push(Step::BuryFollower { offset, leader });
                }
            }
            return;
        }
        // What arrives behind one that is set aside is set aside too, so the last tells.
        let before = self.records.last_below(offset);
        if let Some((leader, Place::Aside)) = before {
            self.follow(offset, leader, steps);
            return;
        }
        match ahead.filter(|ahead| ahead.first < offset && !ahead.is_out) {
            Some(ahead) => self.follow(offset, ahead.first, steps),
            None => self.records.insert(offset, Place::Queued),
        }
    }

    pub(super) fn remove(&mut self, offset: i64) {
        if self.records.remove(offset) == Some(Place::Running) {
            self.is_running = false;
        }
    }

    /// The one with the handler, or about to be.
    pub(super) fn running(&self) -> Option<i64> {
        self.records.running().filter(|_| self.is_running)
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.records.first().map(|(offset, _)| offset)
    }

    /// A letter that is sent back waits from now on, and what is queued behind it with it; `unstarted` was to run
    /// and has not begun.
    pub(super) fn sent_back(&mut self, offset: i64, unstarted: Option<i64>, steps: &mut Vec<Step>) {
        if let Some(place @ Place::Running) = unstarted.and_then(|offset| self.records.get_mut(offset)) {
            *place = Place::Queued;
            self.is_running = false;
        }
        self.set_queued_aside(offset, steps);
    }

    /// Somebody is about to send back the letters from this one on, or no longer is.
    pub(super) fn announce(&mut self, leader: i64, steps: &mut Vec<Step>) {
        self.announced.insert(leader);
        self.set_queued_aside(leader, steps);
    }

    pub(super) fn unannounce(&mut self, leader: i64) {
        self.announced.remove(&leader);
    }

    pub(super) fn shelve(&mut self, offset: i64, steps: &mut Vec<Step>) {
        let Some(place @ Place::Running) = self.records.get_mut(offset) else { return };
        *place = Place::Aside;
        self.is_running = false;
        self.set_queued_aside(offset, steps);
    }

    pub(super) fn bury(&mut self, offset: i64, followers: Followers, steps: &mut Vec<Step>) {
        self.remove(offset);
        match followers {
            Followers::Pass => {}
            Followers::Hold => {
                self.close(offset);
                self.set_queued_aside(offset, steps);
            }
            Followers::Bury => {
                self.close(offset);
                for (behind, place) in self.records.at_or_above_mut(offset) {
                    // What is on its way to the shelf is found there, behind the letter.
                    if *place == Place::Queued {
                        *place = Place::Aside;
                        steps.push(Step::BuryFollower { offset: behind, leader: offset });
                    }
                }
            }
        }
    }

    pub(super) fn close(&mut self, letter: i64) {
        self.letters.insert(letter);
    }

    /// One letter was dealt with; the lane stays closed behind the others.
    pub(super) fn open(&mut self, letter: i64) {
        self.letters.remove(&letter);
    }

    pub(super) fn letters(&self) -> impl Iterator<Item = i64> {
        self.letters.iter().copied()
    }

    pub(super) fn is_closed_by(&self, letter: i64) -> bool {
        self.letters.contains(&letter)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.records.is_empty() && self.letters.is_empty() && self.announced.is_empty()
    }

    /// Whether the head would run, were nothing of the lane on the shelf.
    pub(super) fn is_ready(&self) -> bool {
        let Some((offset, Place::Queued)) = self.records.first() else { return false };
        !self.is_running && self.letters.first().is_none_or(|letter| *letter >= offset)
    }

    /// Starts the head if it may run: it is first, in memory and on the shelf, and before every closing letter.
    pub(super) fn next(&mut self, ahead: Option<Ahead>) -> Option<i64> {
        let (offset, place) = self.records.first_mut()?;
        if ahead.is_some_and(|ahead| ahead.first < offset) {
            return None;
        }
        *place = Place::Running;
        self.is_running = true;
        Some(offset)
    }

    fn follow(&mut self, offset: i64, leader: i64, steps: &mut Vec<Step>) {
        self.records.insert(offset, Place::Aside);
        steps.push(Step::Follow { offset, leader });
    }

    /// What is queued behind `leader` waits with it: memory is not where records wait.
    fn set_queued_aside(&mut self, leader: i64, steps: &mut Vec<Step>) {
        for (offset, place) in self.records.at_or_above_mut(leader) {
            if *place == Place::Queued {
                *place = Place::Aside;
                steps.push(Step::Follow { offset, leader });
            }
        }
    }
}
