//! The flow of one subscription: records, outcomes and time in; what to do next out.
//!
//! It knows where every record in memory is, runs lanes side by side within the limits, closes the
//! gate in an outage, and says which offsets are complete. It does nothing itself: whoever acts
//! takes its [`Action`]s and tells what came of them.

mod adopting;
mod ahead;
mod announcing;
mod cache;
mod carrying;
mod dispatch;
mod gate;
mod gauges;
mod loss;
mod originals;
mod partition;
mod replaying;
mod reporting;
mod returning;
mod routing;
mod shelving;
#[cfg(test)]
mod simulation;
mod surge;
mod taking_over;
#[cfg(test)]
mod tests;
mod ticket;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;

use crate::class::Class;
use crate::failure::Failure;
use crate::histogram::Histogram;
use crate::lanes::{Followers, Lanes, Step};
use crate::offsets::{Offsets, Progress, Ranges, Started};
use crate::origin::Origin;
use crate::record::Record;
use crate::route::{Reason, Route, Rules};
use crate::settings::{Blocking, MaxLoss, OrderBy, Payload, SurgeGuard};
use crate::shelf::{ClaimId, Entry, Identity, Missing, Stage, Verdict};
use crate::time::Timestamp;
use ahead::Pass;
use cache::Cache;
use gate::Gate;
use loss::Loss;
use partition::{Aside, Partition, Partitions};
use surge::Surge;
use ticket::{Lane, Place, Tickets};

pub use adopting::Adopted;
pub use gauges::{ByDue, Gauges};
pub use originals::{Kept, Smaller};
pub use taking_over::Located;
pub use ticket::{Burial, Id, Past, Ticket};

/// What governs a flow.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The consumer group.
    pub group: String,
    /// The instance, as letters name it.
    pub instance: String,
    /// What decides about failures.
    pub rules: Rules,
    /// What the records of a lane share.
    pub order_by: OrderBy,
    /// What becomes of the records behind a letter.
    pub followers: Followers,
    /// What an outage stops.
    pub blocking: Blocking,
    /// How many first tries run at once.
    pub concurrency: NonZeroU32,
    /// How many retries run at once, beside the first tries.
    pub retry_concurrency: NonZeroU32,
    /// When many failures are an outage.
    pub surge_guard: Option<SurgeGuard>,
    /// How much may be dropped.
    pub max_loss: Option<MaxLoss>,
    /// How much may be in memory.
    pub limits: Limits,
    /// The shelf; without one, records wait in memory.
    pub shelf: Option<ShelfSettings>,
}

/// What governs the shelf of a subscription.
#[derive(Debug, Clone)]
pub struct ShelfSettings {
    /// Whose shelf it is.
    pub identity: Identity,
    /// Names this process in its claims: chosen at random when it starts.
    pub process: u64,
    /// How many bytes of payloads are kept in memory.
    pub cache: usize,
    /// What may wait in one partition.
    pub limits: Limits,
    /// What is written of a record that waits.
    pub payload: Payload,
    /// How long originals can be read back from the source, where that is known.
    pub originals: Option<Kept>,
}

/// So much and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records.
    pub records: usize,
    /// Bytes of keys and values.
    pub bytes: usize,
}

/// A moment, by both clocks: waits are measured by the one that never jumps, headers tell the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Since some start, never backwards.
    pub steady: Duration,
    /// As calendars have it.
    pub wall: Timestamp,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Hand a record to the handler, then tell [`Flow::handled`].
    Handle(Attempt),
    /// Write its letter, then tell [`Flow::buried`].
    Bury(Id),
    /// Ask the source for nothing more of this partition.
    Pause(i32),
    /// Ask for more again.
    Resume(i32),
    /// Write the claim of a shelf partition, then tell [`Flow::claim_failed`] if that did not work. Everything
    /// that is read of the partition from its start on is told to [`Flow::read`].
    Claim {
        /// The partition.
        partition: i32,
        /// The claim.
        entry: Entry,
    },
    /// Have the group accept a commit for the shelf partition, then tell [`Flow::proven`].
    Prove {
        /// The partition.
        partition: i32,
        /// The claim that is proven by it.
        claim: ClaimId,
        /// Where the claim stands.
        at: i64,
    },
    /// Find out where the source begins, then tell [`Flow::located`].
    Locate {
        /// The partition.
        partition: i32,
        /// The mark in the log, if there is one.
        mark: Option<i64>,
        /// What somebody else cut off the log: to go on is to accept that.
        missing: Option<Missing>,
    },
    /// Read the source from here on.
    Start {
        /// The partition.
        partition: i32,
        /// The offset.
        from: i64,
    },
    /// Read the entry of the shelf that stands here, then tell [`Flow::fetched`].
    Fetch {
        /// The partition.
        partition: i32,
        /// The offset in the shelf.
        at: i64,
    },
    /// Read all entries of the shelf from here to there and tell each to [`Flow::fetched`], then tell
    /// [`Flow::passed`].
    Pass {
        /// The partition.
        partition: i32,
        /// The first offset in the shelf.
        from: i64,
        /// The last.
        to: i64,
    },
    /// Read the record of the source that a pointer names, then tell [`Flow::recalled`].
    Recall {
        /// The partition.
        partition: i32,
        /// The offset in the source.
        offset: i64,
    },
    /// Write the letter of a record of the shelf that is no entry, then tell [`Flow::buried_undecodable`].
    BuryEntry {
        /// The partition.
        partition: i32,
        /// The offset in the shelf.
        at: i64,
    },
    /// Cut the log of the shelf below this offset, then tell [`Flow::trimmed`].
    Trim {
        /// The partition.
        partition: i32,
        /// The first offset that stays.
        to: i64,
    },
    /// Nothing to do, but something to tell.
    Tell(Notice),
}

/// A record for the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub id: Id,
    /// The record.
    pub record: Arc<Record>,
    /// How often it was tried, this time included.
    pub number: u32,
    /// Which limit it counts against.
    pub slot: Slot,
}

/// The two kinds of tries, each with its own timeout and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Never tried before.
    First,
    /// Failed before.
    Retry,
}

/// What happened, in the words of events and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A failed record was given its route.
    Routed {
        /// The record.
        id: Id,
        /// The class of its failure.
        class: Class,
        /// What becomes of it.
        route: Route,
        /// How long it waits, if it does.
        wait: Option<Duration>,
    },
    /// A record was given up by a rule that says so.
    Dropped {
        /// The record.
        record: Arc<Record>,
        /// Why.
        reason: Reason,
    },
    /// An outage stops the flow: of one partition, or of all.
    Blocked {
        /// The partition, if it is only one.
        partition: Option<i32>,
        /// Whether many failures were taken for an outage.
        surge: bool,
    },
    /// A record is on the shelf.
    Shelved {
        /// The record.
        record: Arc<Record>,
        /// When it is due.
        due: Timestamp,
        /// How it failed, and the class of that; none if it only follows another.
        failure: Option<(Box<Failure>, Class)>,
        /// How often it was tried.
        attempts: u32,
    },
    /// Another claimed a partition that is ours: it is claimed again.
    Rival {
        /// The partition.
        partition: i32,
    },
    /// The shelf belongs to another subscription, or to a topic that was deleted since: nothing is done with it.
    Foreign {
        /// The partition.
        partition: i32,
        /// Whose it is.
        identity: Identity,
    },
    /// An entry that must be there is not: the partition has to be taken over anew.
    Gone {
        /// The partition.
        partition: i32,
        /// Where it stood.
        at: i64,
    },
    /// A record does not fit on the shelf: it stays where it stands, as a pointer maybe, whose original may be gone
    /// before it is due.
    Unfit {
        /// The partition.
        partition: i32,
        /// Its source offset.
        origin: i64,
        /// When its original is gone, at the earliest.
        expires: Option<Timestamp>,
    },
    /// As much waits as may: nothing new of the partition starts.
    Full {
        /// The partition.
        partition: i32,
        /// Records that wait.
        records: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// There is room on the shelf again.
    Room {
        /// The partition.
        partition: i32,
    },
    /// What became of a letter that was sent back is certain.
    SentBack {
        /// The job and the number of the letter in it.
        replay: String,
        /// Where it was first consumed.
        origin: Origin,
        /// What became of it.
        fate: Fate,
    },
    /// Whoever announced that the letters of a lane are sent back is not done in time: the lane was opened.
    Overdue {
        /// The partition.
        partition: i32,
        /// The source offset of the letter that the lane was announced by.
        leader: i64,
        /// The job.
        job: String,
        /// How many letters of the lane were not sent back.
        left: usize,
    },
    /// The outage is over.
    Opened {
        /// The partition, if it was only one.
        partition: Option<i32>,
    },
}

/// What became of a letter that was sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was handled.
    Handled,
    /// A rule gave it up.
    Dropped,
    /// It failed, or has to wait for another, and is on the shelf.
    Waiting,
    /// It was not taken; as the order for it was answered.
    Refused(Verdict),
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each field says what it counts")]
pub struct Counts {
    pub consumed: u64,
    pub attempts: u64,
    pub handled: u64,
    pub failed: [u64; 4],
    pub buried: u64,
    pub dropped: u64,
    pub shelved: u64,
    pub released: u64,
}

impl Counts {
    /// These and those.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        let Self { consumed, attempts, handled, failed, buried, dropped, shelved, released } = others;
        let mut all_failed = self.failed;
        for (count, more) in all_failed.iter_mut().zip(failed) {
            *count += more;
        }
        Self {
            consumed: self.consumed + consumed,
            attempts: self.attempts + attempts,
            handled: self.handled + handled,
            failed: all_failed,
            buried: self.buried + buried,
            dropped: self.dropped + dropped,
            shelved: self.shelved + shelved,
            released: self.released + released,
        }
    }
}

/// The flow of one subscription.
#[derive(Debug)]
pub struct Flow {
    settings: Settings,
    tickets: Tickets,
    partitions: Partitions,
    fresh: VecDeque<Id>,
    again: VecDeque<Id>,
    running: [u32; 2],
    parked: BinaryHeap<Reverse<(Duration, Id)>>,
    gates: HashMap<Option<i32>, Gate>,
    surge: Surge,
    loss: Loss,
    /// Attempts so far.
    starts: u64,
    /// The highest number of a start that ended well.
    last_success: u64,
    bytes: usize,
    /// What each partition may have in memory.
    share: Limits,
    actions: VecDeque<Action>,
    steps: Vec<Step>,
    counts: Counts,
    stopping: bool,
    /// Somebody wants nothing to start for a while.
    paused: bool,
    /// Claims so far.
    claims: u32,
    /// Partitions whose shelf has something to be written.
    writers: BTreeSet<i32>,
    /// How long that may wait, if there may be something.
    slack: Option<Duration>,
    /// Records that came back from a shelf, or are on their way.
    returns: usize,
    cache: Cache,
    /// How long after their due times records came back.
    lateness: Histogram,
    pass: Option<Pass>,
    /// When the last pass over each shelf began or ended.
    passes: HashMap<i32, Duration>,
    /// The time of the last call that told it.
    wall: Timestamp,
    /// Lanes that were announced: until when, and by which letter of which partition.
    deadlines: BTreeSet<(i64, i32, i64)>,
    /// Partitions with orders to be looked at again.
    reconsider: BTreeSet<i32>,
}

impl Flow {
    /// A flow without partitions.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let (surge, loss) = (Surge::new(settings.surge_guard), Loss::new(settings.max_loss));
        let cache = Cache::new(settings.shelf.as_ref().map_or(0, |shelf| shelf.cache));
        Self {
            settings,
            tickets: Tickets::default(),
            partitions: Partitions::default(),
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            running: [0; 2],
            parked: BinaryHeap::new(),
            gates: HashMap::new(),
            surge,
            loss,
            starts: 0,
            last_success: 0,
            bytes: 0,
            share: Limits { records: 1, bytes: 1 },
            actions: VecDeque::new(),
            steps: Vec::new(),
            counts: Counts::default(),
            stopping: false,
            paused: false,
            claims: 0,
            writers: BTreeSet::new(),
            slack: None,
            returns: 0,
            cache,
            lateness: Histogram::default(),
            pass: None,
            passes: HashMap::new(),
            wall: Timestamp::from_millis(0),
            deadlines: BTreeSet::new(),
            reconsider: BTreeSet::new(),
        }
    }

    /// A partition without a shelf is read from `mark` on.
    pub fn begin(&mut self, partition: i32, mark: i64) {
        self.abandon(partition);
        let offsets = Offsets::resume(Progress::new(mark, Ranges::default()));
        let lanes = Lanes::new(self.settings.followers);
        self.partitions.insert(partition, Partition::new(offsets, lanes));
        self.share_out();
    }

    fn share_out(&mut self) {
        let count = self.partitions.iter().count().max(1);
        let Limits { records, bytes } = self.settings.limits;
        self.share = Limits { records: (records / count).max(1), bytes: (bytes / 2 / count).max(1) };
    }

    /// A record was read that nobody is to see: it is complete. Whether it was not before.
    pub fn skip(&mut self, number: i32, offset: i64) -> bool {
        let Some(partition) = self.partitions.get_mut(number).filter(|one| one.has_started()) else {
            return false;
        };
        let is_new = match partition.offsets.start(offset) {
            Started::New => partition.offsets.finish(offset),
            Started::Complete | Started::Again => false,
        };
        self.pass(number);
        is_new
    }

    /// A record was read.
    pub fn arrive(&mut self, record: Record) {
        let (number, offset) = (record.at.partition, record.at.offset);
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if !partition.has_started() {
            return;
        }
        match partition.offsets.start(offset) {
            Started::New => {}
            Started::Complete => {
                self.pass(number);
                return;
            }
            Started::Again => return,
        }
        self.counts.consumed += 1;
        let lane = Lane::of(&self.settings.order_by, &record);
        let bytes = record.size();
        partition.lanes.arrive(lane.key(&record), offset, &partition.aside, &mut self.steps);
        let ticket = Ticket {
            record: Arc::new(record),
            lane,
            past: None,
            burial: None,
            place: Place::Queued,
            bytes,
            started: 0,
            shelved: None,
            sent_back: None,
        };
        let id = self.tickets.insert(ticket);
        partition.records.push(offset, id);
        partition.bytes += bytes;
        self.bytes += bytes;
        let passes = partition.aside.as_ref().is_some_and(|aside| !aside.unpassed.is_empty());
        self.take_steps(number);
        self.ease(number);
        if passes {
            self.pass(number);
        }
    }

    /// The reader of the source has come to this offset, whether it delivered something or not: what is
    /// missing below was a marker, or is gone.
    pub fn reached(&mut self, partition: i32, position: i64) {
        if let Some(state) = self.partitions.get_mut(partition).filter(|state| state.has_started()) {
            state.offsets.pass(position);
            self.pass(partition);
        }
    }

    /// The partitions in which something is due that the reader has not passed, and how far it has come.
    pub fn behind(&self) -> impl Iterator<Item = (i32, i64)> + '_ {
        self.partitions.iter().filter_map(|(number, state)| {
            let waits =
                state.has_started() && state.aside.as_ref().is_some_and(|aside| !aside.unpassed.is_empty());
            waits.then(|| (number, state.offsets.passed()))
        })
    }

    /// The letter of a record is confirmed.
    pub fn buried(&mut self, id: Id, now: Now) {
        let Some(ticket) = self.tickets.get(id).filter(|ticket| ticket.place == Place::Burying) else {
            return;
        };
        let (number, offset) = (ticket.record.at.partition, ticket.record.at.offset);
        self.wall = now.wall;
        self.counts.buried += 1;
        self.loss.count(false, now.steady);
        let partition = self.partitions.get_mut(number).expect("a record's partition is known");
        if let Some(aside) = partition.aside.as_mut().filter(|_| ticket.shelved.is_some()) {
            aside.owner.shelf.waiting.set_stage(offset, Stage::Finished);
        }
        partition.lanes.bury(ticket.lane(), offset, &partition.aside, &mut self.steps);
        if !self.close_lane(id) {
            let partition = self.partitions.get_mut(number).expect("a record's partition is known");
            partition.active -= 1;
            self.leave(id);
        }
        self.take_steps(number);
    }

    /// A letter of this partition cannot be written, or can again: meanwhile nothing of it starts.
    pub fn hold(&mut self, partition: i32, held: bool) {
        let Some(state) = self.partitions.get_mut(partition) else { return };
        state.held = held;
        if !held {
            self.unstall(partition);
        }
    }

    /// There is no room for what would come of more records of this partition, or there is again. What is
    /// in memory goes on: it may be what makes room.
    pub fn throttle(&mut self, partition: i32, throttled: bool) {
        let Some(state) = self.partitions.get_mut(partition) else { return };
        state.throttled = throttled;
        self.ease(partition);
    }

    /// Nothing of this partition starts any more; what runs may end.
    pub fn drain(&mut self, partition: i32) {
        if let Some(partition) = self.partitions.get_mut(partition) {
            partition.draining = true;
            self.hurry();
        }
    }

    /// Nothing starts any more.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.hurry();
    }

    /// Whether nothing of this partition runs or has a letter on its way.
    #[must_use]
    pub fn is_drained(&self, partition: i32) -> bool {
        self.partitions.get(partition).is_none_or(|partition| partition.active == 0)
    }

    /// Forgets a partition; what still runs is discarded when it ends. Says which records those are.
    pub fn abandon(&mut self, partition: i32) -> Vec<Id> {
        let Some(gone) = self.partitions.remove(partition) else { return Vec::new() };
        let mut running = Vec::new();
        for id in gone.ids() {
            let ticket = self.tickets.remove(id);
            if ticket.is_some_and(|ticket| ticket.place == Place::Running) {
                running.push(id);
            }
        }
        self.forget_actions(partition, &mut running);
        self.bytes -= gone.bytes;
        let on_the_way = |aside: &Aside| aside.fetching.len() + aside.recalling.len();
        self.returns -= gone.returned.len() + gone.aside.as_ref().map_or(0, on_the_way);
        self.cache.forget(partition);
        self.passes.remove(&partition);
        self.pass.take_if(|pass| pass.partition == partition);
        self.writers.remove(&partition);
        self.slack.take_if(|_| self.writers.is_empty());
        self.deadlines.retain(|(_, of, _)| *of != partition);
        self.share_out();
        self.gates.remove(&Some(partition));
        for gate in self.gates.values_mut() {
            gate.forget(|id| self.tickets.get(id).is_none());
        }
        running
    }

    /// What was to be done about a partition that is gone, and nobody has taken, is not done.
    fn forget_actions(&mut self, partition: i32, running: &mut Vec<Id>) {
        let (tickets, places) = (&self.tickets, &mut self.running);
        self.actions.retain(|action| match action {
            Action::Handle(attempt) if tickets.get(attempt.id).is_none() => {
                places[attempt.slot as usize] -= 1;
                running.retain(|id| *id != attempt.id);
                false
            }
            Action::Handle(_) => true,
            Action::Bury(id) => tickets.get(*id).is_some(),
            Action::Pause(of)
            | Action::Resume(of)
            | Action::Claim { partition: of, .. }
            | Action::Prove { partition: of, .. }
            | Action::Locate { partition: of, .. }
            | Action::Start { partition: of, .. }
            | Action::Fetch { partition: of, .. }
            | Action::Pass { partition: of, .. }
            | Action::Recall { partition: of, .. }
            | Action::BuryEntry { partition: of, .. }
            | Action::Trim { partition: of, .. }
            | Action::Tell(Notice::Gone { partition: of, .. } | Notice::Unfit { partition: of, .. }) => {
                *of != partition
            }
            Action::Tell(_) => true,
        });
    }

    /// Offsets that may be committed: everything below is complete and, with a shelf, its log says so.
    pub fn marks(&self) -> impl Iterator<Item = (i32, i64)> {
        self.partitions.iter().filter_map(|(number, _)| Some((number, self.mark(number)?)))
    }

    /// The partitions that are ours.
    pub fn partitions(&self) -> impl Iterator<Item = i32> {
        self.partitions.iter().map(|(number, _)| number)
    }

    /// The offset of this partition that may be committed; none while it is being taken over.
    #[must_use]
    pub fn mark(&self, partition: i32) -> Option<i64> {
        let partition = self.partitions.get(partition)?;
        match &partition.aside {
            Some(aside) => aside.owner.safe(),
            None => Some(partition.offsets.mark()),
        }
    }

    /// Where this partition is read next.
    #[must_use]
    pub fn position(&self, partition: i32) -> Option<i64> {
        Some(self.partitions.get(partition)?.offsets.position())
    }

    /// A record in memory.
    #[must_use]
    pub fn ticket(&self, id: Id) -> Option<&Ticket> {
        self.tickets.get(id)
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Totals since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Records in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        self.partitions.iter().map(|(_, partition)| partition.in_memory()).sum()
    }

    /// Whether no record is in memory.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.partitions.iter().all(|(_, partition)| partition.in_memory() == 0)
    }

    /// Records with the handler.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.running.iter().sum()
    }

    /// Whether an outage stops the flow, wholly or in part.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        !self.gates.is_empty()
    }

    /// Whether more is dropped than was allowed, and the share in thousandths of a percent.
    #[must_use]
    pub fn loss(&self, now: Now) -> (bool, u32) {
        (self.loss.is_too_much(now.steady), self.loss.share(now.steady))
    }

    /// Whether there is room for more records.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let enough = (self.settings.concurrency.get() as usize).saturating_mul(4).max(2_000);
        self.fresh.len() < enough && (self.bytes < self.settings.limits.bytes || self.paused_are_too_large())
    }

    /// Whether it is paused partitions that fill the memory. They get nothing more, and may stay as they
    /// are for long, held by a letter that cannot be written: the others must not wait for that.
    fn paused_are_too_large(&self) -> bool {
        let others = self.partitions.iter().filter(|(_, partition)| !partition.paused);
        others.map(|(_, partition)| partition.bytes).sum::<usize>() < self.settings.limits.bytes / 2
    }

    /// Turns the steps of lanes into places.
    fn take_steps(&mut self, partition: i32) {
        // Carrying one out may bring more.
        while !self.steps.is_empty() {
            let mut steps = std::mem::take(&mut self.steps);
            for step in steps.drain(..) {
                match step {
                    Step::Run(offset) => self.ready(partition, offset),
                    Step::BuryFollower { offset, leader } => self.bury_follower(partition, offset, leader),
                    Step::Follow { offset, leader } => self.follow(partition, offset, leader, self.wall),
                    Step::Known(offset) => self.known(partition, offset),
                }
            }
            if self.steps.is_empty() {
                self.steps = steps;
                return;
            }
        }
    }

    fn ready(&mut self, partition: i32, offset: i64) {
        let id = self.partitions.get(partition).and_then(|state| state.find(offset));
        let Some(id) = id else { return };
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        ticket.place = Place::Ready;
        match ticket.past {
            None => self.fresh.push_back(id),
            Some(_) => self.again.push_back(id),
        }
    }

    /// It is the letter that closed its lane, read again: complete.
    fn known(&mut self, partition: i32, offset: i64) {
        let id = self.partitions.get(partition).and_then(|state| state.records.get(offset).copied());
        let Some(id) = id else { return };
        if self.tickets.get(id).is_some_and(|ticket| ticket.place == Place::Queued) {
            self.forget_ticket(id);
        }
    }

    fn bury_follower(&mut self, partition: i32, offset: i64, leader: i64) {
        let Some(state) = self.partitions.get_mut(partition) else { return };
        let Some(id) = state.find(offset) else { return };
        let Some(ticket) = self.tickets.get_mut(id) else { return };
        ticket.place = Place::Burying;
        ticket.burial = Some(Burial { reason: Reason::Follower, leader: Some(leader) });
        state.active += 1;
        self.actions.push_back(Action::Bury(id));
    }

    /// A record is complete.
    fn complete(&mut self, id: Id) {
        let Some(ticket) = self.tickets.get(id) else { return };
        let (number, offset, shelved) =
            (ticket.record.at.partition, ticket.record.at.offset, ticket.shelved.is_some());
        let partition = self.partitions.get_mut(number).expect("a record's partition is known");
        if shelved && let Some(aside) = &mut partition.aside {
            aside.owner.shelf.waiting.set_stage(offset, Stage::Finished);
        }
        partition.lanes.done(ticket.lane(), offset, &partition.aside, &mut self.steps);
        self.leave(id);
        self.take_steps(number);
    }

    /// A record leaves memory, complete: what waited is done, what came from the source is finished.
    fn leave(&mut self, id: Id) {
        let Some(ticket) = self.tickets.get(id) else { return };
        let (number, offset) = (ticket.record.at.partition, ticket.record.at.offset);
        if let Some(done) = ticket.shelved
            && let Some(aside) = self.partitions.aside(number)
        {
            aside.owner.shelf.waiting.set_stage(offset, Stage::Finished);
            aside.owner.finish(done);
        }
        self.forget_ticket(id);
        self.wake_dependents(number, offset);
    }

    /// A record leaves memory, and its source offset is complete.
    fn forget_ticket(&mut self, id: Id) {
        let Some(ticket) = self.tickets.remove(id) else { return };
        let (number, offset) = (ticket.record.at.partition, ticket.record.at.offset);
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if partition.is_announcing(ticket.lane()) {
            self.reconsider.insert(number);
        }
        match ticket.shelved {
            Some(_) => {
                partition.returned.remove(&offset);
                self.returns -= 1;
            }
            None => {
                partition.offsets.finish(offset);
                partition.records.remove(offset);
            }
        }
        partition.bytes -= ticket.bytes;
        self.bytes -= ticket.bytes;
        self.ease(number);
    }

    /// Asks the source for less or more of a partition, by what is in memory and on the shelf of it.
    fn ease(&mut self, number: i32) {
        let Limits { records: most, bytes: most_bytes } = self.share;
        // Followers of one that waits need no place at the handler to come to the shelf.
        let is_full = self.is_full(number);
        let Some(partition) = self.partitions.get_mut(number) else { return };
        let (records, bytes) = (partition.records.len(), partition.bytes);
        let is_full = is_full || partition.throttled || records >= most || bytes >= most_bytes;
        if !partition.paused && is_full {
            partition.paused = true;
            self.actions.push_back(Action::Pause(number));
            // What waits to be written may be what fills it.
            self.hurry();
        } else if partition.paused && !is_full && records <= most / 2 && bytes <= most_bytes / 2 {
            partition.paused = false;
            self.actions.push_back(Action::Resume(number));
        }
    }
}
