//! The broker, the group, the workers and the handler of the simulation.

mod checks;
mod cuts;
mod tools;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;

use super::naive::Naive;
use crate::class::Class;
use crate::classify::Classifier;
use crate::failure::{Cause, Failure};
use crate::flow::{
    Action, Attempt, Fate, Flow, Id, Kept, Limits, Located, Notice, Now, Settings, ShelfSettings,
};
use crate::headers::Headers;
use crate::lanes::Followers;
use crate::record::Record;
use crate::route::{PerClass, Reason, Rules, Strategy};
use crate::settings::{Blocking, OrderBy, Payload};
use crate::shelf::{ClaimId, Deed, Entry, Identity, Order, Phase, Verdict};
use crate::time::Timestamp;
use tools::Tool;

const KEYS: u64 = 4;

/// What may go wrong; all of it unless a test says otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    pub(super) resets: bool,
    pub(super) orders: bool,
    pub(super) replays: bool,
    pub(super) limit: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self { resets: true, orders: true, replays: true, limit: 6 }
    }
}

/// What the handler does with a record, try by try; then it succeeds.
pub(super) type Script = VecDeque<Class>;

/// On its way to the broker.
#[derive(Debug, Clone)]
enum Sent {
    Claim(Entry),
    Append(Entry),
    Prove(ClaimId),
    Commit(i64),
    Trim(i64),
    /// Entries, outputs, letters and the mark, all or nothing.
    Transaction {
        entries: Vec<Entry>,
        outputs: Vec<Turn>,
        letters: Vec<Turn>,
        mark: Option<i64>,
        id: u64,
    },
}

struct Worker {
    flow: Flow,
    /// The generation it knows of, while it believes that the partition is its own.
    generation: Option<u64>,
    draining: bool,
    alive: bool,
    /// Where its log began when it took over; where it reads the shelf, and the source.
    shelf_from: i64,
    shelf_at: i64,
    source_at: Option<i64>,
    /// In the order in which they were sent; each with the generation it was sent in.
    sent: VecDeque<(u64, Sent)>,
    running: Vec<Attempt>,
    /// With the handler for a partition that was given up since.
    orphans: Vec<Attempt>,
    /// What was tried since it took over.
    tried: HashSet<(Turn, u32)>,
    /// Letters that it put on the shelf since it took over, and read back.
    put_back: HashSet<Turn>,
    /// What was in hand when a letter before it in its lane came to wait: it runs.
    excused: HashSet<(i64, i64)>,
    burying: Vec<(Id, i64)>,
    paused: bool,
    fetching: Vec<i64>,
    /// Originals that it has to read back.
    recalling: Vec<i64>,
    /// From where to where it still has to read the log, to have it in memory.
    passing: Option<(i64, i64)>,
    locating: Option<Option<i64>>,
    transacting: bool,
    outputs: Vec<Turn>,
    letters: Vec<Turn>,
}

/// A record, and which time it was sent back.
pub(super) type Turn = (i64, u32);

/// Everything there is.
pub(super) struct World {
    chance: u64,
    exactly_once: bool,
    followers: Followers,
    faults: Faults,
    now: i64,
    source: Vec<(u64, Script)>,
    /// When each of these was produced.
    produced: Vec<i64>,
    /// How long they are kept, where pointers to them wait.
    kept: Option<Kept>,
    /// The shelf: everything ever written, and where its log begins.
    log: BTreeMap<i64, Entry>,
    /// What all of it means.
    naive: Naive,
    start: i64,
    end: i64,
    committed: Option<(i64, bool)>,
    generation: u64,
    owner: Option<usize>,
    workers: Vec<Worker>,
    /// Successes in the order in which they happened, by lane; only of rightful owners.
    handled: HashMap<u64, Vec<i64>>,
    succeeded: BTreeMap<i64, u32>,
    /// Successes of those who were not rightful owners any more.
    blurred: BTreeSet<i64>,
    /// What a read-committed reader sees.
    visible: BTreeMap<Turn, u32>,
    buried: BTreeSet<i64>,
    /// Letters whose order has its outcome: they wait again.
    accepted: BTreeSet<Turn>,
    /// Of these, what was handled or is a letter again; under exactly-once, for all to see.
    ended: BTreeSet<Turn>,
    /// And what was handled, whether it is to be seen or not.
    succeeded_again: BTreeSet<Turn>,
    tools: Vec<Tool>,
    jobs: u64,
    orders: u64,
    resets: BTreeSet<i64>,
    lowest_reset: i64,
    late: Vec<Entry>,
    /// Cuts that somebody asked for who is gone since.
    late_cuts: Vec<i64>,
    /// Where somebody else has cut the log, and whether whoever took over then said so.
    cut_at: Option<i64>,
    is_noticed: bool,
    transactions: BTreeSet<u64>,
    next_transaction: u64,
    calm: bool,
    /// Tells what it does, to see why a seed fails.
    tells: bool,
    /// What happened, and how often.
    pub(super) seen: BTreeMap<&'static str, u64>,
}

impl World {
    pub(super) fn new(seed: u64, followers: Followers, exactly_once: bool, faults: Faults) -> Self {
        let mut world = Self {
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635,
            exactly_once,
            followers,
            faults,
            now: 1_000_000,
            source: Vec::new(),
            produced: Vec::new(),
            kept: match seed % 3 {
                0 => None,
                1 => Some(Kept::Always),
                _ => Some(Kept::For(Duration::from_millis(150))),
            },
            log: BTreeMap::new(),
            naive: Naive::default(),
            start: 0,
            end: 0,
            committed: None,
            generation: 0,
            owner: None,
            workers: Vec::new(),
            handled: HashMap::new(),
            succeeded: BTreeMap::new(),
            blurred: BTreeSet::new(),
            visible: BTreeMap::new(),
            buried: BTreeSet::new(),
            accepted: BTreeSet::new(),
            ended: BTreeSet::new(),
            succeeded_again: BTreeSet::new(),
            tools: Vec::new(),
            jobs: 0,
            orders: 0,
            resets: BTreeSet::new(),
            lowest_reset: i64::MAX,
            late: Vec::new(),
            late_cuts: Vec::new(),
            cut_at: None,
            is_noticed: false,
            transactions: BTreeSet::new(),
            next_transaction: 0,
            calm: false,
            tells: std::env::var_os("REDRIVE_TELL").is_some(),
            seen: BTreeMap::new(),
        };
        for _ in 0..2 {
            world.hire();
        }
        world
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.tells {
            eprintln!("{} {}", self.now, what());
        }
    }

    fn settings(&self, process: u64) -> Settings {
        let policies = PerClass::from_fn(|class| {
            let text = match class {
                Class::Permanent => "never",
                Class::Transient => "list(5ms x2)",
                Class::Outage => "exponential(5ms..20ms x2)",
                Class::NotReady => "list(10ms x2, 50ms x2)",
            };
            text.parse().unwrap()
        });
        Settings {
            group: "g".into(),
            instance: "i".into(),
            rules: Rules {
                classifier: Classifier::always(Class::Transient),
                policies,
                exhausted: PerClass::default(),
                strategy: Strategy::Shelf,
            },
            order_by: OrderBy::Key,
            followers: self.followers,
            blocking: Blocking::Subscription,
            concurrency: NonZeroU32::new(3).unwrap(),
            retry_concurrency: NonZeroU32::new(3).unwrap(),
            surge_guard: None,
            max_loss: None,
            limits: Limits { records: 12, bytes: 1 << 20 },
            shelf: Some(ShelfSettings {
                identity: Identity { topic: "orders".into(), topic_id: None, group: "g".into() },
                process,
                // Room for one or two, so that most are read back.
                cache: 2_500,
                limits: Limits { records: self.faults.limit, bytes: 1 << 20 },
                payload: if self.kept.is_some() { Payload::Pointer } else { Payload::Whole },
                originals: self.kept,
            }),
        }
    }

    fn hire(&mut self) {
        let process = self.workers.len() as u64 + 1;
        let flow = Flow::new(self.settings(process));
        self.workers.push(Worker {
            flow,
            generation: None,
            draining: false,
            alive: true,
            shelf_from: 0,
            shelf_at: 0,
            source_at: None,
            sent: VecDeque::new(),
            running: Vec::new(),
            orphans: Vec::new(),
            tried: HashSet::new(),
            put_back: HashSet::new(),
            excused: HashSet::new(),
            burying: Vec::new(),
            paused: false,
            fetching: Vec::new(),
            recalling: Vec::new(),
            passing: None,
            locating: None,
            transacting: false,
            outputs: Vec::new(),
            letters: Vec::new(),
        });
    }

    /// What a worker takes for the time: the broker's, never more.
    fn time(&mut self) -> Now {
        let lag = if self.calm { 0 } else { self.roll(4) as i64 };
        Now { steady: Duration::from_millis(self.now as u64), wall: Timestamp::from_millis(self.now - lag) }
    }

    pub(super) fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.roll(100) {
            0..10 => self.produce(),
            10..16 => self.now += self.roll(12) as i64,
            16 => self.now += self.roll(80) as i64,
            17..20 => self.rebalance(),
            20 => self.kick(),
            21 => self.crash(),
            22..27 if self.faults.orders => self.order(),
            27 if self.faults.resets => self.reset(),
            28..31 => self.land_late(),
            31 | 32 if self.faults.replays => self.send_back(),
            33 | 34 if self.faults.replays => self.hire_tool(),
            35..43 if self.faults.replays => self.use_tool(),
            _ => {
                if self.owner.is_none() && self.roll(4) == 0 {
                    self.assign();
                }
                for _ in 0..6 {
                    self.some_work();
                }
            }
        }
    }

    /// One of those who take the partition for their own does something.
    fn some_work(&mut self) {
        let busy = |worker: &Worker| worker.alive && worker.generation.is_some();
        let workers: Vec<_> = (0..self.workers.len()).filter(|one| busy(&self.workers[*one])).collect();
        if !workers.is_empty() {
            let chosen = self.roll(workers.len() as u64) as usize;
            self.work(workers[chosen]);
        }
    }

    fn produce(&mut self) {
        let key = self.roll(KEYS);
        let mut script = Script::new();
        if self.roll(3) == 0 {
            for _ in 0..=self.roll(4) {
                script.push_back(match self.roll(8) {
                    0 => Class::Permanent,
                    1 => Class::Outage,
                    2 | 3 => Class::Transient,
                    _ => Class::NotReady,
                });
            }
        }
        self.source.push((key, script));
        self.produced.push(self.now);
    }

    /// The group gives the partition to somebody else: the owner is asked to give it up first.
    fn rebalance(&mut self) {
        match self.owner {
            Some(owner) if self.workers[owner].alive && self.workers[owner].generation.is_some() => {
                if !self.workers[owner].draining && self.roll(3) == 0 {
                    self.workers[owner].draining = true;
                    self.workers[owner].flow.drain(0);
                }
            }
            _ => self.assign(),
        }
    }

    fn assign(&mut self) {
        let candidates: Vec<_> = (0..self.workers.len())
            .filter(|one| self.workers[*one].alive && self.workers[*one].generation.is_none())
            .collect();
        if candidates.is_empty() {
            return;
        }
        let chosen = candidates[self.roll(candidates.len() as u64) as usize];
        self.generation += 1;
        self.owner = Some(chosen);
        let generation = self.generation;
        let worker = &mut self.workers[chosen];
        worker.generation = Some(generation);
        worker.draining = false;
        self.take_over(chosen);
    }

    fn take_over(&mut self, index: usize) {
        let start = self.start;
        self.tell(|| format!("{index} takes over from {start}"));
        let worker = &mut self.workers[index];
        worker.flow.take_over(0);
        (worker.shelf_from, worker.shelf_at) = (start, start);
        worker.source_at = None;
        worker.locating = None;
        worker.transacting = false;
        worker.outputs.clear();
        worker.letters.clear();
        worker.fetching.clear();
        worker.recalling.clear();
        worker.passing = None;
        worker.paused = false;
        worker.tried.clear();
        worker.put_back.clear();
        worker.excused.clear();
        worker.orphans.append(&mut worker.running);
        // Unless they are claims, they are of no use; but they may land.
        self.act(index);
    }

    /// The owner misses its heartbeats and goes on without knowing.
    fn kick(&mut self) {
        if self.owner.is_some() {
            self.generation += 1;
            self.owner = None;
            self.assign();
        }
    }

    fn crash(&mut self) {
        let index = self.roll(self.workers.len() as u64) as usize;
        self.fire(index);
    }

    fn fire(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if !worker.alive {
            return;
        }
        self.tell(|| format!("{index} crashes"));
        let worker = &mut self.workers[index];
        worker.alive = false;
        worker.generation = None;
        // What was sent may still land, all of it up to some point.
        let sent: Vec<_> = worker.sent.drain(..).collect();
        let survivors = self.roll(sent.len() as u64 + 1) as usize;
        for (_, one) in sent.into_iter().take(survivors) {
            match one {
                Sent::Append(entry) | Sent::Claim(entry) if !self.exactly_once => self.late.push(entry),
                Sent::Trim(to) => self.late_cuts.push(to),
                _ => {}
            }
        }
        if self.owner == Some(index) {
            self.owner = None;
            self.generation += 1;
        }
        self.hire();
    }

    /// What a dead or former owner sent arrives after all.
    fn land_late(&mut self) {
        if !self.late_cuts.is_empty() && self.roll(2) == 0 {
            let to = self.late_cuts.remove(0);
            self.note("cuts of those who are gone");
            self.cut(to);
            return;
        }
        if !self.late.is_empty() {
            let entry = self.late.remove(0);
            self.append(entry);
        }
    }

    fn append(&mut self, entry: Entry) -> i64 {
        // Markers of transactions take offsets too.
        if self.roll(6) == 0 {
            self.end += 1;
        }
        let at = self.end;
        let written = entry.write();
        let record = Record {
            at: crate::Origin { topic: "orders.g.shelf".parse().unwrap(), partition: 0, offset: at },
            timestamp: None,
            key: written.key,
            value: written.value,
            headers: written.headers,
        };
        assert_eq!(Entry::read(&record).as_ref(), Ok(&entry), "what is written is read");
        self.tell(|| format!("log {at}: {}", checks::in_short(&entry)));
        let answered = match &entry {
            Entry::Outcome(_, outcome) if outcome.verdict == Verdict::Replayed => {
                outcome.order.and_then(|order| Some((order, *self.naive.replays.get(&order)?)))
            }
            _ => None,
        };
        self.naive.fold(at, &entry);
        if let Some((order, done)) = answered
            && !self.naive.replays.contains_key(&order)
        {
            self.accepted.insert((done.origin, done.replay));
        }
        self.log.insert(at, entry);
        self.end = at + 1;
        at
    }

    fn order(&mut self) {
        if self.source.is_empty() {
            return;
        }
        let naive = self.naive.clone();
        let origin = match naive.waiting.keys().nth(self.roll(4) as usize) {
            Some(origin) => *origin,
            None => self.roll(self.source.len() as u64 + 2) as i64,
        };
        let deed = match self.roll(4) {
            0 => Deed::Release,
            1 => Deed::Reschedule { due: self.now + self.roll(60) as i64 },
            2 => Deed::Cancel,
            _ => Deed::Resolve,
        };
        let origin = match (deed, naive.closed.keys().next()) {
            (Deed::Resolve, Some(letter)) => *letter,
            _ => origin,
        };
        self.give(origin, deed);
    }

    fn give(&mut self, origin: i64, deed: Deed) {
        self.orders += 1;
        let id = format!("order-{}", self.orders);
        self.append(Entry::Order(Order {
            id,
            origin,
            deed,
            by: "me".into(),
            reason: "why".into(),
            job: None,
        }));
    }

    /// An operator moves the group, which he can only do while nobody is in it.
    fn reset(&mut self) {
        let idle = self.workers.iter().all(|worker| worker.generation.is_none());
        if idle && self.owner.is_none() && !self.source.is_empty() && self.roll(2) == 0 {
            let to = self.roll(self.source.len() as u64 + 1) as i64;
            self.committed = Some((to, false));
            self.tell(|| format!("reset to {to}"));
            self.resets.insert(to);
            self.lowest_reset = self.lowest_reset.min(to);
            // What is handled again may come after what was handled since, and what is skipped is lost by order.
            self.handled.clear();
        }
    }

    fn is_rightful(&self, index: usize) -> bool {
        self.owner == Some(index) && self.workers[index].generation == Some(self.generation)
    }

    fn work(&mut self, index: usize) {
        if !self.workers[index].alive {
            return;
        }
        // Told, and stopped.
        if self.workers[index].generation.is_none() || self.is_noticed {
            return;
        }
        match self.roll(12) {
            0..3 => self.deliver_shelf(index),
            3 | 4 => self.deliver_source(index),
            5 | 6 => self.land(index),
            7 | 8 => self.end_attempt(index),
            9 => self.bury(index),
            10 => self.look_after(index),
            _ => {
                self.answer(index);
                self.learn(index);
            }
        }
        self.act(index);
    }

    fn deliver_shelf(&mut self, index: usize) {
        let now = self.time();
        if self.workers[index].shelf_at < self.start {
            // Out of range: from the start, with nothing.
            self.take_over(index);
            return;
        }
        let next =
            self.log.range(self.workers[index].shelf_at..).next().map(|(at, entry)| (*at, entry.clone()));
        let Some((at, entry)) = next else { return };
        let worker = &mut self.workers[index];
        worker.shelf_at = at + 1;
        if let Some(expected) = entry.stamp().and_then(|stamp| worker.flow.expected(0, stamp)) {
            assert_eq!(expected, entry, "what it wrote stands in the log as it was written");
        }
        worker.flow.read(0, at, &entry, 100, now);
        self.note_put_back(index, &entry);
        if self.calm || self.roll(4) == 0 {
            self.check_agreement(index);
        }
    }

    fn deliver_source(&mut self, index: usize) {
        // What was fetched before the pause may come after it.
        if self.workers[index].paused && (self.calm || self.roll(4) > 0) {
            return;
        }
        let worker = &mut self.workers[index];
        let Some(at) = worker.source_at else { return };
        if at >= self.source.len() as i64 {
            return;
        }
        worker.source_at = Some(at + 1);
        let record = self.original(at);
        self.workers[index].flow.arrive(record);
    }

    /// The record of the source, as it was produced.
    fn original(&self, at: i64) -> Record {
        let key = self.source[at as usize].0;
        Record {
            at: crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset: at },
            timestamp: Some(Timestamp::from_millis(self.produced[at as usize])),
            key: (key > 0).then(|| Bytes::from(format!("key-{key}"))),
            value: Some(Bytes::from(format!("value-{at}"))),
            headers: Headers::default(),
        }
    }

    /// A pointer's original is read back, unless the source has removed it, which it may do from its time on.
    fn recall(&mut self, index: usize) {
        let Some(at) = self.workers[index].recalling.pop() else { return };
        let original = self.original(at);
        let expired =
            self.kept.and_then(|kept| kept.expires(&original)).is_some_and(|at| at.millis() <= self.now);
        let is_gone = expired && self.roll(2) == 0;
        self.note(if is_gone { "originals gone" } else { "originals read back" });
        self.workers[index].flow.recalled(0, at, Some(&original).filter(|_| !is_gone));
    }

    /// The first of what a worker sent reaches the broker.
    fn land(&mut self, index: usize) {
        let Some((generation, sent)) = self.workers[index].sent.pop_front() else { return };
        let fate = if self.calm { 9 } else { self.roll(10) };
        let accepted = generation == self.generation && self.owner == Some(index);
        let now = self.time();
        match sent {
            Sent::Claim(entry) => {
                let claim = entry.stamp().unwrap().claim;
                let fenced = self.exactly_once && !accepted;
                let late = fate == 3 && !self.exactly_once;
                if fate != 0 && !late && !fenced {
                    self.append(entry.clone());
                }
                if late {
                    self.note("claims told as failed that land later");
                    self.late.push(entry.clone());
                }
                if fate == 1 && !self.exactly_once {
                    self.append(entry);
                }
                if fate <= 2 || late || fenced {
                    self.workers[index].flow.claim_failed(0, claim);
                }
            }
            Sent::Append(entry) => {
                let stamp = entry.stamp().unwrap();
                match fate {
                    // Not written, and told so.
                    0 => self.workers[index].flow.append_failed(0, stamp.claim, stamp.seq),
                    // Written, and told otherwise.
                    1 => {
                        self.append(entry);
                        self.workers[index].flow.append_failed(0, stamp.claim, stamp.seq);
                    }
                    // Told otherwise, and written later.
                    2 => {
                        self.late.push(entry);
                        self.workers[index].flow.append_failed(0, stamp.claim, stamp.seq);
                    }
                    _ => drop(self.append(entry)),
                }
            }
            Sent::Prove(claim) => match accepted && fate > 1 {
                true => self.workers[index].flow.proven(0, claim, now),
                false => {
                    let known = self.known(index);
                    self.workers[index].sent.push_back((known, Sent::Prove(claim)));
                }
            },
            Sent::Commit(mark) => {
                if accepted && fate > 1 {
                    self.tell(|| format!("{index} commits {mark}"));
                    self.committed = Some((mark, true));
                }
            }
            Sent::Trim(to) => {
                // Nobody asks whose it is.
                if fate > 0 {
                    self.cut(to);
                }
                let told = (fate > 0).then_some(to);
                self.workers[index].flow.trimmed(0, told);
            }
            Sent::Transaction { entries, outputs, letters, mark, id } => {
                let commits = accepted && fate > 1;
                self.tell(|| {
                    format!("{index} transaction {id}: {commits}, outputs {outputs:?}, letters {letters:?}")
                });
                if commits {
                    assert!(self.transactions.insert(id));
                    for entry in entries.clone() {
                        self.append(entry);
                    }
                    for turn in &outputs {
                        *self.visible.entry(*turn).or_default() += 1;
                        self.ended.insert(*turn);
                    }
                    self.ended.extend(letters.iter().copied());
                    self.buried.extend(letters.iter().map(|(origin, _)| *origin));
                    if let Some(mark) = mark {
                        self.committed = Some((mark, true));
                    }
                }
                match fate {
                    // Nobody knows how it ended: the log says.
                    0 | 2 => {
                        self.note("transactions nobody knows the end of");
                        self.take_over(index);
                    }
                    _ if commits => self.workers[index].transacting = false,
                    // Aborted: once more, all of it.
                    _ => {
                        self.note("transactions aborted");
                        let again = Sent::Transaction { entries, outputs, letters, mark, id };
                        let known = self.known(index);
                        self.workers[index].sent.push_front((known, again));
                    }
                }
            }
        }
    }

    fn known(&self, index: usize) -> u64 {
        self.workers[index].generation.unwrap_or(0)
    }

    fn cut(&mut self, to: i64) {
        if to <= self.start {
            return;
        }
        let whole = &self.naive;
        let rest = Naive::of(self.log.range(to..));
        assert_eq!(
            format!("{:?}", whole.essence()),
            format!("{:?}", rest.essence()),
            "the log cut at {to} means what the whole means"
        );
        self.note("cuts");
        self.start = to;
    }

    fn end_attempt(&mut self, index: usize) {
        let (running, orphans) = (self.workers[index].running.len(), self.workers[index].orphans.len());
        if running + orphans == 0 {
            return;
        }
        let chosen = self.roll((running + orphans) as u64) as usize;
        let attempt = match chosen < running {
            true => self.workers[index].running.remove(chosen),
            false => self.workers[index].orphans.remove(chosen - running),
        };
        if chosen >= running {
            self.note("results of partitions given up");
        }
        let origin = attempt.record.at.offset;
        let (key, script) = &mut self.source[origin as usize];
        let key = *key;
        let class = script.pop_front();
        let now = self.time();
        // Whoever publishes asks whether it is still wanted.
        let is_wanted = self.workers[index].flow.ticket(attempt.id).is_some();
        let turn = (origin, self.replay_of(index, attempt.id));
        let outcome = match class {
            None => {
                *self.succeeded.entry(origin).or_default() += 1;
                if is_wanted {
                    self.succeeded_again.insert(turn);
                    if !self.exactly_once {
                        self.ended.insert(turn);
                    }
                }
                match self.is_rightful(index) && is_wanted {
                    true => self.handled.entry(key).or_default().push(origin),
                    false => drop(self.blurred.insert(origin)),
                }
                Ok(())
            }
            Some(class) => Err(self.failure(origin, class)),
        };
        self.tell(|| {
            format!("{index} ends {origin} try {}: {} wanted {is_wanted}", attempt.number, outcome.is_ok())
        });
        let worker = &mut self.workers[index];
        if outcome.is_ok() && self.exactly_once && is_wanted {
            worker.outputs.push(turn);
        }
        worker.flow.handled(attempt.id, attempt.slot, outcome, now);
    }

    /// How it fails; some say that they need an earlier one first.
    fn failure(&mut self, origin: i64, class: Class) -> Failure {
        if origin > 0 && self.roll(5) == 0 {
            let earlier = self.roll(origin as u64) as i64;
            if self.naive.waiting.contains_key(&earlier) {
                self.note("failures that name a waiting predecessor");
            }
            let named = crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset: earlier };
            return Failure::follows(named);
        }
        Failure::new(Cause::new("Broken", "it broke")).classed(class)
    }

    fn bury(&mut self, index: usize) {
        if self.workers[index].burying.is_empty() {
            return;
        }
        let now = self.time();
        let worker = &mut self.workers[index];
        let (id, origin) = worker.burying.remove(0);
        let burial = worker.flow.ticket(id).and_then(|ticket| ticket.burial);
        self.check_burial(index, origin, burial);
        let turn = (origin, self.replay_of(index, id));
        let worker = &mut self.workers[index];
        match self.exactly_once {
            true if burial.is_some() => worker.letters.push(turn),
            true => {}
            false => {
                self.buried.insert(origin);
                if burial.is_some() {
                    self.ended.insert(turn);
                }
            }
        }
        worker.flow.buried(id, now);
        match burial {
            Some(burial) if burial.reason == Reason::Cancelled => self.note("letters by order"),
            Some(burial) if burial.leader.is_some() => self.note("letters of followers"),
            Some(_) => self.note("letters"),
            None => self.note("letters of partitions given up"),
        }
    }

    /// Checkpoints, commits, and transactions.
    fn look_after(&mut self, index: usize) {
        let known = self.known(index);
        let worker = &mut self.workers[index];
        if self.exactly_once {
            if worker.transacting
                || worker.flow.phase(0) != Some(Phase::Running)
                    && worker.flow.phase(0) != Some(Phase::Beginning)
            {
                return;
            }
            worker.flow.checkpoint(0);
            let mut entries = Vec::new();
            while let Some((_, entry)) = worker.flow.next_append() {
                entries.push(entry);
            }
            entries.iter().for_each(|entry| self.check_entry(index, entry));
            let worker = &mut self.workers[index];
            let (outputs, letters) =
                (std::mem::take(&mut worker.outputs), std::mem::take(&mut worker.letters));
            if entries.is_empty() {
                assert!(outputs.is_empty() && letters.is_empty(), "what is published has an entry beside it");
                return;
            }
            worker.transacting = true;
            self.next_transaction += 1;
            let (mark, id) = (worker.flow.mark(0), self.next_transaction);
            worker.sent.push_back((known, Sent::Transaction { entries, outputs, letters, mark, id }));
            return;
        }
        worker.flow.checkpoint(0);
        if let Some(mark) = worker.flow.mark(0) {
            if self.owner == Some(index) && known == self.generation {
                let written = self.naive.mark_of_a_successor();
                assert!(Some(mark) <= written, "{mark} is committed, and the log says {written:?}");
            }
            worker.sent.push_back((known, Sent::Commit(mark)));
        }
        if worker.draining && worker.flow.is_drained(0) && worker.flow.is_written(0) {
            self.give_up(index);
        }
    }

    fn give_up(&mut self, index: usize) {
        self.tell(|| format!("{index} gives up"));
        let worker = &mut self.workers[index];
        worker.flow.abandon(0);
        worker.generation = None;
        worker.source_at = None;
        // One commit in flight is waited for; appends may land whenever they like.
        let sent: Vec<_> = worker.sent.drain(..).collect();
        for (_, one) in sent {
            match one {
                Sent::Append(entry) | Sent::Claim(entry) if !self.exactly_once => self.late.push(entry),
                Sent::Trim(to) => self.late_cuts.push(to),
                _ => {}
            }
        }
        let worker = &mut self.workers[index];
        worker.orphans.append(&mut worker.running);
        if self.owner == Some(index) {
            self.owner = None;
            self.generation += 1;
        }
    }

    /// Answers what the flow asked for.
    fn answer(&mut self, index: usize) {
        let now = self.time();
        if let Some(mark) = self.workers[index].locating.take() {
            let located = match (self.committed, mark) {
                (Some((reset, false)), _) => {
                    self.note("resets obeyed");
                    Located::BeginsAt(reset)
                }
                (_, Some(_)) => Located::GoesOn,
                (_, None) => Located::BeginsAt(0),
            };
            self.workers[index].flow.located(0, located, now);
        }
        if let Some((from, to)) = self.workers[index].passing.take() {
            let count = 1 + self.roll(3) as usize;
            let found: Vec<_> = self
                .log
                .range(from.max(self.start)..)
                .take(count)
                .map(|(at, one)| (*at, one.clone()))
                .collect();
            let next = found.last().map(|(at, _)| at + 1).filter(|next| *next <= to);
            for (at, entry) in found.into_iter().filter(|(at, _)| *at <= to) {
                self.workers[index].flow.fetched(0, at, waits(entry));
            }
            match next {
                Some(next) => self.workers[index].passing = Some((next, to)),
                None => self.workers[index].flow.passed(0, now),
            }
        }
        self.recall(index);
        if let Some(at) = self.workers[index].fetching.pop() {
            // What stands beside it comes along.
            let count = 1 + self.roll(3) as usize;
            let mut found: Vec<_> = self
                .log
                .range(at.max(self.start)..)
                .take(count)
                .map(|(at, entry)| (*at, entry.clone()))
                .collect();
            if found.first().is_none_or(|(first, _)| *first != at) {
                found.insert(0, (at, Entry::Skipped));
            }
            for (at, entry) in found {
                self.workers[index].flow.fetched(0, at, waits(entry));
            }
        }
    }

    /// Somebody who was kicked out hears of it at last; a drain may have its deadline.
    fn learn(&mut self, index: usize) {
        let stale = self.workers[index]
            .generation
            .is_some_and(|known| known != self.generation || self.owner != Some(index));
        let overdue = self.workers[index].draining && !self.workers[index].transacting && self.roll(6) == 0;
        if (stale && self.roll(3) == 0) || overdue {
            self.give_up(index);
        }
    }

    /// Does what the flow wants done.
    fn act(&mut self, index: usize) {
        let now = self.time();
        if self.workers[index].generation.is_none() {
            return;
        }
        self.workers[index].flow.advance(now);
        let known = self.known(index);
        loop {
            let Some(action) = self.workers[index].flow.next_action() else { break };
            let worker = &mut self.workers[index];
            match action {
                Action::Handle(attempt) => {
                    self.tell(|| {
                        format!("{index} tries {} for the {}. time", attempt.record.at.offset, attempt.number)
                    });
                    self.check_start(index, &attempt);
                    self.workers[index].running.push(attempt);
                }
                Action::Bury(id) => {
                    let origin = worker.flow.ticket(id).map(|ticket| ticket.record.at.offset);
                    worker.burying.extend(origin.map(|origin| (id, origin)));
                }
                Action::Claim { entry, .. } => worker.sent.push_back((known, Sent::Claim(entry))),
                Action::Prove { claim, .. } => worker.sent.push_back((known, Sent::Prove(claim))),
                Action::Locate { mark, missing, .. } => {
                    worker.locating = Some(mark);
                    self.check_beginning(index, mark, missing);
                }
                Action::Start { from, .. } => {
                    worker.source_at = Some(from);
                    self.tell(|| format!("{index} starts at {from}"));
                }
                Action::Fetch { at, .. } => {
                    worker.fetching.push(at);
                    self.note("fetches");
                }
                Action::Pass { from, to, .. } => {
                    worker.passing = Some((from, to));
                    self.note("passes over the log");
                }
                Action::Recall { offset, .. } => worker.recalling.push(offset),
                Action::BuryEntry { .. } => panic!("every record is an entry"),
                Action::Trim { to, .. } => worker.sent.push_back((known, Sent::Trim(to))),
                Action::Tell(Notice::Gone { .. }) => {
                    self.note("entries gone when they were fetched");
                    self.take_over(index);
                    return;
                }
                Action::Tell(Notice::Foreign { .. }) => panic!("it is our own"),
                Action::Pause(_) => {
                    worker.paused = true;
                    self.note("pauses of the source");
                }
                Action::Resume(_) => worker.paused = false,
                Action::Tell(Notice::Rival { .. }) => self.note("claims made again after a rival"),
                Action::Tell(Notice::Shelved { .. }) => self.note("records shelved"),
                Action::Tell(Notice::Full { .. }) => self.note("full shelves"),
                Action::Tell(Notice::Blocked { .. }) => self.note("outages"),
                Action::Tell(
                    Notice::Routed { .. }
                    | Notice::Dropped { .. }
                    | Notice::Room { .. }
                    | Notice::Unfit { .. }
                    | Notice::Opened { .. },
                ) => {}
                Action::Tell(Notice::SentBack { fate, .. }) => self.note(match fate {
                    Fate::Handled => "letters sent back: handled",
                    Fate::Dropped => "letters sent back: dropped",
                    Fate::Waiting => "letters sent back: waiting",
                    Fate::Refused(_) => "letters sent back: refused",
                }),
                Action::Tell(Notice::Overdue { .. }) => self.note("lanes opened as their time was over"),
            }
        }
        self.note_state(index);
        // Cut often, so that cutting is tried.
        if self.roll(8) == 0 {
            self.workers[index].flow.prepare_cut(0);
        }
        if self.roll(20) == 0 {
            self.workers[index].flow.carry_all(0);
        }
        if self.roll(10) == 0 {
            self.workers[index].flow.look_for_old_ones(0);
        }
        // What has to be written may wait for a while.
        if !self.exactly_once && (self.calm || self.roll(4) > 0) {
            while let Some((_, entry)) = self.workers[index].flow.next_append() {
                self.check_entry(index, &entry);
                self.workers[index].sent.push_back((known, Sent::Append(entry)));
            }
        }
    }

    /// No more faults: everything comes to its end.
    pub(super) fn settle(&mut self) {
        self.calm = true;
        // Either the owner goes on with what it has, or a new one finds what the log says.
        let stays = self.owner.filter(|owner| {
            let worker = &self.workers[*owner];
            worker.alive && !worker.draining && self.is_rightful(*owner)
        });
        let stays = stays.filter(|_| self.roll(2) == 0);
        for index in 0..self.workers.len() {
            if stays != Some(index) {
                self.fire(index);
            }
        }
        while !self.late.is_empty() || !self.late_cuts.is_empty() {
            self.land_late();
        }
        if stays.is_none() {
            self.owner = None;
            self.assign();
        } else {
            self.note("owners that stay to the end");
        }
        for round in 0..20_000 {
            let Some(owner) = self.owner else { panic!("nobody owns the partition") };
            self.now += 1;
            for _ in 0..3 {
                self.deliver_shelf(owner);
            }
            self.deliver_source(owner);
            self.land(owner);
            self.end_attempt(owner);
            self.bury(owner);
            self.answer(owner);
            if round % 7 == 0 {
                self.look_after(owner);
            }
            self.act(owner);
            if round % 50 == 0 {
                let closed: Vec<i64> = self.naive.closed.keys().copied().collect();
                for letter in closed {
                    self.give(letter, Deed::Resolve);
                }
            }
            if round % 50 == 49 && self.is_over(owner) {
                self.check_end(owner);
                return;
            }
        }
        let naive = &self.naive;
        let tickets = self.workers[self.owner.unwrap()].flow.tickets.iter();
        let places: Vec<_> = tickets.map(|ticket| (ticket.record.at.offset, ticket.place)).collect();
        panic!(
            "it never ends: {} records, mark {:?}, waiting {:?}, closed {:?}, phase {:?}, in memory {places:?}",
            self.source.len(),
            naive.mark,
            naive.waiting,
            naive.closed,
            self.workers[self.owner.unwrap()].flow.phase(0),
        );
    }

    fn is_over(&self, owner: usize) -> bool {
        let naive = &self.naive;
        let flow = &self.workers[owner].flow;
        flow.is_written(0)
            && self.workers[owner].sent.is_empty()
            && naive.waiting.is_empty()
            && naive.closed.is_empty()
            && naive.orders.is_empty()
            && naive.replays.is_empty()
            && flow.in_memory() == 0
            && flow.mark(0)
                == Some(self.source.len() as i64)
                    .filter(|_| self.workers[owner].source_at >= Some(self.source.len() as i64))
                    .or(flow.mark(0).filter(|mark| *mark >= self.source.len() as i64))
    }
}

fn waits(entry: Entry) -> Option<std::sync::Arc<crate::shelf::Wait>> {
    match entry {
        Entry::Wait(_, wait) | Entry::Replay(wait) => Some(wait),
        _ => None,
    }
}
