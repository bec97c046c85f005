//! Keeping the log of a shelf short: what is live is carried to its end, the rest is cut off.

use std::sync::Arc;

use super::partition::{Carried, Carry};
use super::{Action, Flow, Notice};
use crate::route::Reason;
use crate::shelf::{Stage, Wait, Waiting};

/// How many records are on their way to the end of the log at once.
const AT_ONCE: usize = 500;

impl Flow {
    /// Cuts the log, or sees to it that it can be cut.
    pub(super) fn tidy(&mut self, partition: i32) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        if aside.cutting {
            return;
        }
        if let Some(to) = aside.owner.trim_point() {
            aside.cutting = true;
            self.actions.push_back(Action::Trim { partition, to });
            return;
        }
        if let Some(below) = aside.owner.carry_point() {
            self.carry_below(partition, below);
        }
    }

    /// Carries what is live and stands below this to the end of the log.
    pub(super) fn carry_below(&mut self, partition: i32, below: i64) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        if aside.carry.is_none() {
            let shelf = &aside.owner.shelf;
            let live = shelf.waiting.iter().filter(|waiting| waiting.at < below);
            let mut live: Vec<_> = live.map(|waiting| (waiting.at, waiting.origin)).collect();
            live.sort_unstable();
            // An answer about it may be on its way, and must not be undone by what is written after it.
            let moves = |letter: i64, at: i64| at < below && !aside.owner.is_bound(letter);
            let closures = shelf.closures().filter(|(letter, closure)| moves(*letter, closure.at));
            let closures: Vec<_> = closures.collect();
            let closures: Vec<_> =
                closures.into_iter().map(|(letter, closure)| (letter, closure.clone())).collect();
            if live.is_empty() && closures.is_empty() {
                return;
            }
            let writes = !closures.is_empty();
            for (letter, closure) in closures {
                aside.owner.carry_closure(letter, closure.lane, closure.announced);
            }
            let live = live.into_iter().map(|(_, origin)| origin);
            aside.carry = Some(Carry::of(Carried::Below(below), live));
            if writes {
                self.writes(partition);
            }
        }
        self.carry_more(partition);
    }

    /// The log was cut, or could not be.
    pub fn trimmed(&mut self, partition: i32, to: Option<i64>) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        aside.cutting = false;
        if let Some(to) = to {
            aside.owner.trimmed(to);
        }
    }

    pub(super) fn carry_more(&mut self, partition: i32) {
        loop {
            let Some(aside) = self.partitions.aside(partition) else { return };
            let Some(carry) = &mut aside.carry else { return };
            if carry.under_way() >= AT_ONCE {
                return;
            }
            let Some(origin) = carry.queue.pop_front() else {
                if carry.under_way() == 0 {
                    aside.carry = None;
                    aside.owner.look_again();
                }
                return;
            };
            let waiting = aside.owner.shelf.waiting.get(origin);
            // What is in memory is written again anyway, or complete.
            let stays = |waiting: &Waiting| matches!(waiting.stage, Stage::Waiting | Stage::Held);
            let is_meant = |waiting: &Waiting| match carry.what {
                Carried::Below(below) => waiting.at < below,
                Carried::Expiring => waiting.pointer,
            };
            let fits = |waiting: &Waiting| waiting.pointer || !aside.unfit.contains(&waiting.origin);
            let is_carried = |waiting: &Waiting| is_meant(waiting) && stays(waiting) && fits(waiting);
            let Some(waiting) = waiting.filter(is_carried) else {
                continue;
            };
            match self.cache.get(partition, origin) {
                Some(wait) => self.carry_one(partition, &wait),
                None => {
                    carry.fetching.insert(waiting.at, origin);
                    self.actions.push_back(Action::Fetch { partition, at: waiting.at });
                }
            }
        }
    }

    /// Writes a record again, as it is by now: with its original, if that is gone soon.
    pub(super) fn carry_one(&mut self, partition: i32, wait: &Wait) {
        let mut expires_soon = self.expires_soon(wait);
        let Some(aside) = self.partitions.aside(partition) else { return };
        let origin = wait.record.at.offset;
        let Some(waiting) = aside.owner.shelf.waiting.get(origin) else { return };
        if !matches!(waiting.stage, Stage::Waiting | Stage::Held) || aside.owner.is_bound(origin) {
            return;
        }
        // With its original it would not fit.
        expires_soon &= !aside.unfit.contains(&origin);
        if let Some(carry) = &mut aside.carry
            && wait.is_pointer()
        {
            if expires_soon {
                carry.recalling.insert(origin, Arc::new(wait.clone()));
                self.actions.push_back(Action::Recall { partition, offset: origin });
                return;
            }
            if carry.what == Carried::Expiring {
                return;
            }
        }
        let mut wait = wait.clone();
        let trail = Arc::make_mut(&mut wait.trail);
        trail.due = Some(waiting.due);
        if waiting.cancelled {
            trail.reason = Some(Reason::Cancelled);
        }
        if aside.owner.shelf.behind(origin).is_none() {
            trail.leader = None;
        }
        aside.owner.carry(Arc::new(wait));
        if let Some(carry) = &mut aside.carry {
            carry.on_the_way.insert(origin);
        }
        self.writes(partition);
    }

    /// A record stands at the end of the log now.
    pub(super) fn carried(&mut self, partition: i32, wait: Arc<Wait>) {
        let origin = wait.record.at.offset;
        self.offer(partition, origin);
        if let Some(carry) = self.partitions.aside(partition).and_then(|aside| aside.carry.as_mut()) {
            carry.on_the_way.remove(&origin);
        }
        if self.cache.take(partition, origin).is_some() {
            self.cache.insert(partition, wait);
        }
        self.carry_more(partition);
    }

    /// Whether the limit on what may wait is reached: then nothing new is read or starts, as it may have to wait.
    pub(super) fn is_full(&mut self, partition: i32) -> bool {
        let Some(limits) = self.settings.shelf.as_ref().map(|shelf| shelf.limits) else { return false };
        let Some(state) = self.partitions.get_mut(partition) else { return false };
        let passed = state.offsets.passed();
        let Some(aside) = &mut state.aside else { return false };
        let waiting = &aside.owner.shelf.waiting;
        // Never below a waiting record: it is released only when the reader has passed it.
        let is_full = (waiting.len() >= limits.records || waiting.bytes() >= limits.bytes as u64)
            && waiting.highest().is_none_or(|highest| highest < passed);
        if is_full && !aside.is_full {
            aside.is_full = true;
            let (records, bytes) = (waiting.len(), waiting.bytes());
            self.actions.push_back(Action::Tell(Notice::Full { partition, records, bytes }));
        }
        is_full
    }

    /// Whether something on the shelf may have to wait for this record of the source.
    pub(super) fn is_waited_for(&self, partition: i32, offset: i64) -> bool {
        let aside = self.partitions.get(partition).and_then(|state| state.aside.as_ref());
        let highest = aside.and_then(|aside| aside.owner.shelf.waiting.highest());
        highest.is_some_and(|highest| offset < highest)
    }

    /// Something left the shelf: if it was full, the partition goes on.
    pub(super) fn make_room(&mut self, partition: i32) {
        if !self.partitions.aside(partition).is_some_and(|aside| aside.is_full) || self.is_full(partition) {
            return;
        }
        if let Some(aside) = self.partitions.aside(partition) {
            aside.is_full = false;
        }
        self.actions.push_back(Action::Tell(Notice::Room { partition }));
        self.unstall(partition);
        self.ease(partition);
    }
}
