//! The state of a shelf partition: a fold over its log.
//!
//! Entries of the owner whose claim stands count, in the order of their numbers; those of former owners,
//! and what landed twice, are void. Orders count from anyone and change nothing until their outcome does.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashMap;

use super::ages::Ages;
use super::closures::{Closure, Closures};
use super::entry::{
    Announced, Checkpoint, ClaimId, Closed, Done, Entry, Identity, Order, Outcome, Stamp, Verdict, Wait,
};
use super::index::{Index, LaneTag, Stage, Waiting};
use super::replays::Replays;
use super::start::{Missing, Start};
use crate::offsets::{Progress, Ranges};
use crate::time::Timestamp;

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folded {
    /// It counts.
    Counted,
    /// A claim: whoever wrote it owns the partition from here on.
    Claimed,
    /// An order, to be answered.
    Ordered,
    /// It does not count: of a former owner, or here for the second time.
    Void,
    /// A claim of another subscription, or for a topic of the same name: it takes nothing from the owner.
    Foreign,
    /// Nothing that this program has to know.
    Skipped,
}

/// The state of one shelf partition.
#[derive(Debug, Default)]
pub struct Shelf {
    identity: Option<Identity>,
    claim: Option<ClaimId>,
    seq: u64,
    mark: Option<i64>,
    ahead: Ranges,
    /// What was completed by entries that the last checkpoint's writer may not have seen.
    recent: VecDeque<(i64, i64)>,
    /// What waits.
    pub waiting: Index,
    /// Whom a record waits for beside its lane, where it named one.
    behind: HashMap<i64, i64>,
    /// How old the originals are that pointers name.
    ages: Ages,
    closed: Closures,
    orders: HashMap<String, (i64, Order)>,
    /// Letters that are to be tried again.
    pub replays: Replays,
    /// The last valid checkpoint: where it stands, and what its writer had seen.
    checkpoint: Option<(i64, i64)>,
    start: Start,
    tags: RandomState,
}

impl Shelf {
    /// Applies the entry at offset `at`, which takes `size` bytes of the log.
    pub fn fold(&mut self, at: i64, entry: &Entry, size: u32) -> Folded {
        self.start.read_entry(at, entry);
        let stamp = match entry {
            Entry::Skipped => return Folded::Skipped,
            Entry::Order(order) => {
                self.orders.insert(order.id.clone(), (at, order.clone()));
                return Folded::Ordered;
            }
            Entry::Replay(wait) => {
                let lane = wait.lane().map(|lane| self.tag(lane));
                self.replays.ordered(at, wait, lane);
                return Folded::Ordered;
            }
            Entry::Claim(stamp, identity) => return self.claimed(*stamp, identity),
            Entry::Checkpoint(stamp, _)
            | Entry::Wait(stamp, _)
            | Entry::Closed(stamp, _)
            | Entry::Outcome(stamp, _) => *stamp,
        };
        // The first entry of the log: what came before it was cut off, up to a checkpoint that counted.
        let claim = *self.claim.get_or_insert(stamp.claim);
        if claim != stamp.claim || stamp.seq <= self.seq {
            return Folded::Void;
        }
        self.seq = stamp.seq;
        match entry {
            Entry::Checkpoint(stamp, checkpoint) => self.checkpointed(at, *stamp, checkpoint),
            Entry::Wait(_, wait) => self.waits(at, wait, size),
            Entry::Closed(_, closed) => self.closes(at, closed),
            Entry::Outcome(_, outcome) => self.answered(outcome),
            Entry::Claim(..) | Entry::Order(_) | Entry::Replay(_) | Entry::Skipped => {}
        }
        Folded::Counted
    }

    /// A record stands at offset `at` that is no entry.
    pub fn fold_undecodable(&mut self, at: i64) {
        self.start.read(at);
    }

    fn claimed(&mut self, stamp: Stamp, identity: &Identity) -> Folded {
        // A second copy of a claim must not bring back numbers that were used.
        if self.claim == Some(stamp.claim) {
            return Folded::Void;
        }
        match &mut self.identity {
            Some(ours) if !ours.is_same(identity) => return Folded::Foreign,
            Some(Identity { topic_id: Some(_), .. }) => {}
            unknown => *unknown = Some(identity.clone()),
        }
        (self.claim, self.seq) = (Some(stamp.claim), stamp.seq);
        Folded::Claimed
    }

    fn waits(&mut self, at: i64, wait: &Wait, size: u32) {
        let done = wait.done();
        let lane = wait.lane().map(|lane| self.tag(lane));
        // The same once more, at another place in the log: it is where it was, with the handler maybe.
        let same = self.waiting.get(done.origin).filter(|waiting| is_it(waiting, done));
        self.waiting.put(Waiting {
            origin: done.origin,
            at,
            due: wait.due(),
            lane,
            attempt: done.attempt,
            replay: done.replay,
            size,
            cancelled: wait.is_cancelled(),
            pointer: wait.is_pointer(),
            stage: same.map_or(Stage::Waiting, |waiting| waiting.stage),
        });
        if wait.is_pointer() {
            // Of unknown age: it may be as old as any.
            self.ages.add(wait.record.timestamp.unwrap_or(Timestamp::from_millis(0)), done.origin);
        }
        match wait.behind() {
            Some(leader) => self.behind.insert(done.origin, leader),
            None => self.behind.remove(&done.origin),
        };
        self.replays.waits(done.origin, wait);
        self.completed(at, done.origin);
    }

    fn checkpointed(&mut self, at: i64, stamp: Stamp, checkpoint: &Checkpoint) {
        self.identity.get_or_insert_with(|| checkpoint.identity.clone());
        self.mark = Some(checkpoint.progress.mark());
        self.ahead = checkpoint.progress.ahead().clone();
        self.recent.retain(|(completed_at, _)| *completed_at > stamp.seen && !checkpoint.begins);
        for (_, origin) in &self.recent {
            self.ahead.insert(*origin..*origin + 1);
        }
        self.checkpoint = Some((at, stamp.seen));
        self.start.tells(checkpoint.log);
        for done in &checkpoint.done {
            if self.waiting.get(done.origin).is_some_and(|waiting| is_it(&waiting, *done)) {
                self.gone(done.origin);
                self.completed(at, done.origin);
            }
        }
    }

    fn closes(&mut self, at: i64, closed: &Closed) {
        let closure = Closure { lane: closed.lane.clone(), at, announced: closed.announced.clone() };
        self.closed.insert(closed.origin, closure);
        if closed.completes {
            self.gone(closed.origin);
            self.completed(at, closed.origin);
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        match outcome.order {
            Some(order) => self.replays.answered(order),
            None => drop(self.orders.remove(&outcome.id)),
        }
        match outcome.verdict {
            Verdict::Due { due } => {
                self.waiting.set_due(outcome.origin, Timestamp::from_millis(due));
                self.behind.remove(&outcome.origin);
            }
            Verdict::Cancelled => self.waiting.set_cancelled(outcome.origin),
            Verdict::Opened => {
                for letter in std::iter::once(&outcome.origin).chain(&outcome.also) {
                    self.closed.remove(*letter);
                }
            }
            // An announced lane is opened when all of its letters are there.
            Verdict::Replayed if self.announced(outcome.origin).is_none() => {
                self.closed.remove(outcome.origin);
            }
            Verdict::Announced { deadline } => {
                if let Some(closure) = self.closed.get_mut(outcome.origin) {
                    let job = outcome.job.clone().unwrap_or_default();
                    closure.announced = Some(Announced { job, deadline });
                }
            }
            Verdict::Replayed
            | Verdict::Already
            | Verdict::StillWaiting
            | Verdict::TooLarge
            | Verdict::Taken { .. }
            | Verdict::TooLate
            | Verdict::Finished
            | Verdict::Unknown => {}
        }
    }

    /// Who is about to send the letters of the lane back from this one on.
    #[must_use]
    pub fn announced(&self, letter: i64) -> Option<&Announced> {
        self.closed.get(letter)?.announced.as_ref()
    }

    /// What this letter closes, if it does.
    #[must_use]
    pub fn closure(&self, letter: i64) -> Option<&Closure> {
        self.closed.get(letter)
    }

    fn gone(&mut self, origin: i64) {
        self.waiting.remove(origin);
        self.behind.remove(&origin);
    }

    fn completed(&mut self, at: i64, origin: i64) {
        self.ahead.insert(origin..origin + 1);
        self.recent.push_back((at, origin));
    }

    /// Whose shelf it is, if something says so.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The claim that stands.
    #[must_use]
    pub fn claim(&self) -> Option<ClaimId> {
        self.claim
    }

    /// How far the source has come, if it ever began.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        Some(Progress::new(self.mark?, self.ahead.clone()))
    }

    /// The letters that close lanes, by their offsets.
    pub fn closures(&self) -> impl ExactSizeIterator<Item = (i64, &Closure)> {
        self.closed.iter()
    }

    /// How many lanes letters closed; each may be closed by several.
    #[must_use]
    pub fn closed_lanes(&self) -> usize {
        self.closed.lanes()
    }

    /// Whether this letter closes a lane.
    #[must_use]
    pub fn is_closing(&self, letter: i64) -> bool {
        self.closed.get(letter).is_some()
    }

    /// The orders without an outcome, and where they stand.
    pub fn orders(&self) -> impl Iterator<Item = (i64, &Order)> {
        self.orders.values().map(|(at, order)| (*at, order))
    }

    /// The order of this name, if it has no outcome, and where it stands.
    #[must_use]
    pub fn order(&self, id: &str) -> Option<(i64, &Order)> {
        self.orders.get(id).map(|(at, order)| (*at, order))
    }

    /// Whom this record waits for beside its lane.
    #[must_use]
    pub fn behind(&self, origin: i64) -> Option<i64> {
        self.behind.get(&origin).copied()
    }

    /// How old the oldest original may be that a pointer names.
    #[must_use]
    pub fn oldest_pointer(&self) -> Option<Timestamp> {
        self.ages.oldest()
    }

    /// The lowest source offset that a pointer names.
    #[must_use]
    pub fn lowest_pointer(&self) -> Option<i64> {
        // Mostly there is none, and that is known.
        self.ages.oldest()?;
        self.waiting.iter().filter(|waiting| waiting.pointer).map(|waiting| waiting.origin).min()
    }

    /// The pointers to originals that may be as old as this, or older.
    pub fn old_pointers(&mut self, old: Timestamp) -> Vec<i64> {
        let is_old = self.ages.up_to(old);
        let pointers = self.waiting.iter().filter(|waiting| waiting.pointer && is_old(waiting.origin));
        let pointers: Vec<_> = pointers.map(|waiting| waiting.origin).collect();
        if pointers.is_empty() {
            self.ages.forget(old);
        }
        pointers
    }

    /// The last valid checkpoint, and what its writer had seen.
    #[must_use]
    pub fn checkpoint(&self) -> Option<(i64, i64)> {
        self.checkpoint
    }

    /// The first record of the log.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.start.first()
    }

    /// Where the log is about to be cut, as the last valid checkpoint says.
    #[must_use]
    pub fn named_cut(&self) -> Option<i64> {
        self.start.cut()
    }

    /// Whether a checkpoint says that the log begins where it does.
    #[must_use]
    pub fn is_beginning_named(&self) -> bool {
        self.start.is_named()
    }

    /// What is missing of the log although no owner cut it off.
    #[must_use]
    pub fn missing(&self) -> Option<Missing> {
        self.start.missing()
    }

    /// The tag of a business key, within this state.
    #[must_use]
    pub fn tag(&self, lane: &[u8]) -> LaneTag {
        LaneTag::new(self.tags.hash_one(lane))
    }

    /// The lowest place in the log that something live stands at.
    #[must_use]
    pub fn lowest_live(&self) -> Option<i64> {
        let waiting = self.waiting.iter().map(|waiting| waiting.at);
        let closed = self.closed.iter().map(|(_, closure)| closure.at);
        let orders = self.orders.values().map(|(at, _)| *at);
        waiting.chain(closed).chain(orders).chain(self.replays.first()).min()
    }
}

/// Whether this names the record that waits, and not one of its origin that waited before or again.
pub(crate) fn is_it(waiting: &Waiting, done: Done) -> bool {
    // As far as the index counts.
    let (attempt, replay) = (done.attempt.min(u16::MAX.into()), done.replay.min(u8::MAX.into()));
    (waiting.origin, waiting.attempt, waiting.replay) == (done.origin, attempt, replay)
}
