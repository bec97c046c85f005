//! Records that come back from the shelf: when they are due, and it is their turn.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::partition::Aside;
use super::ticket::{Burial, Lane, Past, Place, Ticket};
use super::{Action, Flow, Id, Notice, Now};
use crate::class::Class;
use crate::failure::{Cause, Failure};
use crate::headers::Trail;
use crate::route::{History, Reason};
use crate::shelf::{Stage, Wait, Waiting, is_it};

impl Flow {
    /// Brings back what is due.
    pub(super) fn release(&mut self, now: Now) {
        for number in self.releasable() {
            while self.has_room_for_returns() {
                let Some(aside) = self.partitions.aside(number) else { break };
                let Some(origin) = aside.owner.shelf.waiting.pop_due(now.wall) else { break };
                self.release_one(number, origin);
            }
        }
    }

    /// Partitions of which something may be released now.
    fn releasable(&self) -> Vec<i32> {
        let is_open =
            !self.stopping && !self.paused && !self.gates.contains_key(&None) && self.has_room_for_returns();
        let all = self.partitions.iter().filter(|(number, partition)| {
            let open = !partition.held && !partition.draining && !self.gates.contains_key(&Some(*number));
            let waits = |aside: &Aside| aside.owner.is_running() && !aside.owner.shelf.waiting.is_empty();
            is_open && open && partition.aside.as_ref().is_some_and(waits)
        });
        all.map(|(number, _)| number).collect()
    }

    /// When the next record is due, by the clock that never jumps.
    pub(super) fn next_release(&mut self, now: Now) -> Option<Duration> {
        let mut next = None;
        for number in self.releasable() {
            let due = self.partitions.aside(number).and_then(|aside| aside.owner.shelf.waiting.next_due());
            next = next.into_iter().chain(due).min();
        }
        next.map(|due| now.steady.saturating_add(due.since(now.wall)))
    }

    /// What is in memory or on its way there has its limit, like everything.
    fn has_room_for_returns(&self) -> bool {
        let most = (self.settings.retry_concurrency.get() as usize).saturating_mul(4).max(1_000);
        self.returns < most && self.bytes < self.settings.limits.bytes
    }

    fn release_one(&mut self, number: i32, origin: i64) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let passed = partition.offsets.passed();
        let Some(aside) = &mut partition.aside else { return };
        if aside.owner.is_bound(origin) {
            // Offered again when that is read back.
            return;
        }
        if origin >= passed {
            aside.unpassed.insert(origin);
            return;
        }
        let leader = aside.owner.shelf.behind(origin);
        let is_open = |leader: &i64| {
            let waits = aside.owner.shelf.waiting.get(*leader).map(|waiting| waiting.stage);
            waits.is_some_and(|stage| stage != Stage::Finished) || aside.owner.shelf.is_closing(*leader)
        };
        if let Some(leader) =
            leader.filter(|leader| is_open(leader) || partition.records.get(*leader).is_some())
        {
            aside.dependents.entry(leader).or_default().push(origin);
            return;
        }
        self.bring(number, origin);
    }

    /// Takes a waiting record into memory, whether it is due or not.
    pub(super) fn bring(&mut self, number: i32, origin: i64) {
        let Some(aside) = self.partitions.aside(number) else { return };
        let Some(waiting) = aside.owner.shelf.waiting.get(origin) else { return };
        match waiting.stage {
            Stage::Waiting | Stage::Held => {}
            Stage::Out | Stage::Finished => return,
        }
        aside.owner.shelf.waiting.set_stage(origin, Stage::Out);
        self.returns += 1;
        match self.cache.take(number, origin) {
            Some(wait) => self.back(number, wait),
            None => {
                let Some(aside) = self.partitions.aside(number) else { return };
                aside.fetching.insert(waiting.at, origin);
                if !self.pass.as_ref().is_some_and(|pass| pass.will_meet(number, waiting.at)) {
                    self.actions.push_back(Action::Fetch { partition: number, at: waiting.at });
                }
            }
        }
    }

    /// An entry was read back from the shelf: one that was asked for, or one beside it.
    pub fn fetched(&mut self, partition: i32, at: i64, wait: Option<Arc<Wait>>) {
        if let Some(pass) = self.pass.as_mut().filter(|pass| pass.will_meet(partition, at)) {
            pass.at = at;
        }
        if self.replay_fetched(partition, at, wait.as_ref()) {
            return;
        }
        let Some(aside) = self.partitions.aside(partition) else { return };
        let carried = aside.carry.as_mut().and_then(|carry| carry.fetching.remove(&at));
        let asked = aside.fetching.remove(&at);
        let waiting = |origin: i64| aside.owner.shelf.waiting.get(origin);
        let stands = |waiting: &Waiting, wait: &Wait| waiting.at == at || is_it(waiting, wait.done());
        let found = wait.and_then(|wait| {
            let waiting = waiting(wait.record.at.offset).filter(|waiting| stands(waiting, &wait))?;
            (waiting.at == at || asked == Some(waiting.origin)).then_some((wait, waiting))
        });
        let Some((wait, waiting)) = found else {
            match asked.and_then(waiting) {
                // It was carried to the end of the log meanwhile.
                Some(moved) if moved.at != at => {
                    aside.fetching.insert(moved.at, moved.origin);
                    self.actions.push_back(Action::Fetch { partition, at: moved.at });
                }
                _ if asked.or(carried).is_some() => {
                    self.actions.push_back(Action::Tell(Notice::Gone { partition, at }));
                }
                _ => {}
            }
            return;
        };
        if carried.is_some() {
            self.carry_one(partition, &wait);
            self.carry_more(partition);
        }
        match (asked, waiting.stage) {
            (Some(_), Stage::Out) => self.back(partition, wait),
            (None, Stage::Waiting) => self.cache.insert(partition, wait),
            _ => {}
        }
    }

    /// An entry is back in memory: the record, or where its original is.
    fn back(&mut self, number: i32, wait: Arc<Wait>) {
        if !wait.is_pointer() {
            self.returned(number, wait, false);
            return;
        }
        let Some(aside) = self.partitions.aside(number) else { return };
        let offset = wait.record.at.offset;
        aside.recalling.insert(offset, wait);
        self.actions.push_back(Action::Recall { partition: number, offset });
    }

    /// A record is back in memory, or what is left of it if its original is gone.
    pub(super) fn returned(&mut self, number: i32, wait: Arc<Wait>, is_gone: bool) {
        self.lateness.observe(self.wall.since(wait.due()), 1);
        let lane = match wait.lane() {
            Some(lane) => Lane::Own(lane.clone()),
            None => Lane::None,
        };
        let record = wait.record.clone();
        let (offset, bytes) = (record.at.offset, record.size());
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let cancelled = partition.aside.as_ref().and_then(|aside| aside.owner.shelf.waiting.get(offset));
        let cancelled = cancelled.is_some_and(|waiting| waiting.cancelled);
        let mut ticket = Ticket {
            record,
            lane,
            past: if is_gone { Some(without_original(&wait)) } else { past(&wait) },
            burial: None,
            place: Place::Queued,
            bytes,
            started: 0,
            shelved: Some(wait.done()),
            sent_back: None,
        };
        if ticket.past.is_none() && wait.trail.replay.is_some() {
            ticket.sent_back = Some(wait.trail.clone());
        }
        // What it knows is the ticket's alone now.
        drop(wait);
        self.counts.released += 1;
        partition.bytes += bytes;
        self.bytes += bytes;
        let reason = match (cancelled, is_gone) {
            (true, _) => Some(Reason::Cancelled),
            (false, true) => Some(Reason::Expired),
            (false, false) => None,
        };
        if let Some(reason) = reason {
            ticket.place = Place::Burying;
            ticket.burial = Some(Burial { reason, leader: None });
            let id = self.tickets.insert(ticket);
            partition.returned.insert(offset, id);
            partition.active += 1;
            self.actions.push_back(Action::Bury(id));
            return;
        }
        let key = match &ticket.lane {
            Lane::Own(lane) => Some(lane.clone()),
            Lane::Key | Lane::None => None,
        };
        let id = self.tickets.insert(ticket);
        partition.returned.insert(offset, id);
        partition.lanes.come_back(key.as_ref(), offset, &partition.aside, &mut self.steps);
        self.take_steps(number);
    }

    /// A record that came back too early, as its lane is closed or one before it has to wait: it stays on the shelf.
    pub(super) fn back_to_the_shelf(&mut self, number: i32, id: Id) {
        let Some(ticket) = self.tickets.get(id) else { return };
        let offset = ticket.record.at.offset;
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if let (Some(aside), Some(lane)) = (&mut partition.aside, ticket.lane()) {
            aside.hold_back(offset, lane);
        }
        let mut none = Vec::new();
        partition.lanes.shelved(ticket.lane(), offset, &partition.aside, &mut none);
        self.steps.append(&mut none);
        self.forget_ticket(id);
    }

    /// The lane that a letter closed is open again.
    pub(super) fn opened(&mut self, number: i32, letter: i64, also: &[i64]) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(key) = partition.lanes.closed_by(letter) else { return };
        self.open_lane(number, &key, letter, also);
    }

    /// The same where the lane is known.
    pub(super) fn open_lane(&mut self, number: i32, key: &Bytes, letter: i64, also: &[i64]) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let letters = std::iter::once(letter).chain(also.iter().copied());
        // It may be a letter once more by now, and the log will say so after this.
        let is_again =
            |letter: i64| partition.aside.as_ref().is_some_and(|aside| aside.owner.is_writing(letter));
        let letters = letters.map(|letter| (letter, is_again(letter)));
        partition.lanes.resolve_all(key, letters, &partition.aside, &mut self.steps);
        if let Some(aside) = &mut partition.aside {
            aside.let_go(key);
        }
        self.deadlines.retain(|(_, of, leader)| (*of, *leader) != (number, letter));
        self.take_steps(number);
        for letter in std::iter::once(letter).chain(also.iter().copied()) {
            self.wake_dependents(number, letter);
        }
    }

    /// A record that was taken out of the queue of due ones may be looked at again.
    pub(super) fn offer(&mut self, number: i32, origin: i64) {
        if let Some(aside) = self.partitions.aside(number) {
            aside.owner.shelf.waiting.offer(origin);
        }
    }

    /// What named this record as its predecessor may go on.
    pub(super) fn wake_dependents(&mut self, number: i32, origin: i64) {
        let Some(aside) = self.partitions.aside(number) else { return };
        for dependent in aside.dependents.remove(&origin).unwrap_or_default() {
            aside.owner.shelf.waiting.offer(dependent);
        }
    }

    /// The reader has come further: what waited for that may go on.
    pub(super) fn pass(&mut self, number: i32) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(aside) = partition.aside.as_mut().filter(|aside| !aside.unpassed.is_empty()) else { return };
        let later = aside.unpassed.split_off(&partition.offsets.passed());
        for origin in std::mem::replace(&mut aside.unpassed, later) {
            aside.owner.shelf.waiting.offer(origin);
        }
    }
}

/// What went wrong with it before, as its headers say; nothing if it never reached the handler.
fn past(wait: &Wait) -> Option<Box<Past>> {
    wait.trail.attempt.filter(|attempt| *attempt > 0)?;
    Some(all_known(wait))
}

/// What is told of a record whose original is gone.
fn without_original(wait: &Wait) -> Box<Past> {
    let mut past = all_known(wait);
    let what =
        format!("{} is gone: it waited as a pointer, and is not there any more to be read", wait.record.at);
    let mut gone = Failure::new(Cause::new("OriginalGone", what));
    if wait.trail.error_type.is_some() {
        gone = gone.caused_by(past.failure.outermost().clone());
    }
    Arc::make_mut(&mut past.trail).tell(&gone);
    past.failure = gone;
    past
}

fn all_known(wait: &Wait) -> Box<Past> {
    let trail = &wait.trail;
    let history = History {
        origin: wait.record.at.clone(),
        first_failed_at: trail.first_failed_at,
        retries: trail.retries.unwrap_or_default(),
    };
    let class = trail.class.unwrap_or(Class::NotReady);
    let failure = failure(trail).classed(class);
    // It was set aside although it met an outage, as others did not: any success since speaks against one.
    let blocked_at = (class == Class::Outage).then_some(0);
    Box::new(Past { trail: trail.clone(), history, failure, class, blocked_at })
}

fn failure(trail: &Trail) -> Failure {
    let outermost = Cause::new(
        trail.error_type.clone().unwrap_or_default(),
        trail.error_message.clone().unwrap_or_default(),
    );
    Failure::new(outermost)
}
