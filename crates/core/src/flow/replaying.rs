//! Letters that are sent back to the shelf: each order becomes a record that waits, and only then has its outcome.
//!
//! Between the two it stays where it is, so that its lane is opened behind it before it runs. An order about a
//! record that waits already needs no payload; all others are taken in the order of the log, within limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};

use super::partition::Aside;
use super::ticket::{Place, Ticket};
use super::{Action, Fate, Flow, Notice, Now};
use crate::shelf::{Entry, LaneTag, Outcome, Replay, Stage, Verdict, Wait};

/// How many letters are on their way to the shelf at once.
const AT_ONCE: usize = 500;
/// How many bytes of them, about.
const BYTES_AT_ONCE: usize = 16 << 20;
/// How many are kept that were read before it is their turn.
const KEPT: usize = 5_000;

/// Letters on their way to the shelf, and orders that wait for something. Orders go by where they stand.
#[derive(Debug, Default)]
pub(super) struct Replaying {
    /// Orders from here on were not looked at.
    next: i64,
    /// There was no room for these.
    full: BTreeSet<i64>,
    /// Something else about their records is on its way.
    busy: HashMap<i64, Vec<i64>>,
    /// Being read back.
    fetching: HashSet<i64>,
    /// Read, and not looked at.
    whole: HashMap<i64, Arc<Wait>>,
    whole_bytes: usize,
    /// Being written, by origin.
    writing: HashMap<i64, (i64, usize)>,
    writing_bytes: usize,
    /// With their outcome on its way.
    answering: HashMap<i64, Answering>,
    /// Orders to announce that wait until letters of their lane are there, by lane.
    pub(super) announcing: HashMap<Bytes, Vec<String>>,
    /// Orders to open a lane that wait for letters that are sent back before them.
    pub(super) resolving: HashMap<LaneTag, Vec<String>>,
}

/// An order whose outcome is on its way.
#[derive(Debug)]
struct Answering {
    /// Its lane.
    lane: Option<LaneTag>,
    /// The key of that, if it is open by the outcome.
    opens: Option<Bytes>,
}

/// What is to be done about an order.
enum Look {
    /// It has its answer.
    Answer(Verdict),
    /// Something else about its record has to be over first.
    Busy,
    /// There is no room.
    Full,
    /// Too many are on their way.
    Later,
    /// Its record is put on the shelf.
    Take,
}

impl Replaying {
    fn is_under_way(&self, at: i64) -> bool {
        self.fetching.contains(&at) || self.answering.contains_key(&at)
    }

    fn has_room(&self) -> bool {
        self.fetching.len() + self.writing.len() < AT_ONCE && self.writing_bytes < BYTES_AT_ONCE
    }

    /// An order was read before it is looked at. What it keeps of it is its own, or all would be kept that was read
    /// with it.
    fn keep(&mut self, at: i64, wait: &Wait) {
        if self.whole.len() < KEPT && self.whole_bytes < BYTES_AT_ONCE && !self.whole.contains_key(&at) {
            self.whole_bytes += wait.size();
            let (record, trail) = (Arc::new(wait.record.detached()), wait.trail.clone());
            self.whole.insert(at, Arc::new(Wait { record, trail }));
        }
    }

    fn take_whole(&mut self, at: i64) -> Option<Arc<Wait>> {
        let wait = self.whole.remove(&at)?;
        self.whole_bytes -= wait.size();
        Some(wait)
    }
}

impl Flow {
    /// An order was read with all that it carries: that need not be read again, if it is taken soon.
    pub(super) fn keep_whole(&mut self, number: i32, at: i64, entry: &Entry) {
        let (Entry::Replay(wait), Some(aside)) = (entry, self.partitions.aside(number)) else { return };
        if aside.owner.is_running() {
            aside.replaying.keep(at, wait);
        }
    }

    /// The partition runs, for the first time or again. What a former owner put on the shelf has its outcome
    /// before it can be released.
    pub(super) fn resume_replays(&mut self, number: i32) {
        let Some(aside) = self.partitions.aside(number) else { return };
        let replaying = &mut aside.replaying;
        replaying.next = 0;
        replaying.full.clear();
        replaying.busy.clear();
        let shelf = &aside.owner.shelf;
        let waits = |replay: &Replay| shelf.waiting.contains(replay.origin);
        let waiting: Vec<_> =
            shelf.replays.from(0).filter(|(_, replay)| waits(replay)).map(|(at, _)| at).collect();
        for at in waiting {
            self.look_at(number, at);
        }
    }

    /// Goes on with the orders that were read, as far as may be at once: first those that had no room.
    pub(super) fn go_on_with_replays(&mut self, number: i32) {
        // Whoever comes next finds them.
        if self.stopping || self.partitions.get(number).is_none_or(|partition| partition.draining) {
            return;
        }
        while let Some(aside) = self.partitions.aside(number).filter(|aside| aside.owner.is_running()) {
            let Some(at) = aside.replaying.full.pop_first() else { break };
            self.look_again(number, at);
            let still = |aside: &mut Aside| aside.replaying.full.contains(&at);
            if self.partitions.aside(number).is_some_and(still) {
                break;
            }
        }
        loop {
            let Some(aside) = self.partitions.aside(number).filter(|aside| aside.owner.is_running()) else {
                return;
            };
            let Some((at, _)) = aside.owner.shelf.replays.from(aside.replaying.next).next() else { return };
            if !self.look_at(number, at) {
                return;
            }
            if let Some(aside) = self.partitions.aside(number) {
                aside.replaying.next = at + 1;
            }
        }
    }

    /// There may be room, and what was under way may be over.
    pub(super) fn look_at_replays(&mut self, number: i32, now: Now) {
        self.wall = now.wall;
        let Some(aside) = self.partitions.aside(number).filter(|aside| aside.owner.is_running()) else {
            return;
        };
        let busy: Vec<_> = aside.replaying.busy.drain().flat_map(|(_, ats)| ats).collect();
        for at in busy {
            self.look_again(number, at);
        }
        self.go_on_with_replays(number);
    }

    /// What was on its way about a record is there: orders about it may be looked at.
    pub(super) fn no_longer_busy(&mut self, number: i32, origin: i64) {
        let Some(aside) = self.partitions.aside(number).filter(|aside| !aside.replaying.busy.is_empty())
        else {
            return;
        };
        for at in aside.replaying.busy.remove(&origin).unwrap_or_default() {
            self.look_again(number, at);
        }
    }

    /// Whoever wants to open this lane waits for the letters of it.
    pub(super) fn hurry_replays(&mut self, number: i32, lane: LaneTag) {
        let Some(aside) = self.partitions.aside(number) else { return };
        let (replays, full) = (&aside.owner.shelf.replays, &mut aside.replaying.full);
        let is_of_lane = |at: &i64| replays.get(*at).is_some_and(|replay| replay.lane == Some(lane));
        let hurried: Vec<_> = full.extract_if(.., is_of_lane).collect();
        for at in hurried {
            self.look_again(number, at);
        }
    }

    /// Looks at an order that was passed. One that cannot be taken now is among those without room.
    fn look_again(&mut self, number: i32, at: i64) {
        if !self.look_at(number, at)
            && let Some(aside) = self.partitions.aside(number)
        {
            aside.replaying.full.insert(at);
        }
    }

    /// Does what can be done about an order; says whether the next may be looked at.
    fn look_at(&mut self, number: i32, at: i64) -> bool {
        let look = self.look(number, at);
        let Some(aside) = self.partitions.aside(number) else { return false };
        match look {
            None => {}
            Some(Look::Answer(verdict)) => self.answer_replay(number, at, verdict),
            Some(Look::Busy) => {
                if let Some(replay) = aside.owner.shelf.replays.get(at) {
                    aside.replaying.busy.entry(replay.origin).or_default().push(at);
                }
            }
            Some(Look::Full) => drop(aside.replaying.full.insert(at)),
            Some(Look::Later) => return false,
            Some(Look::Take) => match aside.replaying.take_whole(at) {
                Some(wait) => self.take_back(number, at, &wait),
                None => {
                    aside.replaying.fetching.insert(at);
                    self.actions.push_back(Action::Fetch { partition: number, at });
                }
            },
        }
        true
    }

    fn look(&self, number: i32, at: i64) -> Option<Look> {
        let partition = self.partitions.get(number)?;
        let aside = partition.aside.as_ref()?;
        let shelf = &aside.owner.shelf;
        let replay = shelf.replays.get(at)?;
        if aside.replaying.is_under_way(at) {
            return None;
        }
        let Replay { origin, replays, lane, .. } = *replay;
        if aside.owner.is_busy(origin) {
            return Some(Look::Busy);
        }
        // As far as the index counts.
        let counted = replays.min(u8::MAX.into());
        match shelf.waiting.get(origin).map(|waiting| (waiting.stage, waiting.replay)) {
            // The log does not say so yet.
            Some((Stage::Finished, _)) => return Some(Look::Busy),
            Some((_, before)) if before < counted => return Some(Look::Answer(Verdict::StillWaiting)),
            Some((Stage::Waiting | Stage::Held, before)) if before == counted => {
                return Some(Look::Answer(Verdict::Replayed));
            }
            Some(_) => return Some(Look::Answer(Verdict::Already)),
            None => {}
        }
        if partition.records.get(origin).is_some() {
            return Some(Look::Answer(Verdict::StillWaiting));
        }
        if origin < 0 || !partition.offsets.is_behind(origin) {
            return Some(Look::Answer(Verdict::Unknown));
        }
        if shelf.replays.is_known(origin, replays) {
            return Some(Look::Answer(Verdict::Already));
        }
        if !self.has_room_for(number, origin, lane) {
            return Some(Look::Full);
        }
        Some(if aside.replaying.has_room() { Look::Take } else { Look::Later })
    }

    /// Whether one more may wait. A letter that closes a lane, or is of one that was announced or is about to be
    /// opened, always may: what fills the shelf may be what waits for it.
    fn has_room_for(&self, number: i32, origin: i64, lane: Option<LaneTag>) -> bool {
        let Some(limits) = self.settings.shelf.as_ref().map(|shelf| shelf.limits) else { return true };
        let Some(aside) = self.partitions.get(number).and_then(|state| state.aside.as_ref()) else {
            return true;
        };
        let (shelf, replaying) = (&aside.owner.shelf, &aside.replaying);
        let records = shelf.waiting.len() + replaying.fetching.len() + replaying.writing.len();
        if records < limits.records && shelf.waiting.bytes() < limits.bytes as u64 {
            return true;
        }
        let announced = || {
            let leaders = self.deadlines.iter().filter(|(_, of, _)| *of == number);
            let mut lanes = leaders.filter_map(|(_, _, leader)| shelf.closure(*leader));
            lanes.any(|closure| Some(shelf.tag(&closure.lane)) == lane)
        };
        let is_opened_next = lane.is_some_and(|lane| replaying.resolving.contains_key(&lane));
        shelf.is_closing(origin) || is_opened_next || announced()
    }

    /// An order was read back. Says whether that was what was asked for there.
    pub(super) fn replay_fetched(&mut self, number: i32, at: i64, wait: Option<&Arc<Wait>>) -> bool {
        let Some(aside) = self.partitions.aside(number) else { return false };
        if aside.owner.shelf.replays.is_empty() && aside.replaying.fetching.is_empty() {
            return false;
        }
        if !aside.replaying.fetching.remove(&at) {
            // What stands beside what was asked for comes along.
            let is_next = aside.owner.shelf.replays.get(at).is_some() && !aside.replaying.is_under_way(at);
            if let Some(wait) = wait.filter(|_| is_next) {
                aside.replaying.keep(at, wait);
            }
            return false;
        }
        match wait {
            // Much may have happened meanwhile.
            Some(wait) => match self.look(number, at) {
                Some(Look::Take | Look::Later) => self.take_back(number, at, wait),
                _ => self.look_again(number, at),
            },
            None if aside.owner.shelf.replays.get(at).is_some() => {
                self.actions.push_back(Action::Tell(Notice::Gone { partition: number, at }));
            }
            None => {}
        }
        // When all is there that was read with it.
        self.reconsider.insert(number);
        true
    }

    /// Puts a letter on the shelf, due at once.
    fn take_back(&mut self, number: i32, at: i64, wait: &Wait) {
        let identity = self.settings.shelf.as_ref().map(|shelf| shelf.identity.topic.clone());
        let origin = &wait.record.at;
        if origin.partition != number || identity.is_some_and(|topic| origin.topic.as_str() != topic) {
            self.answer_replay(number, at, Verdict::Unknown);
            return;
        }
        let mut trail = wait.trail.clone();
        let said = Arc::make_mut(&mut trail);
        said.due = Some(self.wall);
        said.attempt = Some(said.attempt.unwrap_or(0));
        (said.reason, said.leader, said.buried_at) = (None, None, None);
        said.group = Some(self.settings.group.clone());
        said.instance = Some(self.settings.instance.clone());
        let Some(aside) = self.partitions.aside(number) else { return };
        let (offset, size) = (origin.offset, wait.size());
        aside.replaying.writing.insert(offset, (at, size));
        aside.replaying.writing_bytes += size;
        aside.owner.shelve(Arc::new(Wait { record: wait.record.clone(), trail }));
        self.writes(number);
    }

    /// A letter that was sent back waits; says whether it is one. Now the order has its outcome.
    pub(super) fn replay_waits(&mut self, number: i32, wait: &Arc<Wait>) -> bool {
        let Some(partition) = self.partitions.get_mut(number) else { return false };
        let Some(aside) = partition.aside.as_mut().filter(|aside| !aside.replaying.writing.is_empty()) else {
            return false;
        };
        let offset = wait.record.at.offset;
        let Some((at, size)) = aside.replaying.writing.remove(&offset) else { return false };
        aside.replaying.writing_bytes -= size;
        self.cache.insert(number, wait.clone());
        // What was never tried goes behind it; it might wait for room that only this letter can make.
        let running =
            wait.lane().and_then(|lane| partition.lanes.running(lane)).filter(|other| *other > offset);
        let running = running.and_then(|other| Some((other, partition.find(other)?)));
        let unstarted = running.filter(|(_, id)| {
            let is_new = |ticket: &&mut Ticket| ticket.place == Place::Ready && ticket.past.is_none();
            let ticket = self.tickets.get_mut(*id).filter(is_new);
            ticket.map(|ticket| ticket.place = Place::Queued).is_some()
        });
        let unstarted = unstarted.map(|(other, _)| other);
        partition.lanes.sent_back(wait.lane(), offset, unstarted, &partition.aside, &mut self.steps);
        self.take_steps(number);
        self.answer_replay(number, at, Verdict::Replayed);
        self.go_on_with_replays(number);
        true
    }

    /// What was written under this number does not fit on the shelf; says whether it was a letter that was sent back.
    pub(super) fn refuse_replay(&mut self, number: i32, seq: u64, origin: i64) -> bool {
        let Some(aside) = self.partitions.aside(number) else { return false };
        let Some((at, size)) = aside.replaying.writing.remove(&origin) else { return false };
        aside.replaying.writing_bytes -= size;
        aside.owner.give_up_wait(seq);
        self.answer_replay(number, at, Verdict::TooLarge);
        true
    }

    fn answer_replay(&mut self, number: i32, at: i64, verdict: Verdict) {
        let Some(aside) = self.partitions.aside(number) else { return };
        let Some(replay) = aside.owner.shelf.replays.get(at) else { return };
        let (id, origin, lane) = (replay.id.to_string(), replay.origin, replay.lane);
        let closure = aside.owner.shelf.closure(origin).filter(|closure| closure.announced.is_none());
        let opens = closure.filter(|_| verdict == Verdict::Replayed).map(|closure| closure.lane.clone());
        aside.replaying.take_whole(at);
        aside.replaying.answering.insert(at, Answering { lane, opens });
        aside.owner.answer(Outcome { order: Some(at), ..Outcome::to(id, origin, verdict) });
        self.writes(number);
    }

    /// The outcome of an order counts.
    pub(super) fn replay_answered(&mut self, number: i32, at: i64, outcome: &Outcome) {
        let Some(aside) = self.partitions.aside(number) else { return };
        let origin = outcome.origin;
        let answering = aside.replaying.answering.remove(&at);
        if let Some(key) = answering.as_ref().and_then(|answering| answering.opens.as_ref()) {
            self.open_lane(number, key, origin, &[]);
        }
        let is_own =
            |aside: &mut Aside| aside.owner.shelf.replays.last_of(origin) == Some(outcome.id.as_str());
        let fate = match outcome.verdict {
            Verdict::StillWaiting | Verdict::Unknown | Verdict::TooLarge => {
                Some(Fate::Refused(outcome.verdict))
            }
            // What becomes of the same one, which is there twice, is told once.
            Verdict::Already if !self.partitions.aside(number).is_some_and(is_own) => {
                Some(Fate::Refused(outcome.verdict))
            }
            _ => None,
        };
        if let Some((fate, topic)) = fate.zip(self.source_topic()) {
            let (replay, offset) = (outcome.id.clone(), origin);
            let origin = crate::Origin { topic, partition: number, offset };
            self.actions.push_back(Action::Tell(Notice::SentBack { replay, origin, fate }));
        }
        if let Some(lane) = answering.and_then(|answering| answering.lane) {
            self.reconsider_resolves(number, lane);
        }
    }

    fn source_topic(&self) -> Option<crate::Topic> {
        self.settings.shelf.as_ref()?.identity.topic.parse().ok()
    }
}
