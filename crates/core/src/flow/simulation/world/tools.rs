//! Tools that send letters back: one at a time, or all of a lane as a job that announces itself and may die.

use std::sync::Arc;

use super::*;
use crate::flow::ticket::{Burial, Place};
use crate::headers::Trail;
use crate::shelf::Wait;

/// A job that sends back the letters of one lane.
pub(super) struct Tool {
    job: String,
    leader: i64,
    lane: Vec<u8>,
    deadline: i64,
    /// The letters it found once it was answered, the first first.
    letters: Option<VecDeque<i64>>,
}

impl World {
    /// Somebody sends one letter back, or something that is none, or once more what was sent back.
    pub(super) fn send_back(&mut self) {
        if self.source.is_empty() {
            return;
        }
        let letters: Vec<_> = self.buried.iter().copied().collect();
        let origin = match self.roll(12) {
            0 => self.roll(self.source.len() as u64) as i64,
            // Nothing of that origin was ever there.
            1 => 1_000_000,
            _ if letters.is_empty() => return,
            _ => letters[self.roll(letters.len() as u64) as usize],
        };
        let is_new = self.roll(3) > 0;
        self.order_back(origin, is_new, "by-hand");
        if self.roll(4) == 0 {
            self.note("letters sent back twice");
            self.order_back(origin, false, "by-hand");
        }
    }

    fn order_back(&mut self, origin: i64, is_new: bool, job: &str) {
        let before = (1..).take_while(|replay| self.orders_back((origin, *replay)) > 0).last().unwrap_or(0);
        let replays = if is_new { before + 1 } else { before.max(1) };
        let record = match origin < self.source.len() as i64 {
            true => self.original(origin),
            false => Record { at: self.origin(origin), ..self.original(0) },
        };
        self.orders += 1;
        let trail = Trail {
            origin: Some(record.at.clone()),
            origin_timestamp: record.timestamp,
            lane: record.key.clone(),
            replay: Some(format!("{job}/{}", self.orders)),
            replays: Some(replays),
            ..Trail::default()
        };
        let entry = Entry::Replay(Arc::new(Wait { record: record.into(), trail: trail.into() }));
        match self.roll(6) {
            0 if !self.calm && job == "by-hand" => self.late.push(entry),
            _ => drop(self.append(entry)),
        }
    }

    /// How often it was ordered that a letter is sent back for this time.
    pub(super) fn orders_back(&self, turn: Turn) -> u32 {
        let is_it = |entry: &&Entry| match entry {
            Entry::Replay(wait) => (wait.done().origin, wait.done().replay) == turn,
            _ => false,
        };
        self.log.values().chain(&self.late).filter(is_it).count() as u32
    }

    fn origin(&self, offset: i64) -> crate::Origin {
        crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset }
    }

    /// A job begins with a closed lane.
    pub(super) fn hire_tool(&mut self) {
        let closed: Vec<_> =
            self.naive.closed.iter().map(|(letter, (lane, _))| (*letter, lane.clone())).collect();
        if closed.is_empty() {
            return;
        }
        let (leader, lane) = closed[self.roll(closed.len() as u64) as usize].clone();
        self.jobs += 1;
        let job = format!("job-{}", self.jobs);
        let tool = Tool { job, leader, lane, deadline: self.now + 50 + self.roll(300) as i64, letters: None };
        self.announce(&tool);
        self.tools.push(tool);
    }

    fn announce(&mut self, tool: &Tool) {
        let deed = Deed::Announce { deadline: tool.deadline };
        self.give_for(tool.leader, deed, &tool.job);
    }

    fn give_for(&mut self, origin: i64, deed: Deed, job: &str) {
        self.orders += 1;
        let (id, job) = (format!("order-{}", self.orders), Some(job.to_owned()));
        let order = Order { id, origin, deed, by: "me".into(), reason: "why".into(), job };
        self.append(Entry::Order(order));
    }

    /// A job does its next step, or dies.
    pub(super) fn use_tool(&mut self) {
        if self.tools.is_empty() {
            return;
        }
        let chosen = self.roll(self.tools.len() as u64) as usize;
        if self.roll(12) == 0 {
            self.note("jobs that died half way");
            self.tools.remove(chosen);
            return;
        }
        let mut tool = self.tools.remove(chosen);
        let held = self.naive.closed.get(&tool.leader).and_then(|(_, held)| held.clone());
        let is_ours = held.as_ref().is_some_and(|held| held.job == tool.job);
        if self.now >= tool.deadline || (tool.letters.is_some() && !is_ours) {
            self.note("jobs that were too late");
            return;
        }
        if !is_ours {
            if self.roll(6) == 0 {
                self.announce(&tool);
            }
            self.tools.push(tool);
            return;
        }
        let letters = tool.letters.take().unwrap_or_else(|| {
            let is_of_lane = |origin: &&i64| self.key_of(**origin) == tool.lane;
            self.buried.range(tool.leader..).filter(is_of_lane).copied().collect()
        });
        let mut letters = letters;
        match letters.pop_front() {
            Some(letter) => {
                self.order_back(letter, true, &tool.job.clone());
                tool.letters = Some(letters);
                self.tools.push(tool);
            }
            None => {
                self.note("jobs that were done");
                self.give_for(tool.leader, Deed::Resolve, &tool.job);
            }
        }
    }

    fn key_of(&self, origin: i64) -> Vec<u8> {
        let key = self.original(origin).key;
        key.map(|key| key.to_vec()).unwrap_or_default()
    }

    /// Which time a record was sent back that this worker has in hand.
    pub(super) fn replay_of(&self, index: usize, id: Id) -> u32 {
        let ticket = self.workers[index].flow.ticket(id);
        ticket.and_then(|ticket| ticket.shelved).map_or(0, |done| done.replay)
    }

    /// Which time a record was sent back that waits, as far as this worker has read.
    pub(super) fn replay_in(&self, index: usize, origin: i64) -> Option<u32> {
        let aside = self.workers[index].flow.partitions.get(0)?.aside.as_ref()?;
        aside.owner.shelf.waiting.get(origin).map(|waiting| waiting.replay).filter(|replay| *replay > 0)
    }

    /// A letter waits that was sent back: what is in hand already cannot be called back.
    pub(super) fn note_put_back(&mut self, index: usize, entry: &Entry) {
        let Entry::Wait(stamp, wait) = entry else { return };
        let (done, worker) = (wait.done(), &mut self.workers[index]);
        if done.replay == 0 || done.attempt > 0 {
            return;
        }
        let in_hand =
            |place: Place| matches!(place, Place::Ready | Place::Running | Place::Parked | Place::Blocked);
        let tickets = worker.flow.tickets.iter().filter(|ticket| in_hand(ticket.place));
        let behind =
            tickets.filter(|ticket| ticket.lane() == wait.lane() && ticket.record.at.offset > done.origin);
        worker.excused.extend(behind.map(|ticket| (done.origin, ticket.record.at.offset)));
        let claim = worker.flow.partitions.get(0).and_then(|state| Some(state.aside.as_ref()?.owner.claim()));
        let counts = self.replay_in(index, done.origin) == Some(done.replay);
        let worker = &mut self.workers[index];
        if claim == Some(stamp.claim) && counts {
            worker.put_back.insert((done.origin, done.replay));
        }
    }

    /// While the letters of a lane are sent back, nothing of it is added to them.
    pub(super) fn check_burial(&mut self, index: usize, origin: i64, burial: Option<Burial>) {
        if !self.is_rightful(index) || burial.is_none_or(|burial| burial.leader.is_none()) {
            return;
        }
        let lane = self.key_of(origin);
        let mut held = self.naive.closed.iter().filter(|(_, (of, held))| *of == lane && held.is_some());
        let is_held = held.any(|(leader, _)| *leader <= origin);
        assert!(!is_held, "{origin} becomes a letter of a lane whose letters are being sent back");
    }
}
