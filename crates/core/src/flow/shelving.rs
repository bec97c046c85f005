//! Records on their way to the shelf, letters that close lanes, and orders.

use std::sync::Arc;

use super::ticket::{Place, Ticket};
use super::{Flow, Id, Now};
use crate::headers::Trail;
use crate::shelf::{Deed, Outcome, Stage, Verdict, Wait};
use crate::time::Timestamp;

impl Flow {
    /// Sets a record aside until `due`, or, if it follows another, until that is complete.
    pub(super) fn shelve(&mut self, id: Id, due: Timestamp, behind: Option<i64>) {
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        let (number, offset) = (ticket.record.at.partition, ticket.record.at.offset);
        ticket.place = Place::Shelving;
        let wait = wait_of(ticket, due, behind, &self.settings);
        let wait = Arc::new(self.written(wait));
        let Some(ticket) = self.tickets.get(id) else { return };
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(aside) = &mut partition.aside else { return };
        aside.owner.shelve(wait);
        partition.active += 1;
        partition.lanes.shelve(ticket.lane(), offset, &partition.aside, &mut self.steps);
        self.writers.insert(number);
        self.take_steps(number);
    }

    /// A record has to wait behind another of its lane.
    pub(super) fn follow(&mut self, number: i32, offset: i64, leader: i64, now: Timestamp) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if partition.aside.is_none() {
            // Held in memory: it is queued in its lane and runs when its turn comes.
            return;
        }
        let Some(id) = partition.find(offset) else { return };
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        if ticket.shelved.is_some() {
            self.back_to_the_shelf(number, id);
            return;
        }
        ticket.place = Place::Shelving;
        let wait = wait_of(ticket, now, None, &self.settings);
        let wait = Arc::new(self.written(wait));
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(aside) = &mut partition.aside else { return };
        debug_assert!(leader < offset);
        aside.owner.shelve(wait);
        partition.active += 1;
        self.writers.insert(number);
    }

    /// A letter is confirmed. Says whether its lane has to be closed in the log before the record is complete.
    pub(super) fn close_lane(&mut self, id: Id) -> bool {
        let Some(ticket) = self.tickets.get_mut(id) else { return false };
        let Some(partition) = self.partitions.get_mut(ticket.record.at.partition) else { return false };
        let Some(aside) = &mut partition.aside else { return false };
        let Some(lane) = ticket.lane().cloned() else { return false };
        if !self.settings.followers.closes() {
            return false;
        }
        aside.owner.close(ticket.record.at.offset, lane);
        ticket.place = Place::Closing;
        self.writers.insert(ticket.record.at.partition);
        true
    }

    /// The log says that a letter closed its lane: the record is complete.
    pub(super) fn closed(&mut self, number: i32, offset: i64) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let Some(id) = partition.find(offset) else { return };
        partition.active -= 1;
        self.forget_ticket(id);
        self.wake_dependents(number, offset);
        self.make_room(number);
    }

    /// Answers the orders that were read.
    pub(super) fn answer(&mut self, number: i32, now: Now) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let (offsets, records) = (&partition.offsets, &partition.records);
        let Some(aside) = partition.aside.as_mut().filter(|aside| aside.owner.is_running()) else { return };
        for order in aside.owner.unanswered() {
            let gone = match records.get(order.origin) {
                Some(_) => Verdict::TooLate,
                None if offsets.is_behind(order.origin) => Verdict::Finished,
                None => Verdict::Unknown,
            };
            let shelf = &aside.owner.shelf;
            let verdict = match (order.deed, shelf.waiting.get(order.origin)) {
                (Deed::Resolve, _) if shelf.is_closing(order.origin) => Verdict::Opened,
                (_, None) => gone,
                (deed, Some(waiting)) => match (waiting.stage, deed) {
                    (Stage::Finished, _) => Verdict::Finished,
                    (Stage::Waiting | Stage::Out | Stage::Held, Deed::Resolve) => Verdict::Unknown,
                    (Stage::Out, _) => Verdict::TooLate,
                    (Stage::Waiting | Stage::Held, _) if waiting.cancelled => Verdict::TooLate,
                    (Stage::Waiting | Stage::Held, Deed::Release) => Verdict::Due { due: now.wall.millis() },
                    (Stage::Waiting | Stage::Held, Deed::Reschedule { due }) => Verdict::Due { due },
                    (Stage::Waiting | Stage::Held, Deed::Cancel) => Verdict::Cancelled,
                },
            };
            let outcome = Outcome { id: order.id, origin: order.origin, verdict };
            aside.owner.answer(outcome);
        }
        self.writers.insert(number);
    }
}

/// The entry of a record that waits.
fn wait_of(ticket: &mut Ticket, due: Timestamp, behind: Option<i64>, settings: &super::Settings) -> Wait {
    let replays = ticket.shelved.map(|done| done.replay).filter(|replay| *replay > 0);
    let mut untried;
    let (record, trail) = match &mut ticket.past {
        Some(past) => (ticket.record.clone(), &mut past.trail),
        // A follower that never reached the handler.
        None => {
            let record = Arc::new(ticket.record.detached());
            untried = Arc::new(Trail {
                group: Some(settings.group.clone()),
                instance: Some(settings.instance.clone()),
                lane: ticket.lane.detached(&record),
                attempt: Some(0),
                ..Trail::default()
            });
            (record, &mut untried)
        }
    };
    let said = Arc::make_mut(trail);
    said.origin = Some(record.at.clone());
    said.origin_timestamp = record.timestamp;
    said.due = Some(due);
    said.replays = replays.or(said.replays);
    said.leader = behind.map(|offset| crate::Origin { offset, ..record.at.clone() });
    Wait { trail: trail.clone(), record }
}
