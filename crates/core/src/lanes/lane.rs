//! One lane: its records in the order of their offsets, each somewhere on its way.

use std::collections::BTreeSet;

use super::records::Records;
use super::{Followers, Step};

/// Where a record of a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In memory, read from the source.
    Queued,
    /// With the handler.
    Running,
    /// Set aside, not due yet.
    Waiting,
    /// Set aside, and nothing but its turn is missing.
    Due,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    records: Records,
    /// The letters that close the lane: what comes after one of them is held or buried.
    letters: BTreeSet<i64>,
}

impl Lane {
    pub(super) fn arrive(&mut self, offset: i64, followers: Followers, steps: &mut Vec<Step>) {
        if self.letters.contains(&offset) || self.records.contains(offset) {
            steps.push(Step::Known(offset));
            return;
        }
        if let Some(leader) = self.letters.range(..offset).next_back().copied() {
            match followers {
                // A lane that an earlier configuration closed is still closed: nothing passes unasked.
                Followers::Hold | Followers::Pass => self.follow(offset, leader, steps),
                Followers::Bury => steps.push(Step::BuryFollower { offset, leader }),
            }
            return;
        }
        // What arrives behind one that is set aside is set aside too, so the last tells.
        let aside = |(_, place): &(i64, Place)| matches!(place, Place::Waiting | Place::Due);
        match self.records.last_below(offset).filter(aside) {
            Some((leader, _)) => self.follow(offset, leader, steps),
            None => self.records.insert(offset, Place::Queued),
        }
    }

    pub(super) fn restore(&mut self, offset: i64) {
        if !self.records.contains(offset) {
            self.records.insert(offset, Place::Waiting);
        }
    }

    pub(super) fn remove(&mut self, offset: i64) {
        self.records.remove(offset);
    }

    pub(super) fn shelve(&mut self, offset: i64, steps: &mut Vec<Step>) {
        let Some(place @ Place::Running) = self.records.get_mut(offset) else { return };
        *place = Place::Waiting;
        self.set_queued_aside(offset, steps);
    }

    pub(super) fn release(&mut self, offset: i64) {
        if let Some(place @ Place::Waiting) = self.records.get_mut(offset) {
            *place = Place::Due;
        }
    }

    pub(super) fn bury(&mut self, offset: i64, followers: Followers, steps: &mut Vec<Step>) {
        self.records.remove(offset);
        match followers {
            Followers::Pass => {}
            Followers::Hold => {
                self.close(offset);
                self.set_queued_aside(offset, steps);
            }
            Followers::Bury => {
                self.close(offset);
                let behind = self.records.split_off(offset);
                steps.extend(
                    behind.into_iter().map(|behind| Step::BuryFollower { offset: behind, leader: offset }),
                );
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

    pub(super) fn is_idle(&self) -> bool {
        self.records.is_empty() && self.letters.is_empty()
    }

    /// Starts the head if it may run: it is first, due, before every closing letter, and no earlier
    /// record can still arrive.
    pub(super) fn next(&mut self, position: i64) -> Option<i64> {
        let first_letter = self.letters.first().copied();
        let (offset, place) = self.records.first_mut()?;
        let ready = matches!(place, Place::Queued | Place::Due);
        let held = first_letter.is_some_and(|letter| letter < offset);
        if !ready || held || offset >= position {
            return None;
        }
        *place = Place::Running;
        Some(offset)
    }

    fn follow(&mut self, offset: i64, leader: i64, steps: &mut Vec<Step>) {
        self.records.insert(offset, Place::Due);
        steps.push(Step::Follow { offset, leader });
    }

    /// What is queued behind `leader` waits with it: memory is not where records wait.
    fn set_queued_aside(&mut self, leader: i64, steps: &mut Vec<Step>) {
        for (offset, place) in self.records.at_or_above_mut(leader) {
            if *place == Place::Queued {
                *place = Place::Due;
                steps.push(Step::Follow { offset, leader });
            }
        }
    }
}
