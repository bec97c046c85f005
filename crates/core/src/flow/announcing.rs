//! Lanes whose letters somebody is about to send back: from the announcement on everything of them is held, until
//! whoever announced it opens the lane, or its time is over.

use std::time::Duration;

use bytes::Bytes;

use super::ticket::Place;
use super::{Action, Flow, Notice, Now};
use crate::shelf::{LaneTag, Order, Outcome, Verdict};
use crate::time::Timestamp;

impl Flow {
    /// What is said to an order about a closed lane; none if that has to wait.
    pub(super) fn answer_about_lane(&mut self, number: i32, order: &Order, now: Now) -> Option<Outcome> {
        let partition = self.partitions.get_mut(number)?;
        let aside = partition.aside.as_mut()?;
        let closure = aside.owner.shelf.closure(order.origin)?.clone();
        let holder = closure.announced.as_ref().filter(|held| held.deadline > now.wall.millis());
        if let Some(held) = holder.filter(|held| Some(&held.job) != order.job.as_ref()) {
            let verdict = Verdict::Taken { deadline: held.deadline };
            let (id, job) = (order.id.clone(), Some(held.job.clone()));
            return Some(Outcome { job, ..Outcome::to(id, order.origin, verdict) });
        }
        match order.deed {
            crate::shelf::Deed::Announce { deadline } => {
                // From now on, or letters would be added for ever.
                partition.lanes.announce(&closure.lane, order.origin, &mut self.steps);
                self.take_steps(number);
                if self.is_lane_in_hand(number, &closure.lane) {
                    let aside = self.partitions.aside(number)?;
                    aside.owner.defer(&order.id);
                    aside.replaying.announcing.entry(closure.lane).or_default().push(order.id.clone());
                    return None;
                }
                let verdict = Verdict::Announced { deadline };
                Some(Outcome {
                    job: order.job.clone(),
                    ..Outcome::to(order.id.clone(), order.origin, verdict)
                })
            }
            _ => {
                let tag = aside.owner.shelf.tag(&closure.lane);
                if aside.owner.shelf.replays.is_about_lane(tag) {
                    // They come first: nothing may pass them.
                    aside.owner.defer(&order.id);
                    aside.replaying.resolving.entry(tag).or_default().push(order.id.clone());
                    self.hurry_replays(number, tag);
                    return None;
                }
                Some(self.opening(number, order.id.clone(), order.origin))
            }
        }
    }

    /// The outcome that opens a lane: where it was announced, behind all letters from this one on.
    fn opening(&self, number: i32, id: String, letter: i64) -> Outcome {
        let mut outcome = Outcome::to(id, letter, Verdict::Opened);
        let aside = self.partitions.get(number).and_then(|partition| partition.aside.as_ref());
        let Some((aside, closure)) =
            aside.and_then(|aside| Some((aside, aside.owner.shelf.closure(letter)?)))
        else {
            return outcome;
        };
        if closure.announced.is_some() {
            let others =
                aside.owner.shelf.closures().filter(|(other, of)| *other > letter && of.lane == closure.lane);
            // What is said of one of them now is said after this.
            let others = others.filter(|(other, _)| !aside.owner.is_busy(*other));
            outcome.also = others.map(|(other, _)| other).collect();
        }
        outcome
    }

    /// Whether a record of this lane may still become a letter.
    fn is_lane_in_hand(&self, number: i32, lane: &Bytes) -> bool {
        let Some(partition) = self.partitions.get(number) else { return false };
        let mut tickets = partition.ids().filter_map(|id| self.tickets.get(id));
        tickets.any(|ticket| {
            ticket.lane() == Some(lane) && !matches!(ticket.place, Place::Queued | Place::Shelving)
        })
    }

    /// Records of lanes that are to be announced have left memory.
    pub(super) fn reconsider_announcements(&mut self, number: i32) {
        let Some(aside) = self.partitions.aside(number) else { return };
        for id in aside.replaying.announcing.drain().flat_map(|(_, ids)| ids) {
            aside.owner.reconsider(id);
        }
    }

    /// A letter of this lane was answered: when it was the last, the lane may be opened.
    pub(super) fn reconsider_resolves(&mut self, number: i32, lane: LaneTag) {
        let Some(aside) = self.partitions.aside(number) else { return };
        if aside.owner.shelf.replays.is_about_lane(lane) {
            return;
        }
        for id in aside.replaying.resolving.remove(&lane).unwrap_or_default() {
            aside.owner.reconsider(id);
        }
    }

    /// Opens lanes whose letters were not sent back in time.
    pub(super) fn open_overdue(&mut self, now: Now) {
        while let Some((deadline, number, leader)) = self.deadlines.first().copied() {
            if deadline > now.wall.millis() {
                return;
            }
            self.deadlines.pop_first();
            let Some(aside) = self.partitions.aside(number) else { continue };
            let shelf = &aside.owner.shelf;
            let Some(closure) = shelf.closure(leader) else { continue };
            let Some(announced) = closure.announced.clone() else { continue };
            if announced.deadline > deadline {
                continue;
            }
            let is_busy =
                aside.owner.is_busy(leader) || shelf.replays.is_about_lane(shelf.tag(&closure.lane));
            if is_busy || !aside.owner.is_running() {
                // Looked at again in a moment.
                self.deadlines.insert((now.wall.plus(LOOK_AGAIN).millis(), number, leader));
                continue;
            }
            let outcome = self.opening(number, format!("deadline/{leader}"), leader);
            let (job, left) = (announced.job, outcome.also.len());
            self.actions.push_back(Action::Tell(Notice::Overdue { partition: number, leader, job, left }));
            if let Some(aside) = self.partitions.aside(number) {
                aside.owner.answer(outcome);
            }
            self.writes(number);
        }
    }

    /// When the next of them is due, by the clock that never jumps.
    pub(super) fn next_deadline(&self, now: Now) -> Option<Duration> {
        let (deadline, ..) = self.deadlines.first()?;
        Some(now.steady.saturating_add(Timestamp::from_millis(*deadline).since(now.wall)))
    }
}

/// When a lane is looked at again that cannot be opened now.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
