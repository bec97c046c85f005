//! Records on their way to the shelf, letters that close lanes, and orders.

use std::sync::Arc;
use std::time::Duration;

use super::ticket::{Place, Ticket};
use super::{Flow, Id, Now};
use crate::headers::Trail;
use crate::lanes::Shelved;
use crate::shelf::{Deed, Order, Outcome, Stage, Verdict, Wait};
use crate::time::Timestamp;

/// The longest that an entry waits for others.
const LONGEST: Duration = Duration::from_millis(200);

/// The longest where no other record has to wait for this one.
const LONGEST_ALONE: Duration = Duration::from_millis(500);

/// How long the entry of a record that is due then may wait for others to be written with: not so long that it matters.
/// Meanwhile there is time for what has none, and many entries cost less together.
fn slack(due: Timestamp, now: Timestamp) -> Duration {
    (due.since(now) / 8).min(LONGEST)
}

/// The same for a record without a lane.
fn slack_alone(due: Timestamp, now: Timestamp) -> Duration {
    (due.since(now) / 4).min(LONGEST_ALONE)
}

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
        let slack = match ticket.lane() {
            Some(_) => slack(due, self.wall),
            None => slack_alone(due, self.wall),
        };
        self.writes_within(number, slack);
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
        // It comes back when those before it are done, which is not before the first of them is due. There may be many of
        // them, and all have to be there by then.
        let slack = self.first_due(number, id).map_or(Duration::ZERO, |due| slack(due, self.wall) / 8);
        self.writes_within(number, slack);
    }

    /// When the first of this record's lane is due, in memory or on the shelf.
    fn first_due(&self, number: i32, id: Id) -> Option<Timestamp> {
        let (partition, lane) = (self.partitions.get(number)?, self.tickets.get(id)?.lane()?);
        let on_the_shelf = partition.aside.of(lane).map(|ahead| ahead.first);
        let first = partition.lanes.first(lane).into_iter().chain(on_the_shelf).min()?;
        self.due(number, first)
    }

    /// When a record is due that is on the shelf, or on its way there.
    fn due(&self, number: i32, origin: i64) -> Option<Timestamp> {
        let partition = self.partitions.get(number)?;
        match partition.find(origin) {
            Some(id) => self.tickets.get(id)?.past.as_ref()?.trail.due,
            None => Some(partition.aside.as_ref()?.owner.shelf.waiting.get(origin)?.due),
        }
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
        let number = ticket.record.at.partition;
        self.writes(number);
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
        self.go_on_with_replays(number);
        let Some(aside) = self.partitions.aside(number).filter(|aside| aside.owner.is_running()) else {
            return;
        };
        for order in aside.owner.unanswered() {
            let Some(outcome) = self.answer_to(number, order, now) else { continue };
            if let Some(aside) = self.partitions.aside(number) {
                aside.owner.answer(outcome);
                // Only now: what has time to be written would have none whenever something is read back.
                self.writes(number);
            }
        }
    }

    fn answer_to(&mut self, number: i32, order: Order, now: Now) -> Option<Outcome> {
        let partition = self.partitions.get(number)?;
        let (offsets, records) = (&partition.offsets, &partition.records);
        let shelf = &partition.aside.as_ref()?.owner.shelf;
        let gone = match records.get(order.origin) {
            Some(_) => Verdict::TooLate,
            None if offsets.is_behind(order.origin) => Verdict::Finished,
            None => Verdict::Unknown,
        };
        let verdict = match (order.deed, shelf.waiting.get(order.origin)) {
            (Deed::Resolve | Deed::Announce { .. }, _) if shelf.is_closing(order.origin) => {
                return self.answer_about_lane(number, &order, now);
            }
            (_, None) => gone,
            (deed, Some(waiting)) => match (waiting.stage, deed) {
                (Stage::Finished, _) => Verdict::Finished,
                (_, Deed::Resolve | Deed::Announce { .. }) => Verdict::Unknown,
                (Stage::Out, _) => Verdict::TooLate,
                (Stage::Waiting | Stage::Held, _) if waiting.cancelled => Verdict::TooLate,
                (Stage::Waiting | Stage::Held, Deed::Release) => Verdict::Due { due: now.wall.millis() },
                (Stage::Waiting | Stage::Held, Deed::Reschedule { due }) => Verdict::Due { due },
                (Stage::Waiting | Stage::Held, Deed::Cancel) => Verdict::Cancelled,
            },
        };
        Some(Outcome::to(order.id, order.origin, verdict))
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
                ..ticket.untried(&settings.group)
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
