//! Who is next: timers, probes and free places.

use std::cmp::Reverse;
use std::time::Duration;

use super::gate::Gate;
use super::ticket::Place;
use super::{Action, Attempt, Flow, Id, Notice, Now, Slot};
use crate::settings::Blocking;

/// When a gate is looked at again that nobody can probe.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

impl Flow {
    /// Starts whatever may start now.
    pub fn advance(&mut self, now: Now) {
        self.wall = now.wall;
        self.wake(now.steady);
        self.open_overdue(now);
        while let Some(partition) = self.reconsider.pop_first() {
            self.reconsider_announcements(partition);
            self.answer(partition, now);
        }
        if !self.stopping {
            // Originals expire whether anything may start or not.
            self.roll_forward(now);
        }
        if self.stopping || self.paused {
            return;
        }
        if !self.gates.is_empty() {
            self.probe(now.steady);
        }
        if !self.gates.contains_key(&None) {
            self.read_ahead(now);
            self.release(now);
            self.dispatch();
        }
    }

    /// When [`Self::advance`] is wanted next, if nothing happens before.
    #[must_use]
    pub fn next_wake(&mut self, now: Now) -> Option<Duration> {
        let release = self.next_release(now);
        let parked = self.parked.peek().map(|Reverse((due, _))| *due);
        let may_probe = |gate: &&Gate| gate.probing.is_none() && !self.paused;
        let gates = self.gates.values().filter(may_probe).map(|gate| gate.until);
        let pass = self.next_pass(now);
        gates.chain(parked).chain(release).chain(pass).chain(self.next_deadline(now)).min()
    }

    fn wake(&mut self, now: Duration) {
        while let Some(Reverse((due, id))) = self.parked.peek().copied() {
            if due > now {
                return;
            }
            self.parked.pop();
            if let Some(ticket) = self.tickets.get_mut(id).filter(|ticket| ticket.place == Place::Parked) {
                ticket.place = Place::Ready;
                self.again.push_back(id);
            }
        }
    }

    fn dispatch(&mut self) {
        while self.running[Slot::First as usize] < self.settings.concurrency.get() {
            let Some(id) = self.fresh.pop_front() else { break };
            self.start_or_stall(id, Slot::First);
        }
        while self.running[Slot::Retry as usize] < self.settings.retry_concurrency.get() {
            let Some(id) = self.again.pop_front() else { break };
            self.start_or_stall(id, Slot::Retry);
        }
    }

    fn start_or_stall(&mut self, id: Id, slot: Slot) {
        // What was ready may have to wait behind a letter by now.
        let Some(ticket) = self.tickets.get(id).filter(|ticket| ticket.place == Place::Ready) else { return };
        let number = ticket.record.at.partition;
        let closed = !self.gates.is_empty() && self.gates.contains_key(&Some(number));
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if partition.draining {
            return;
        }
        let stands = partition.held || closed;
        let (offset, is_new) = (ticket.record.at.offset, ticket.shelved.is_none() && slot == Slot::First);
        if stands || (is_new && !self.is_waited_for(number, offset) && self.is_full(number)) {
            if let Some(partition) = self.partitions.get_mut(number) {
                partition.stalled.push_back(id);
            }
            return;
        }
        self.start(id, slot);
    }

    fn start(&mut self, id: Id, slot: Slot) {
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        self.starts += 1;
        ticket.started = self.starts;
        ticket.place = Place::Running;
        let number = ticket.attempts();
        let attempt = Attempt { id, record: ticket.record.clone(), number, slot };
        if let Some(partition) = self.partitions.get_mut(attempt.record.at.partition) {
            partition.active += 1;
        }
        self.running[slot as usize] += 1;
        self.counts.attempts += 1;
        self.actions.push_back(Action::Handle(attempt));
    }

    /// Lets one record through each gate whose pause is over.
    fn probe(&mut self, now: Duration) {
        let due = self.gates.iter().filter(|(_, gate)| gate.probing.is_none() && gate.until <= now);
        let due: Vec<_> = due.map(|(scope, _)| *scope).collect();
        for scope in due {
            match self.candidate(scope) {
                Some(id) => {
                    let slot = match self.tickets.get(id).is_some_and(|ticket| ticket.past.is_some()) {
                        true => Slot::Retry,
                        false => Slot::First,
                    };
                    if let Some(gate) = self.gates.get_mut(&scope) {
                        gate.probing = Some(id);
                    }
                    self.start(id, slot);
                }
                None => self.try_open_empty(scope, now),
            }
        }
    }

    /// The next record to try: in turn one that failed and one that has not.
    fn candidate(&mut self, scope: Option<i32>) -> Option<Id> {
        let gate = self.gates.get_mut(&scope)?;
        gate.fresh_next = !gate.fresh_next;
        let failed_first = gate.fresh_next;
        let failed = |flow: &mut Self| {
            let gate = flow.gates.get_mut(&scope)?;
            let may_start = |id: &Id| may_start(&flow.tickets, &flow.partitions, *id, Place::Blocked);
            let found = gate.blocked.iter().position(may_start)?;
            gate.blocked.remove(found)
        };
        match failed_first {
            true => failed(self).or_else(|| self.other(scope)),
            false => self.other(scope).or_else(|| failed(self)),
        }
    }

    /// A record that is ready and has not failed by this outage.
    fn other(&mut self, scope: Option<i32>) -> Option<Id> {
        let (tickets, partitions) = (&self.tickets, &mut self.partitions);
        match scope {
            None => {
                for queue in [&mut self.fresh, &mut self.again] {
                    let may_start = |id: &Id| may_start(tickets, partitions, *id, Place::Ready);
                    if let Some(found) = queue.iter().position(may_start) {
                        return queue.remove(found);
                    }
                }
                None
            }
            Some(number) => {
                let partition = partitions.get_mut(number).filter(|state| !state.held && !state.draining)?;
                let is_ready = |id: &Id| tickets.get(*id).is_some_and(|ticket| ticket.place == Place::Ready);
                let found = partition.stalled.iter().position(is_ready)?;
                partition.stalled.remove(found)
            }
        }
    }

    /// Nothing is there to probe with: a gate without records behind it keeps nobody out, and one whose
    /// records cannot be tried now, as their partition is held or being given up, is looked at again.
    fn try_open_empty(&mut self, scope: Option<i32>, now: Duration) {
        let Some(gate) = self.gates.get_mut(&scope) else { return };
        if gate.blocked.is_empty() {
            self.open(scope);
        } else {
            gate.until = now.saturating_add(LOOK_AGAIN);
        }
    }

    pub(super) fn open(&mut self, scope: Option<i32>) {
        let Some(gate) = self.gates.remove(&scope) else { return };
        for id in gate.blocked {
            if let Some(ticket) = self.tickets.get_mut(id).filter(|ticket| ticket.place == Place::Blocked) {
                ticket.place = Place::Ready;
                self.again.push_back(id);
            }
        }
        self.actions.push_back(Action::Tell(Notice::Opened { partition: scope }));
        if let Some(partition) = scope {
            self.unstall(partition);
        }
    }

    /// What was ready while the partition stood still is next again.
    pub(super) fn unstall(&mut self, partition: i32) {
        let closed = self.gates.contains_key(&Some(partition));
        let Some(state) = self.partitions.get_mut(partition).filter(|state| !state.held && !closed) else {
            return;
        };
        for id in state.stalled.drain(..).rev() {
            match self.tickets.get(id).is_some_and(|ticket| ticket.past.is_some()) {
                true => self.again.push_front(id),
                false => self.fresh.push_front(id),
            }
        }
    }

    pub(super) fn scope(&self, partition: i32) -> Option<i32> {
        match self.settings.blocking {
            Blocking::Subscription => None,
            Blocking::Partition => Some(partition),
        }
    }
}

fn may_start(tickets: &super::Tickets, partitions: &super::Partitions, id: Id, place: Place) -> bool {
    let ticket = tickets.get(id).filter(|ticket| ticket.place == place);
    let partition = ticket.and_then(|ticket| partitions.get(ticket.record.at.partition));
    partition.is_some_and(|partition| !partition.held && !partition.draining)
}
