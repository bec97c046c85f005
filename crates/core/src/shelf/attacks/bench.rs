//! A log, owners that read and write it, and nothing that happens by itself.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;

use crate::class::Class;
use crate::classify::Classifier;
use crate::failure::{Cause, Failure};
use crate::flow::{Action, Attempt, Flow, Id, Limits, Located, Notice, Now, Settings, ShelfSettings};
use crate::headers::{Headers, Trail};
use crate::lanes::Followers;
use crate::offsets::{Progress, Ranges};
use crate::record::Record;
use crate::route::{PerClass, Rules, Strategy};
use crate::settings::{Blocking, OrderBy, Payload};
use crate::shelf::{
    Checkpoint, ClaimId, Deed, Done, Entry, Folded, Identity, Missing, Order, Phase, Shelf, Stamp, Wait,
};
use crate::time::Timestamp;

pub(super) const START: i64 = 1_000_000;

/// The shelf's log, with nothing missing.
#[derive(Default)]
pub(super) struct Log(pub(super) Vec<Entry>);

/// One owner, and what it wants done.
pub(super) struct Owner {
    pub(super) flow: Flow,
    pub(super) at: usize,
    pub(super) now: i64,
    pub(super) running: Vec<Attempt>,
    pub(super) burying: Vec<Id>,
    pub(super) claims: Vec<Entry>,
    pub(super) proofs: Vec<ClaimId>,
    pub(super) locating: bool,
    /// What it found missing when it took over.
    pub(super) missing: Option<Missing>,
    pub(super) starts: Vec<i64>,
    pub(super) fetching: Vec<i64>,
    passing: Option<(i64, i64)>,
    pub(super) recalling: Vec<i64>,
    pub(super) undecodable: Vec<i64>,
    pub(super) trims: Vec<i64>,
    pub(super) notices: Vec<Notice>,
    pub(super) paused: bool,
}

pub(super) fn identity() -> Identity {
    Identity { topic: "orders".into(), topic_id: None, group: "g".into() }
}

pub(super) fn settings(process: u64, followers: Followers, most: usize) -> Settings {
    let policies = PerClass::from_fn(|class| {
        let text = match class {
            Class::Permanent => "never",
            Class::Transient | Class::Outage => "exponential(5ms..20ms x2)",
            Class::NotReady => "list(10ms x9)",
        };
        text.parse().unwrap()
    });
    Settings {
        group: "g".into(),
        instance: "i".into(),
        rules: Rules {
            classifier: Classifier::always(Class::NotReady),
            policies,
            exhausted: PerClass::default(),
            strategy: Strategy::Shelf,
        },
        order_by: OrderBy::Key,
        followers,
        blocking: Blocking::Subscription,
        concurrency: NonZeroU32::new(8).unwrap(),
        retry_concurrency: NonZeroU32::new(8).unwrap(),
        surge_guard: None,
        max_loss: None,
        limits: Limits { records: 1_000, bytes: 1 << 20 },
        shelf: Some(ShelfSettings {
            identity: identity(),
            process,
            cache: 1 << 20,
            limits: Limits { records: most, bytes: 1 << 30 },
            payload: Payload::Whole,
            originals: None,
        }),
    }
}

pub(super) fn record(offset: i64, key: &str) -> Record {
    Record {
        at: crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset },
        timestamp: None,
        key: Some(Bytes::from(key.to_owned())),
        value: Some(Bytes::from_static(b"v")),
        headers: Headers::default(),
    }
}

pub(super) fn claim(process: u64) -> ClaimId {
    ClaimId { process, number: 1 }
}

pub(super) fn stamp(process: u64, seq: u64, seen: i64) -> Stamp {
    Stamp { claim: claim(process), seq, seen }
}

pub(super) fn claimed(process: u64) -> Entry {
    Entry::Claim(stamp(process, 0, -1), identity())
}

pub(super) fn checkpoint(stamp: Stamp, mark: i64, done: &[(i64, u32)]) -> Entry {
    let done = done.iter().map(|(origin, attempt)| Done { origin: *origin, attempt: *attempt, replay: 0 });
    let progress = Progress::new(mark, Ranges::default());
    Entry::Checkpoint(
        stamp,
        Checkpoint { identity: identity(), progress, begins: false, done: done.collect(), log: None },
    )
}

pub(super) fn begins(stamp: Stamp, mark: i64) -> Entry {
    let progress = Progress::at(mark);
    let (identity, done) = (identity(), Vec::new());
    Entry::Checkpoint(stamp, Checkpoint { identity, progress, begins: true, done, log: None })
}

pub(super) fn wait(stamp: Stamp, offset: i64, key: &str, attempt: u32) -> Entry {
    let record = record(offset, key);
    let trail = Trail {
        origin: Some(record.at.clone()),
        attempt: Some(attempt),
        due: Some(Timestamp::from_millis(START)),
        lane: record.key.clone(),
        ..Trail::default()
    };
    Entry::Wait(stamp, Wait { record: record.into(), trail: trail.into() }.into())
}

pub(super) fn order(id: &str, origin: i64, deed: Deed) -> Entry {
    Entry::Order(Order { id: id.into(), origin, deed, by: "me".into(), reason: "why".into(), job: None })
}

/// The state of a log, and what became of its entries.
pub(super) fn fold(log: &[Entry]) -> (Shelf, Vec<Folded>) {
    let mut shelf = Shelf::default();
    let folded = (0..).zip(log).map(|(at, entry)| shelf.fold(at, entry, 100)).collect();
    (shelf, folded)
}

pub(super) fn waiting(shelf: &Shelf) -> Vec<i64> {
    let mut origins: Vec<_> = shelf.waiting.iter().map(|waiting| waiting.origin).collect();
    origins.sort_unstable();
    origins
}

impl Owner {
    pub(super) fn new(process: u64, followers: Followers) -> Self {
        Self::with(settings(process, followers, 1_000))
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self {
            flow: Flow::new(settings),
            at: 0,
            now: START,
            running: Vec::new(),
            burying: Vec::new(),
            claims: Vec::new(),
            proofs: Vec::new(),
            locating: false,
            missing: None,
            starts: Vec::new(),
            fetching: Vec::new(),
            passing: None,
            recalling: Vec::new(),
            undecodable: Vec::new(),
            trims: Vec::new(),
            notices: Vec::new(),
            paused: false,
        }
    }

    /// An owner of this log whose source has begun.
    pub(super) fn running(process: u64, followers: Followers, log: &mut Log) -> Self {
        let mut owner = Self::new(process, followers);
        owner.take_over(log);
        owner
    }

    /// Takes the partition over, with nothing in the way.
    pub(super) fn take_over(&mut self, log: &mut Log) {
        self.flow.take_over(0);
        self.at = 0;
        self.act();
        while self.flow.phase(0) != Some(Phase::Running) {
            self.go_on(log);
        }
        self.go_on(log);
    }

    /// The same, of a log of which nothing is left below `first`: until it is asked whether to begin.
    pub(super) fn take_over_from(&mut self, first: usize, log: &mut Log) {
        self.flow.take_over(0);
        self.at = first;
        self.act();
        log.0.append(&mut self.claims);
        self.read(log);
        self.prove();
    }

    /// Everything that is asked for and goes well, once.
    pub(super) fn go_on(&mut self, log: &mut Log) {
        log.0.append(&mut self.claims);
        self.read(log);
        self.prove();
        self.locate(log);
        self.write(log);
        self.read(log);
        self.fetch(log);
    }

    pub(super) fn time(&self) -> Now {
        Now { steady: Duration::from_millis(self.now as u64), wall: Timestamp::from_millis(self.now) }
    }

    pub(super) fn act(&mut self) {
        self.flow.advance(self.time());
        while let Some(action) = self.flow.next_action() {
            match action {
                Action::Handle(attempt) => self.running.push(attempt),
                Action::Bury(id) => self.burying.push(id),
                Action::Pause(_) => self.paused = true,
                Action::Resume(_) => self.paused = false,
                Action::Claim { entry, .. } => self.claims.push(entry),
                Action::Prove { claim, .. } => self.proofs.push(claim),
                Action::Locate { missing, .. } => (self.locating, self.missing) = (true, missing),
                Action::Start { from, .. } => self.starts.push(from),
                Action::Fetch { at, .. } => self.fetching.push(at),
                Action::Pass { from, to, .. } => self.passing = Some((from, to)),
                Action::BuryEntry { at, .. } => self.undecodable.push(at),
                Action::Recall { offset, .. } => self.recalling.push(offset),
                Action::Trim { to, .. } => {
                    self.trims.push(to);
                    self.flow.trimmed(0, Some(to));
                }
                Action::Tell(notice) => self.notices.push(notice),
            }
        }
    }

    pub(super) fn read(&mut self, log: &Log) {
        self.read_as(log, 100);
    }

    /// Reads all that is new, as if each entry took so many bytes.
    pub(super) fn read_as(&mut self, log: &Log, size: u32) {
        while let Some(entry) = log.0.get(self.at) {
            match entry {
                // What stands for a record that is no entry.
                Entry::Skipped => self.flow.read_undecodable(0, self.at as i64, size),
                entry => self.flow.read(0, self.at as i64, entry, size, self.time()),
            }
            self.at += 1;
            self.act();
        }
    }

    pub(super) fn prove(&mut self) {
        for claim in std::mem::take(&mut self.proofs) {
            self.flow.proven(0, claim, self.time());
        }
        self.act();
    }

    /// Where the log says, or at the first offset.
    pub(super) fn locate(&mut self, log: &Log) {
        if std::mem::take(&mut self.locating) {
            let located = match fold(&log.0).0.progress() {
                Some(_) => Located::GoesOn,
                None => Located::BeginsAt(0),
            };
            self.flow.located(0, located, self.time());
            self.act();
        }
    }

    pub(super) fn unwritten(&mut self) -> Vec<Entry> {
        std::iter::from_fn(|| self.flow.next_append()).map(|(_, entry)| entry).collect()
    }

    pub(super) fn write(&mut self, log: &mut Log) {
        let mut entries = self.unwritten();
        log.0.append(&mut entries);
    }

    pub(super) fn failed(&mut self, entry: &Entry) {
        let stamp = entry.stamp().unwrap();
        self.flow.append_failed(0, stamp.claim, stamp.seq);
    }

    pub(super) fn fetch(&mut self, log: &Log) {
        let passed = self.passing.take();
        let met = passed.into_iter().flat_map(|(from, to)| from..=to);
        for at in met.chain(std::mem::take(&mut self.fetching)) {
            let wait = match log.0.get(at as usize) {
                Some(Entry::Wait(_, wait) | Entry::Replay(wait)) => Some(wait.clone()),
                _ => None,
            };
            self.flow.fetched(0, at, wait);
            self.act();
        }
        if passed.is_some() {
            self.flow.passed(0, self.time());
            self.act();
        }
    }

    pub(super) fn arrive(&mut self, offset: i64, key: &str) {
        self.flow.arrive(record(offset, key));
        self.act();
    }

    /// The origins with the handler.
    pub(super) fn handling(&self) -> Vec<i64> {
        let mut origins: Vec<_> = self.running.iter().map(|attempt| attempt.record.at.offset).collect();
        origins.sort_unstable();
        origins
    }

    pub(super) fn end(&mut self, offset: i64, outcome: Result<(), Failure>) {
        let found = self.running.iter().position(|attempt| attempt.record.at.offset == offset);
        let attempt = self.running.remove(found.expect("it is with the handler"));
        self.flow.handled(attempt.id, attempt.slot, outcome, self.time());
        self.act();
    }

    pub(super) fn succeed(&mut self, offset: i64) {
        self.end(offset, Ok(()));
    }

    pub(super) fn fail(&mut self, offset: i64, class: Class) {
        self.end(offset, Err(Failure::new(Cause::new("Broken", "it broke")).classed(class)));
    }

    /// Every letter that was asked for is written.
    pub(super) fn bury(&mut self) {
        for id in std::mem::take(&mut self.burying) {
            self.flow.buried(id, self.time());
        }
        self.act();
    }

    pub(super) fn checkpoint(&mut self, log: &mut Log) {
        self.flow.checkpoint(0);
        self.write(log);
        self.read(log);
    }

    pub(super) fn pass_time(&mut self, millis: i64, log: &Log) {
        self.now += millis;
        self.act();
        self.fetch(log);
        self.act();
    }

    pub(super) fn is_told(&self, is_it: impl Fn(&Notice) -> bool) -> bool {
        self.notices.iter().any(is_it)
    }
}
