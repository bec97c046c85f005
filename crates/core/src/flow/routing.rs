//! What becomes of an attempt that ended: complete, or the route that the rules give.

use hashbrown::hash_map::Entry;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::gate::Gate;
use super::ticket::{Burial, Lane, Past, Place, Ticket};
use super::{Action, Fate, Flow, Id, Notice, Now, Slot};
use crate::class::Class;
use crate::classify::Subject;
use crate::failure::Failure;
use crate::headers::Trail;
use crate::record::Record;
use crate::route::{History, Reason, Route};
use crate::shelf::Stage;

/// The shortest pause of an outage.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl Flow {
    /// An attempt ended.
    pub fn handled(&mut self, id: Id, slot: Slot, outcome: Result<(), Failure>, now: Now) {
        self.leave_handler(slot);
        self.conclude(id, outcome, now);
    }

    /// The handler is done with a record, so that another may be tried, but how the attempt ended is not
    /// known yet: [`Self::conclude`] will be told.
    pub fn leave_handler(&mut self, slot: Slot) {
        self.running[slot as usize] -= 1;
    }

    /// How an attempt ended that has left the handler.
    pub fn conclude(&mut self, id: Id, outcome: Result<(), Failure>, now: Now) {
        let Some(ticket) = self.tickets.get(id) else { return };
        let partition = self.partitions.get_mut(ticket.record.at.partition);
        partition.expect("a record's partition is known").active -= 1;
        match outcome {
            Ok(()) => self.succeeded(id, now),
            Err(failure) => self.failed(id, failure, now),
        }
    }

    fn succeeded(&mut self, id: Id, now: Now) {
        let Some(ticket) = self.tickets.get(id) else { return };
        self.counts.handled += 1;
        self.last_success = self.last_success.max(ticket.started);
        match ticket.lane() {
            Some(lane) => self.surge.handled(lane, now.steady),
            None => self.surge.handled(&without_lane(&ticket.record), now.steady),
        }
        self.loss.count(false, now.steady);
        let scopes = [None, Some(ticket.record.at.partition)];
        if ticket.replay(&self.settings.group).is_some() {
            self.note_end(id, Fate::Handled);
        }
        self.complete(id);
        if !self.gates.is_empty() {
            for scope in scopes {
                if self.gates.get(&scope).is_some_and(|gate| gate.probing == Some(id)) {
                    self.open(scope);
                }
            }
        }
    }

    fn failed(&mut self, id: Id, failure: Failure, now: Now) {
        let behind = self.predecessor(id, &failure);
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        let subject = Subject { topic: &ticket.record.at.topic, headers: &ticket.record.headers };
        let (class, _) = self.settings.rules.classify(&failure, subject);
        self.counts.failed[class as usize] += 1;
        let undecodable = failure.undecodable;
        let asked = failure.retry_after;
        let past = match ticket.past.take() {
            Some(past) => Box::new(Past { failure, class, ..*past }),
            None => {
                // It may stay for long: in memory of its own.
                ticket.record = Arc::new(ticket.record.detached());
                if let Lane::Own(key) = &mut ticket.lane {
                    *key = Bytes::copy_from_slice(key);
                }
                Box::new(first(ticket, &self.settings, failure, class))
            }
        };
        let past = ticket.past.insert(past);
        let trail = Arc::make_mut(&mut past.trail);
        (trail.due, trail.leader) = (None, None);
        trail.note(&past.failure, class, now.wall);
        // Another key was tried later than this one at its failure before, and it went well: no outage.
        let alone = past.blocked_at.is_some_and(|started| self.last_success > started);
        let class = if class == Class::Outage && alone { Class::NotReady } else { class };
        let mut route = match behind {
            // It has no delay of its own: it is tried when that one is complete.
            Some(_) => Route::Shelve { due: now.wall },
            None => self.settings.rules.route(class, asked, &past.history, now.wall),
        };
        if undecodable && route == Route::Bury(Reason::Permanent) {
            route = Route::Bury(Reason::Undecodable);
        }
        let mut surge = false;
        if gives_up_in_place(&route) && !alone && behind.is_none() {
            surge = match ticket.lane.key(&ticket.record) {
                Some(lane) => self.surge.failed(lane, now.steady),
                None => self.surge.failed(&without_lane(&ticket.record), now.steady),
            };
            if surge {
                route = self.settings.rules.route(Class::Outage, asked, &past.history, now.wall);
            }
        }
        past.history = past.history.clone().after(&route, now.wall);
        let trail = Arc::make_mut(&mut past.trail);
        trail.retries = Some(past.history.retries);
        trail.first_failed_at = past.history.first_failed_at;
        let wait = wait(&route, now);
        self.actions.push_back(Action::Tell(Notice::Routed { id, class, route: route.clone(), wait }));
        self.carry_out(id, &route, behind, surge, now);
    }

    /// The record that this one waits for, if it named one that is set aside in the same partition.
    fn predecessor(&self, id: Id, failure: &Failure) -> Option<i64> {
        let named = failure.follows.as_ref()?;
        let own = &self.tickets.get(id)?.record.at;
        let partition = self.partitions.get(own.partition)?;
        let shelf = &partition.aside.as_ref()?.owner.shelf;
        let is_before =
            named.topic == own.topic && named.partition == own.partition && named.offset < own.offset;
        let is_aside = |offset: i64| {
            let waits = shelf.waiting.get(offset).is_some_and(|waiting| waiting.stage != Stage::Finished);
            let place = partition.find(offset).and_then(|id| Some(self.tickets.get(id)?.place));
            waits || shelf.is_closing(offset) || place == Some(Place::Shelving)
        };
        (is_before && is_aside(named.offset)).then_some(named.offset)
    }

    fn carry_out(&mut self, id: Id, route: &Route, behind: Option<i64>, surge: bool, now: Now) {
        let Some(number) = self.tickets.get(id).map(|ticket| ticket.record.at.partition) else { return };
        let scope = self.scope(number);
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        match route {
            Route::Shelve { due } if self.partitions.aside(number).is_some() => {
                self.shelve(id, *due, behind);
            }
            // Aside in memory: its lane waits, its neighbours go on.
            Route::Again { .. } | Route::Shelve { .. } | Route::Forward { .. } => {
                let due = now.steady.saturating_add(wait(route, now).unwrap_or_default());
                self.place(id, Place::Parked);
                self.parked.push(Reverse((due, id)));
            }
            Route::Block { .. } => {
                self.block(id, scope, wait(route, now).unwrap_or_default(), surge, now);
                return;
            }
            Route::Bury(reason) => {
                ticket.place = Place::Burying;
                ticket.burial = Some(Burial { reason: *reason, leader: None });
                if let Some(partition) = self.partitions.get_mut(number) {
                    partition.active += 1;
                }
                self.actions.push_back(Action::Bury(id));
            }
            Route::Drop(reason) => {
                let record = ticket.record.clone();
                self.counts.dropped += 1;
                self.loss.count(true, now.steady);
                self.note_end(id, Fate::Dropped);
                self.actions.push_back(Action::Tell(Notice::Dropped { record, reason: *reason }));
                self.complete(id);
            }
        }
        if let Some(gate) = self.gates.get_mut(&scope) {
            gate.release(id, now.steady);
        }
    }

    fn block(&mut self, id: Id, scope: Option<i32>, wait: Duration, surge: bool, now: Now) {
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.place = Place::Blocked;
            let started = ticket.started;
            if let Some(past) = &mut ticket.past {
                past.blocked_at = Some(started);
            }
        }
        // Whatever was asked for: a gate without a pause is none.
        let wait = wait.max(SHORTEST_PAUSE);
        match self.gates.entry(scope) {
            Entry::Occupied(mut gate) => gate.get_mut().block(id, wait, now.steady),
            Entry::Vacant(open) => {
                open.insert(Gate::close(id, wait, now.steady));
                self.actions.push_back(Action::Tell(Notice::Blocked { partition: scope, surge }));
            }
        }
    }

    fn place(&mut self, id: Id, place: Place) {
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.place = place;
        }
    }
}

fn first(ticket: &Ticket, settings: &super::Settings, failure: Failure, class: Class) -> Past {
    let record = &ticket.record;
    let trail = Trail {
        origin: Some(record.at.clone()),
        origin_timestamp: record.timestamp,
        group: Some(settings.group.clone()),
        instance: Some(settings.instance.clone()),
        content_type: record.headers.text("content-type").map(ToOwned::to_owned),
        ..ticket.untried(&settings.group)
    };
    Past { trail: Arc::new(trail), history: History::of(record.at.clone()), failure, class, blocked_at: None }
}

/// Whether the record leaves the place where only its own lane waits for it.
fn gives_up_in_place(route: &Route) -> bool {
    match route {
        Route::Bury(_) | Route::Drop(_) | Route::Shelve { .. } | Route::Forward { .. } => true,
        Route::Again { .. } | Route::Block { .. } => false,
    }
}

fn wait(route: &Route, now: Now) -> Option<Duration> {
    match route {
        Route::Again { after } => Some(*after),
        Route::Block { until: due } | Route::Shelve { due } | Route::Forward { due, .. } => {
            Some(due.since(now.wall))
        }
        Route::Bury(_) | Route::Drop(_) => None,
    }
}

/// What stands for the key of a record that has none: itself.
fn without_lane(record: &Record) -> [u8; 12] {
    let mut own = [0; 12];
    own[..4].copy_from_slice(&record.at.partition.to_be_bytes());
    own[4..].copy_from_slice(&record.at.offset.to_be_bytes());
    own
}
