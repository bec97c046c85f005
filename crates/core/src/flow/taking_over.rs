//! A partition with a shelf: claimed, proven, located, begun; what is read from the log meanwhile and after.

use std::sync::Arc;
use std::time::Duration;

use super::partition::{Aside, Partition};
use super::{Action, Fate, Flow, Notice, Now};
use crate::lanes::Lanes;
use crate::offsets::{Offsets, Progress};
use crate::shelf::{Body, ClaimId, Entry, Outcome, Owner, Phase, Seen, Stamp, Verdict};
use crate::time::Timestamp;

/// Where the source of a claimed partition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// Where the log of the shelf says.
    GoesOn,
    /// Here: a first start, or an operator's reset.
    BeginsAt(i64),
}

impl Flow {
    /// A partition is ours: its shelf is claimed first, and read from the start of its log.
    pub fn take_over(&mut self, partition: i32) {
        self.abandon(partition);
        let claim = self.next_claim();
        let Some(identity) = self.settings.shelf.as_ref().map(|shelf| shelf.identity.clone()) else { return };
        let owner = Owner::new(identity, claim);
        let entry = owner.claim_entry();
        let offsets = Offsets::resume(Progress::at(0));
        let mut state = Partition::new(offsets, Lanes::new(self.settings.followers));
        state.aside = Some(Aside::new(owner));
        self.partitions.insert(partition, state);
        self.share_out();
        self.actions.push_back(Action::Claim { partition, entry });
    }

    fn next_claim(&mut self) -> ClaimId {
        self.claims += 1;
        let process = self.settings.shelf.as_ref().map_or(0, |shelf| shelf.process);
        ClaimId { process, number: self.claims }
    }

    /// The claim could not be written, or nobody knows whether it was.
    pub fn claim_failed(&mut self, partition: i32, claim: ClaimId) {
        let is_it =
            |aside: &mut Aside| aside.owner.claim() == claim && aside.owner.phase() == Phase::Claiming;
        if self.partitions.aside(partition).is_some_and(is_it) {
            self.claim_again(partition);
        }
    }

    fn claim_again(&mut self, partition: i32) {
        let claim = self.next_claim();
        let Some(aside) = self.partitions.aside(partition) else { return };
        // What was on its way to the end of the log stays where it is.
        aside.carry = None;
        let entry = aside.owner.claim_again(claim);
        aside.set_free();
        self.actions.push_back(Action::Claim { partition, entry });
    }

    /// The commit that proves a claim was accepted.
    pub fn proven(&mut self, partition: i32, claim: ClaimId, now: Now) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        if !aside.owner.proven(claim) {
            return;
        }
        match aside.owner.phase() {
            Phase::Locating => {
                let mark = aside.owner.shelf.progress().map(|progress| progress.mark());
                let missing = aside.owner.shelf.missing();
                self.actions.push_back(Action::Locate { partition, mark, missing });
            }
            Phase::Running => self.runs(partition, now),
            Phase::Beginning => {
                self.writes(partition);
            }
            Phase::Claiming | Phase::Proving => {}
        }
    }

    /// Where the source begins was found out.
    pub fn located(&mut self, partition: i32, located: Located, now: Now) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        match located {
            Located::GoesOn => {
                if aside.owner.goes_on() {
                    self.start_source(partition, now);
                }
            }
            Located::BeginsAt(offset) => {
                aside.owner.begins_at(offset);
                self.writes(partition);
            }
        }
    }

    /// How far the take-over of a partition has come; `None` without a shelf.
    #[must_use]
    pub fn phase(&self, partition: i32) -> Option<Phase> {
        Some(self.partitions.get(partition)?.aside.as_ref()?.owner.phase())
    }

    /// How many records of this partition wait on its shelf.
    #[must_use]
    pub fn waiting(&self, partition: i32) -> usize {
        let aside = self.partitions.get(partition).and_then(|partition| partition.aside.as_ref());
        aside.map_or(0, |aside| aside.owner.shelf.waiting.len())
    }

    /// The lowest source offset whose record is only pointed at by what waits.
    #[must_use]
    pub fn lowest_pointer(&self, partition: i32) -> Option<i64> {
        self.partitions.get(partition)?.aside.as_ref()?.owner.shelf.lowest_pointer()
    }

    /// Whether the partition runs and nothing lives on its shelf: no record, no closed lane, no order.
    #[must_use]
    pub fn is_shelf_bare(&self, partition: i32) -> bool {
        let aside = self.partitions.get(partition).and_then(|partition| partition.aside.as_ref());
        aside.is_some_and(|aside| aside.owner.has_started() && aside.owner.shelf.lowest_live().is_none())
    }

    fn start_source(&mut self, number: i32, now: Now) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(aside) = &partition.aside else { return };
        let shelf = &aside.owner.shelf;
        let Some(progress) = shelf.progress() else { return };
        let mut ahead = progress.ahead().clone();
        // After a reset too: what waits is not handled from the source as well.
        let mut waiting: Vec<_> = shelf.waiting.iter().map(|waiting| waiting.origin).collect();
        waiting.sort_unstable();
        for origin in waiting.into_iter().filter(|origin| *origin >= progress.mark()) {
            ahead.insert(origin..origin + 1);
        }
        partition.offsets = Offsets::resume(Progress::new(progress.mark(), ahead));
        for (letter, closure) in shelf.closures() {
            partition.lanes.restore_closed(&closure.lane, letter);
            if let Some(announced) = &closure.announced {
                partition.lanes.announce(&closure.lane, letter, &mut self.steps);
                self.deadlines.insert((announced.deadline, number, letter));
            }
        }
        let cancelled: Vec<_> =
            shelf.waiting.iter().filter(|waiting| waiting.cancelled).map(|waiting| waiting.origin).collect();
        if !shelf.waiting.is_empty() {
            // Nothing of it is in memory.
            self.cache.misses(number, Timestamp::from_millis(0));
        }
        let from = partition.offsets.position();
        self.actions.push_back(Action::Start { partition: number, from });
        for origin in cancelled {
            self.bring(number, origin);
        }
        self.runs(number, now);
    }

    /// The partition runs, for the first time or again.
    fn runs(&mut self, partition: i32, now: Now) {
        self.writes(partition);
        self.resume_replays(partition);
        self.answer(partition, now);
        self.bury_undecodable(partition);
    }

    /// A record of the shelf was read that is no entry.
    pub fn read_undecodable(&mut self, partition: i32, at: i64, size: u32) {
        if let Some(aside) = self.partitions.aside(partition) {
            aside.owner.read_undecodable(at, size);
            self.bury_undecodable(partition);
        }
    }

    /// Its letter is written.
    pub fn buried_undecodable(&mut self, partition: i32, at: i64) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        if aside.burying.take_if(|burying| *burying == at).is_some() {
            aside.owner.buried_undecodable(at);
            self.counts.buried += 1;
            self.bury_undecodable(partition);
        }
    }

    /// One at a time: nothing waits for them.
    fn bury_undecodable(&mut self, partition: i32) {
        let Some(aside) = self.partitions.aside(partition).filter(|aside| aside.owner.is_running()) else {
            return;
        };
        let next = aside.owner.undecodable().filter(|_| aside.burying.is_none());
        if let Some(at) = next {
            aside.burying = Some(at);
            self.actions.push_back(Action::BuryEntry { partition, at });
        }
    }

    /// What stands in the log under this mark, if it is a waiting record that we wrote and have not read back.
    #[must_use]
    pub fn expected(&self, partition: i32, stamp: Stamp) -> Option<Entry> {
        self.partitions.get(partition)?.aside.as_ref()?.owner.expected(stamp)
    }

    /// An entry of the shelf was read.
    pub fn read(&mut self, partition: i32, at: i64, entry: &Entry, size: u32, now: Now) {
        self.wall = now.wall;
        let Some(aside) = self.partitions.aside(partition) else { return };
        let seen = aside.owner.read(at, entry, size);
        aside.set_free();
        match seen {
            Seen::Other => {}
            Seen::Claimed => self.claimed(partition, at),
            Seen::Rival => {
                self.actions.push_back(Action::Tell(Notice::Rival { partition }));
                self.claim_again(partition);
            }
            Seen::Foreign => self.refused(partition),
            Seen::Ordered => {
                self.keep_whole(partition, at, entry);
                self.answer(partition, now);
            }
            Seen::Confirmed(body) => self.confirmed(partition, body, now),
        }
    }

    fn claimed(&mut self, partition: i32, at: i64) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        let claim = aside.owner.claim();
        self.actions.push_back(Action::Prove { partition, claim, at });
    }

    fn refused(&mut self, partition: i32) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        if let Some(identity) = aside.owner.shelf.identity().cloned() {
            self.actions.push_back(Action::Tell(Notice::Foreign { partition, identity }));
        }
    }

    fn confirmed(&mut self, partition: i32, body: Body, now: Now) {
        if self.partitions.aside(partition).is_some_and(|aside| aside.owner.has_lost()) {
            self.writes(partition);
        }
        match body {
            Body::Wait(wait) => {
                let origin = wait.record.at.offset;
                self.waits(partition, wait);
                self.no_longer_busy(partition, origin);
                self.answer(partition, now);
            }
            Body::Carried(wait) => self.carried(partition, wait),
            Body::Closed(closed) if closed.completes => {
                self.closed(partition, closed.origin);
                self.no_longer_busy(partition, closed.origin);
                self.answer(partition, now);
            }
            Body::Closed(_) => {}
            Body::Outcome(outcome) => {
                self.answered(partition, &outcome);
                for origin in std::iter::once(outcome.origin).chain(outcome.also) {
                    self.no_longer_busy(partition, origin);
                }
                self.answer(partition, now);
            }
            Body::Checkpoint { begins, .. } => {
                if begins {
                    self.start_source(partition, now);
                }
                self.make_room(partition);
                self.tidy(partition);
                self.look_at_replays(partition, now);
                self.tell_ends(partition);
            }
        }
    }

    fn answered(&mut self, number: i32, outcome: &Outcome) {
        let origin = outcome.origin;
        match outcome.verdict {
            Verdict::Cancelled => self.bring(number, origin),
            Verdict::Opened => self.opened(number, origin, &outcome.also),
            Verdict::Announced { deadline } => drop(self.deadlines.insert((deadline, number, origin))),
            Verdict::Due { .. }
            | Verdict::TooLate
            | Verdict::Finished
            | Verdict::Unknown
            | Verdict::Taken { .. }
            | Verdict::Replayed
            | Verdict::Already
            | Verdict::StillWaiting
            | Verdict::TooLarge => {}
        }
        if let Some(order) = outcome.order {
            self.replay_answered(number, order, outcome);
        }
        // A letter that closes its lane may wait, sent back.
        for letter in std::iter::once(outcome.origin).chain(outcome.also.iter().copied()) {
            self.offer(number, letter);
        }
    }

    /// How long what has to be written to the shelves may wait for more, if there may be something.
    #[must_use]
    pub fn slack(&self) -> Option<Duration> {
        self.slack
    }

    /// Something has to be written to a shelf, now.
    pub(super) fn writes(&mut self, partition: i32) {
        self.writes_within(partition, Duration::ZERO);
    }

    /// Something has to be written to a shelf, and has so much time.
    pub(super) fn writes_within(&mut self, partition: i32, slack: Duration) {
        self.writers.insert(partition);
        // Who gives it up waits for it.
        let is_draining = self.partitions.get(partition).is_some_and(|partition| partition.draining);
        let slack = if self.stopping || is_draining { Duration::ZERO } else { slack };
        self.slack = Some(self.slack.map_or(slack, |least| least.min(slack)));
    }

    /// What has to be written waits for nothing more.
    pub fn hurry(&mut self) {
        self.slack = self.slack.map(|_| Duration::ZERO);
    }

    /// What has to be written to the shelves next, in this order.
    pub fn next_append(&mut self) -> Option<(i32, Entry)> {
        while let Some(partition) = self.writers.first().copied() {
            if let Some(entry) = self.next_append_to(partition) {
                return Some((partition, entry));
            }
        }
        None
    }

    /// The partitions to whose shelves something may have to be written.
    pub fn writers(&self) -> impl Iterator<Item = i32> {
        self.writers.iter().copied()
    }

    /// What has to be written next to the shelf of this partition.
    pub fn next_append_to(&mut self, partition: i32) -> Option<Entry> {
        let entry = self.partitions.aside(partition).and_then(|aside| aside.owner.next_entry());
        if entry.is_none() {
            self.writers.remove(&partition);
        }
        if self.writers.is_empty() {
            self.slack = None;
        }
        entry
    }

    /// An append failed, or nobody knows whether it did.
    pub fn append_failed(&mut self, partition: i32, claim: ClaimId, seq: u64) {
        if let Some(aside) = self.partitions.aside(partition) {
            aside.owner.append_failed(claim, seq);
            aside.set_free();
            self.writes(partition);
        }
    }

    /// Writes down how far a partition has come, if it has.
    pub fn checkpoint(&mut self, partition: i32) {
        let Some(state) = self.partitions.get_mut(partition) else { return };
        let Some(aside) = state.aside.as_mut().filter(|aside| aside.owner.is_running()) else { return };
        let progress = state.offsets.progress();
        if aside.owner.has_news(&progress) {
            aside.owner.checkpoint(progress);
            self.writes(partition);
        }
    }

    /// Whether everything that was done in this partition was read back from its shelf.
    #[must_use]
    pub fn is_written(&self, partition: i32) -> bool {
        let Some(state) = self.partitions.get(partition) else { return true };
        let Some(aside) = &state.aside else { return true };
        if !aside.owner.has_started() {
            return true;
        }
        aside.owner.is_settled() && !aside.owner.has_news(&state.offsets.progress())
    }

    /// A record is on the shelf: its source offset is complete.
    fn waits(&mut self, number: i32, wait: Arc<crate::shelf::Wait>) {
        if self.replay_waits(number, &wait) {
            return;
        }
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let offset = wait.record.at.offset;
        let Some(id) = partition.find(offset) else { return };
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        partition.active -= 1;
        partition.lanes.shelved(ticket.lane(), offset, &partition.aside, &mut self.steps);
        if let (Some(aside), Some(lane)) = (&mut partition.aside, ticket.lane()) {
            aside.let_go(lane);
        }
        let (due, attempts, record) = (wait.due(), ticket.attempts(), ticket.record.clone());
        let failure = ticket.past.take().map(|past| (Box::new(past.failure), past.class));
        self.counts.shelved += 1;
        self.actions.push_back(Action::Tell(Notice::Shelved { record, due, failure, attempts }));
        if let Some(replay) = wait.trail.replay.clone() {
            let (origin, fate) = (wait.record.at.clone(), Fate::Waiting);
            self.actions.push_back(Action::Tell(Notice::SentBack { replay, origin, fate }));
        }
        self.cache.insert(number, wait);
        self.forget_ticket(id);
        self.take_steps(number);
    }
}
