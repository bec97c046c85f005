//! What the owner of a shelf partition adds to the fold: its claim, and what it wrote and has not read back.
//!
//! Nothing it writes counts before it was read back and found valid. What was void, or is missing although
//! something written later was read, is written again with a new number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};

use super::entry::{Announced, Checkpoint, ClaimId, Closed, Done, Entry, Identity, Outcome, Stamp, Wait};
use super::fold::{Folded, Shelf};
use super::start::Beginning;
use crate::offsets::Progress;

/// What of the log may be dead before it is cut.
const DEAD: u64 = 8 << 20;
/// How many checkpoints are remembered as places to cut at.
const MANY: usize = 1_000;
/// How much more may come before it is looked at again.
const LOOK: u64 = 1 << 20;

/// How far a take-over has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The claim was written and is being read up to.
    Claiming,
    /// It stands; now the group has to accept a commit.
    Proving,
    /// It is proven; where the source begins is being found out.
    Locating,
    /// Where the source begins is written and being read back.
    Beginning,
    /// The partition runs.
    Running,
}

/// What an owner writes, before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A record that waits, for the first time or again.
    Wait(Arc<Wait>),
    /// A record that waits as before, carried to the end of the log.
    Carried(Arc<Wait>),
    /// A lane that is closed.
    Closed(Closed),
    /// The answer to an order.
    Outcome(Outcome),
    /// How far it has come.
    Checkpoint {
        /// The source.
        progress: Progress,
        /// Whether the source begins there.
        begins: bool,
        /// What waited and is complete.
        done: Vec<Done>,
        /// The last offset that was folded when it was made: it knows of nothing after that.
        seen: i64,
    },
}

/// What reading an entry meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Somebody else's, or nothing new.
    Other,
    /// Our claim stands.
    Claimed,
    /// Another's claim stands: ours has to be made again.
    Rival,
    /// Our claim is for a shelf that belongs to somebody else.
    Foreign,
    /// What we wrote counts.
    Confirmed(Body),
    /// An order, to be answered.
    Ordered,
}

/// The owner of one shelf partition.
#[derive(Debug)]
pub struct Owner {
    /// The state of the log as far as it was read.
    pub shelf: Shelf,
    identity: Identity,
    claim: ClaimId,
    seq: u64,
    phase: Phase,
    started: bool,
    /// The last offset that was folded.
    folded: i64,
    /// Written under the claim, not read back.
    pending: BTreeMap<u64, Body>,
    /// To be written once the claim is proven, or written again.
    unsent: VecDeque<Body>,
    /// Something of that did not land, and was not asked about since.
    lost: bool,
    /// Complete, and in no checkpoint yet.
    done: Vec<Done>,
    /// The mark of the last checkpoint that was read back.
    safe: Option<i64>,
    /// The last progress that was handed out to be written.
    last: Option<Progress>,
    /// Orders whose answer is on its way, and the records they are about: these stay where they are.
    answering: HashSet<String>,
    /// Orders that were read and that nobody has begun to answer, in the order of the log.
    unseen: Vec<String>,
    answered: HashMap<i64, u32>,
    /// Records on their way to the shelf, and letters on their way to close a lane: what the log says of them
    /// may be said once more.
    writing: HashSet<i64>,
    /// Records on their way to the end of the log.
    carrying: HashSet<i64>,
    unbound: Vec<i64>,
    /// Records of the log that are no entries, and whose letters are not written.
    undecodable: BTreeSet<i64>,
    /// Bytes of the log that were folded, and how many of them are cut off.
    bytes: u64,
    cut: u64,
    /// The checkpoints that count, with the bytes before each.
    checkpoints: VecDeque<(i64, u64)>,
    looked: u64,
    /// Where the log is to be cut as soon as a checkpoint that says so was read back.
    next_cut: Option<i64>,
    /// Where we cut it last.
    cut_at: Option<i64>,
}

impl Owner {
    /// An owner that is about to claim the partition.
    #[must_use]
    pub fn new(identity: Identity, claim: ClaimId) -> Self {
        Self {
            shelf: Shelf::default(),
            identity,
            claim,
            seq: 0,
            phase: Phase::Claiming,
            started: false,
            folded: -1,
            pending: BTreeMap::new(),
            unsent: VecDeque::new(),
            lost: false,
            done: Vec::new(),
            safe: None,
            last: None,
            answering: HashSet::new(),
            unseen: Vec::new(),
            answered: HashMap::new(),
            writing: HashSet::new(),
            carrying: HashSet::new(),
            unbound: Vec::new(),
            undecodable: BTreeSet::new(),
            bytes: 0,
            cut: 0,
            checkpoints: VecDeque::new(),
            looked: 0,
            next_cut: None,
            cut_at: None,
        }
    }

    /// The claim, to be written.
    #[must_use]
    pub fn claim_entry(&self) -> Entry {
        Entry::Claim(self.stamp(), self.identity.clone())
    }

    /// The claim was overruled or may be lost: another has to be written.
    pub fn claim_again(&mut self, claim: ClaimId) -> Entry {
        self.claim = claim;
        self.phase = Phase::Claiming;
        let void = std::mem::take(&mut self.pending);
        self.write_again(void.into_values());
        self.claim_entry()
    }

    /// Which claim it has.
    #[must_use]
    pub fn claim(&self) -> ClaimId {
        self.claim
    }

    /// How far it has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether records may be taken from the shelf.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the source has begun.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// The last offset that was read.
    #[must_use]
    pub fn folded(&self) -> i64 {
        self.folded
    }

    /// The mark that may be committed.
    #[must_use]
    pub fn safe(&self) -> Option<i64> {
        self.safe
    }

    /// The commit that proves the claim was accepted. Says whether that was still to be proven.
    pub fn proven(&mut self, claim: ClaimId) -> bool {
        if self.phase != Phase::Proving || claim != self.claim {
            return false;
        }
        let begins = |body: &Body| matches!(body, Body::Checkpoint { begins: true, .. });
        self.phase = match (self.started, self.unsent.iter().any(begins)) {
            (true, _) => Phase::Running,
            (false, true) => Phase::Beginning,
            (false, false) => Phase::Locating,
        };
        true
    }

    /// The source goes on at the folded mark. Says whether it was asked for.
    pub fn goes_on(&mut self) -> bool {
        if self.phase != Phase::Locating {
            return false;
        }
        self.phase = Phase::Running;
        self.started = true;
        let progress = self.shelf.progress();
        self.safe = progress.as_ref().map(Progress::mark);
        // Where the log begins is not said there, or somebody accepted what is missing: a checkpoint says it now.
        self.last = progress.filter(|_| self.shelf.is_beginning_named());
        true
    }

    /// The source begins at an offset that is first written down.
    pub fn begins_at(&mut self, offset: i64) {
        if self.phase == Phase::Locating {
            self.phase = Phase::Beginning;
            self.unsent.push_back(Body::Checkpoint {
                progress: Progress::at(offset),
                begins: true,
                done: Vec::new(),
                seen: self.seen(),
            });
        }
    }

    /// A record is to wait.
    pub fn shelve(&mut self, wait: Arc<Wait>) {
        self.writing.insert(wait.record.at.offset);
        self.unsent.push_back(Body::Wait(wait));
    }

    /// A letter closes its lane, and completes its record.
    pub fn close(&mut self, origin: i64, lane: Bytes) {
        self.writing.insert(origin);
        self.unsent.push_back(Body::Closed(Closed { origin, lane, completes: true, announced: None }));
    }

    /// A record that waits goes to the end of the log, as it is by now.
    pub fn carry(&mut self, wait: Arc<Wait>) {
        if self.carrying.insert(wait.record.at.offset) {
            self.unsent.push_back(Body::Carried(wait));
        }
    }

    /// A closure goes to the end of the log.
    pub fn carry_closure(&mut self, origin: i64, lane: Bytes, announced: Option<Announced>) {
        self.unsent.push_back(Body::Closed(Closed { origin, lane, completes: false, announced }));
    }

    /// Answers an order.
    pub fn answer(&mut self, outcome: Outcome) {
        for origin in std::iter::once(&outcome.origin).chain(&outcome.also) {
            *self.answered.entry(*origin).or_default() += 1;
        }
        self.unsent.push_back(Body::Outcome(outcome));
    }

    /// Whether a record must stay where it is: an entry or an answer about it is on its way.
    #[must_use]
    pub fn is_bound(&self, origin: i64) -> bool {
        self.writing.contains(&origin)
            || self.carrying.contains(&origin)
            || self.answered.contains_key(&origin)
    }

    /// A waiting record is complete: the next checkpoint says so.
    pub fn finish(&mut self, done: Done) {
        self.done.push(done);
    }

    /// Writes down how far it has come. `progress` is of the source, and of this moment.
    pub fn checkpoint(&mut self, progress: Progress) {
        let mut done = std::mem::take(&mut self.done);
        // Those on their way may be lost while this one lands, and what is done here may have come after
        // what is done there.
        for body in self.pending.values().chain(&self.unsent) {
            if let Body::Checkpoint { done: before, .. } = body {
                done.extend(before);
            }
        }
        done.sort_unstable();
        done.dedup();
        self.last = Some(progress.clone());
        self.unsent.push_back(Body::Checkpoint { progress, begins: false, done, seen: self.seen() });
    }

    /// Whether something is complete that no checkpoint says.
    #[must_use]
    pub fn has_news(&self, progress: &Progress) -> bool {
        !self.done.is_empty() || self.last.as_ref() != Some(progress)
    }

    /// Whether everything that was written was read back.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.unsent.is_empty() && self.done.is_empty()
    }

    /// Whether nothing is on its way, in any of the ways there are.
    #[cfg(test)]
    pub(crate) fn is_at_rest(&self) -> bool {
        let bound = self.answering.len() + self.answered.len() + self.carrying.len() + self.writing.len();
        self.is_settled() && bound == 0
    }

    /// The next entry to append, in this order and through one producer.
    pub fn next_entry(&mut self) -> Option<Entry> {
        match self.phase {
            Phase::Running | Phase::Beginning => {}
            Phase::Claiming | Phase::Proving | Phase::Locating => return None,
        }
        let body = self.unsent.pop_front()?;
        self.seq += 1;
        let mut stamp = self.stamp();
        if let Body::Checkpoint { seen, .. } = &body {
            stamp.seen = *seen;
        }
        let entry = match &body {
            Body::Wait(wait) | Body::Carried(wait) => Entry::Wait(stamp, wait.clone()),
            Body::Closed(closed) => Entry::Closed(stamp, closed.clone()),
            Body::Outcome(outcome) => Entry::Outcome(stamp, outcome.clone()),
            Body::Checkpoint { progress, begins, done, .. } => {
                let (identity, progress) = (self.identity.clone(), progress.clone());
                let (begins, done, log) = (*begins, done.clone(), self.beginning());
                Entry::Checkpoint(stamp, Checkpoint { identity, progress, begins, done, log })
            }
        };
        self.pending.insert(self.seq, body);
        Some(entry)
    }

    /// Where the log begins, and where it is about to.
    fn beginning(&self) -> Option<Beginning> {
        Some(Beginning { at: self.cut_at.or(self.shelf.first())?, cut: self.next_cut })
    }

    /// Up to where a checkpoint speaks: whoever reads it takes what is undecodable below for buried.
    fn seen(&self) -> i64 {
        self.undecodable.first().map_or(self.folded, |at| at - 1)
    }

    /// A record of the log was read that is no entry.
    pub fn read_undecodable(&mut self, at: i64, size: u32) {
        self.folded = at;
        self.bytes += u64::from(size);
        self.shelf.fold_undecodable(at);
        self.undecodable.insert(at);
    }

    /// The first record of the log that is no entry, and whose letter is not written.
    #[must_use]
    pub fn undecodable(&self) -> Option<i64> {
        self.undecodable.first().copied()
    }

    /// Its letter is written: the next checkpoint says so.
    pub fn buried_undecodable(&mut self, at: i64) {
        if self.undecodable.remove(&at) {
            self.last = None;
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp { claim: self.claim, seq: self.seq, seen: self.folded }
    }

    /// An append failed for certain or may have: it is written again with a new number.
    pub fn append_failed(&mut self, claim: ClaimId, seq: u64) {
        if claim == self.claim
            && let Some(body) = self.pending.remove(&seq)
        {
            self.write_again([body]);
        }
    }

    /// What was written under this mark and does not fit on the shelf, if it is a record that waits; and whether it
    /// was only carried.
    #[must_use]
    pub fn unfit(&self, claim: ClaimId, seq: u64) -> Option<(&Arc<Wait>, bool)> {
        match self.pending.get(&seq).filter(|_| claim == self.claim)? {
            Body::Wait(wait) => Some((wait, false)),
            Body::Carried(wait) => Some((wait, true)),
            Body::Closed(_) | Body::Outcome(_) | Body::Checkpoint { .. } => None,
        }
    }

    /// The record that was written under this number does not wait after all.
    pub fn give_up_wait(&mut self, seq: u64) {
        if let Some(Body::Wait(wait)) = self.pending.remove(&seq) {
            self.writing.remove(&wait.record.at.offset);
        }
    }

    /// The record that was written under this mark waits like this instead.
    pub fn replace(&mut self, seq: u64, with: Wait) {
        if let Some(Body::Wait(wait)) = self.pending.get_mut(&seq) {
            *wait = Arc::new(with);
        }
    }

    /// What did not land, or did not count. What it says must still be so when it is written again: a
    /// checkpoint is made anew, and what was only carried stays where it is.
    fn write_again(&mut self, void: impl IntoIterator<Item = Body>) {
        let mut again = VecDeque::new();
        for body in void {
            match body {
                Body::Checkpoint { begins: false, done, .. } => {
                    self.done.extend(done);
                    self.last = None;
                }
                Body::Carried(wait) => {
                    self.carrying.remove(&wait.record.at.offset);
                    self.unbound.push(wait.record.at.offset);
                }
                Body::Closed(Closed { completes: false, .. }) => {}
                Body::Checkpoint { begins: true, .. }
                | Body::Wait(_)
                | Body::Closed(Closed { completes: true, .. })
                | Body::Outcome(_) => again.push_back(body),
            }
        }
        self.lost |= !again.is_empty();
        again.append(&mut self.unsent);
        self.unsent = again;
    }

    /// Whether something did not land since this was asked, and has to be written again.
    pub fn has_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// The waiting record that we wrote under this mark and have not read back: what the log says there is known.
    #[must_use]
    pub fn expected(&self, stamp: Stamp) -> Option<Entry> {
        match self.pending.get(&stamp.seq).filter(|_| stamp.claim == self.claim)? {
            Body::Wait(wait) | Body::Carried(wait) => Some(Entry::Wait(stamp, wait.clone())),
            Body::Closed(_) | Body::Outcome(_) | Body::Checkpoint { .. } => None,
        }
    }

    /// An entry was read.
    pub fn read(&mut self, at: i64, entry: &Entry, size: u32) -> Seen {
        self.folded = at;
        let before = self.bytes;
        self.bytes += u64::from(size);
        let folded = self.shelf.fold(at, entry, size);
        let stamp = entry.stamp();
        let is_ours = stamp.is_some_and(|stamp| stamp.claim == self.claim);
        match folded {
            Folded::Foreign if is_ours => Seen::Foreign,
            Folded::Skipped | Folded::Void | Folded::Foreign => Seen::Other,
            Folded::Ordered => {
                if let Entry::Order(order) = entry {
                    self.unseen.push(order.id.clone());
                }
                Seen::Ordered
            }
            Folded::Claimed if is_ours => {
                if self.phase == Phase::Claiming {
                    self.phase = Phase::Proving;
                }
                Seen::Claimed
            }
            // What came before our claim is history; what comes after it is a rival's.
            Folded::Claimed if self.phase == Phase::Claiming => Seen::Other,
            Folded::Claimed => Seen::Rival,
            Folded::Counted => {
                if let Entry::Checkpoint(stamp, _) = entry {
                    self.undecodable = self.undecodable.split_off(&stamp.seen.saturating_add(1));
                    self.checkpoints.push_back((at, before));
                    // Where the log cannot be cut for long, any of them will do.
                    if self.checkpoints.len() > MANY {
                        let mut keep = false;
                        self.checkpoints.retain(|_| {
                            keep = !keep;
                            keep
                        });
                    }
                }
                match stamp.filter(|_| is_ours) {
                    Some(stamp) => self.confirm(stamp.seq),
                    None => Seen::Other,
                }
            }
        }
    }

    fn confirm(&mut self, seq: u64) -> Seen {
        let Some(body) = self.pending.remove(&seq) else { return Seen::Other };
        // One producer writes in order: what has a lower number and was not read is not there.
        if self.pending.first_key_value().is_some_and(|(first, _)| *first < seq) {
            let later = self.pending.split_off(&seq);
            let lost = std::mem::replace(&mut self.pending, later);
            self.write_again(lost.into_values());
        }
        match &body {
            Body::Checkpoint { begins, .. } => {
                self.safe = self.shelf.progress().map(|progress| progress.mark());
                if *begins {
                    self.phase = Phase::Running;
                    self.started = true;
                }
            }
            Body::Outcome(outcome) => {
                self.answering.remove(&outcome.id);
                for origin in std::iter::once(&outcome.origin).chain(&outcome.also) {
                    if let Some(count) = self.answered.get_mut(origin) {
                        *count -= 1;
                        if *count == 0 {
                            self.answered.remove(origin);
                        }
                    }
                }
            }
            Body::Carried(wait) => {
                self.carrying.remove(&wait.record.at.offset);
            }
            Body::Wait(wait) => {
                self.writing.remove(&wait.record.at.offset);
            }
            Body::Closed(closed) if closed.completes => {
                self.writing.remove(&closed.origin);
            }
            Body::Closed(_) => {}
        }
        Seen::Confirmed(body)
    }

    /// Takes the orders that nobody has begun to answer, one about each record. Where an entry or an answer
    /// about it is on its way, the order waits: what lands once more would undo what was answered since.
    pub fn unanswered(&mut self) -> Vec<super::Order> {
        let (mut new, mut later, mut origins) = (Vec::new(), Vec::new(), HashSet::new());
        // In the order of the log, which is the order of what is left for later too.
        for id in std::mem::take(&mut self.unseen) {
            let order = self.shelf.order(&id).map(|(_, order)| order);
            let Some(order) = order.filter(|_| !self.answering.contains(&id)) else { continue };
            if self.is_busy(order.origin) || !origins.insert(order.origin) {
                later.push(id);
                continue;
            }
            new.push(order.clone());
        }
        self.unseen = later;
        self.answering.extend(new.iter().map(|order| order.id.clone()));
        new
    }

    /// An order is looked at again later, when [`Self::reconsider`] says so.
    pub fn defer(&mut self, id: &str) {
        self.answering.remove(id);
    }

    /// An order that was deferred is to be looked at.
    pub fn reconsider(&mut self, id: String) {
        self.unseen.push(id);
    }

    /// Whether an entry about this record is on its way, other than one that carries it.
    #[must_use]
    pub fn is_writing(&self, origin: i64) -> bool {
        self.writing.contains(&origin)
    }

    /// Whether an entry or an answer about this record is on its way, other than one that carries it.
    #[must_use]
    pub fn is_busy(&self, origin: i64) -> bool {
        self.writing.contains(&origin) || self.answered.contains_key(&origin)
    }

    /// Bytes of the log that are there.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.bytes - self.cut
    }

    /// Up to where the log is to be cut now. Where that is worth it, the next checkpoint names the place, and once
    /// that was read back it may be cut: whoever takes over then knows whose cut it was.
    pub fn trim_point(&mut self) -> Option<i64> {
        let dead = self.log_bytes().saturating_sub(self.shelf.waiting.bytes());
        if self.next_cut.is_none() && dead >= DEAD && self.bytes >= self.looked.saturating_add(LOOK) {
            self.looked = self.bytes;
            self.prepare_cut();
        }
        let named = self.shelf.named_cut();
        self.next_cut.take_if(|cut| named == Some(*cut))
    }

    /// The next checkpoint names the best place to cut the log at, whether that is worth it or not.
    pub(crate) fn prepare_cut(&mut self) {
        self.next_cut = self.best_cut();
        if self.next_cut.is_some() {
            self.last = None;
        }
    }

    /// A checkpoint that counts, below which nothing is live and which a later one has seen.
    fn best_cut(&self) -> Option<i64> {
        let (_, seen) = self.shelf.checkpoint()?;
        let live = self.shelf.lowest_live().unwrap_or(i64::MAX);
        let cut = self.checkpoints.iter().rev().find(|(at, _)| *at <= live && *at <= seen)?;
        (cut.1 > self.cut).then_some(cut.0)
    }

    /// Whether what is live should be carried to the end of the log, so that the rest can be cut; up to where.
    #[must_use]
    pub fn carry_point(&self) -> Option<i64> {
        let live = self.shelf.waiting.bytes();
        let is_worth_it = self.log_bytes() > 2 * live + 2 * DEAD;
        let (at, _) = self.shelf.checkpoint()?;
        is_worth_it.then_some(at)
    }

    /// Something was carried: maybe the log can be cut now.
    pub fn look_again(&mut self) {
        self.looked = 0;
    }

    /// Records that may move again, as what bound them was dropped.
    pub fn take_unbound(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.unbound)
    }

    /// The log was cut.
    pub fn trimmed(&mut self, to: i64) {
        self.cut_at = self.cut_at.max(Some(to));
        while let Some((at, before)) = self.checkpoints.front().copied().filter(|(at, _)| *at <= to) {
            if at == to {
                self.cut = before;
                break;
            }
            self.checkpoints.pop_front();
        }
    }
}
