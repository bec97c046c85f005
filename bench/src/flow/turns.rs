//! A flow and all that it would meet, played by turns.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use redrive_core::classify::Classifier;
use redrive_core::failure::{Cause, Failure};
use redrive_core::flow::{Action, Attempt, Flow, Limits, Located, Now, Settings, ShelfSettings, Slot};
use redrive_core::headers::Headers;
use redrive_core::lanes::Followers;
use redrive_core::route::{PerClass, Rules, Strategy};
use redrive_core::settings::{Blocking, OrderBy, Payload};
use redrive_core::shelf::{Entry, Identity};
use redrive_core::{Class, Origin, Record, Timestamp, Topic};

const PARTITIONS: i32 = 12;
/// Records that come at once.
const HANDFUL: u64 = 200;

/// A flow, the logs of its shelf, and the time.
pub(crate) struct Turns {
    flow: Flow,
    logs: Vec<VecDeque<Record>>,
    /// What was read, if it is kept.
    kept: Option<Vec<VecDeque<Record>>>,
    next: Vec<i64>,
    running: Vec<Attempt>,
    micros: u64,
    source: Topic,
    shelf: Topic,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self::with(empty())
    }

    /// As new, and what is read of the shelf is kept.
    pub(crate) fn that_keeps() -> Self {
        Self { kept: Some(empty()), ..Self::new() }
    }

    /// Takes over what these logs hold.
    pub(crate) fn with(logs: Vec<VecDeque<Record>>) -> Self {
        let mut turns = Self {
            flow: Flow::new(settings()),
            next: logs.iter().map(|log| log.len() as i64).collect(),
            logs,
            kept: None,
            running: Vec::new(),
            micros: 0,
            source: "orders".parse().expect("a name"),
            shelf: "orders.g.shelf".parse().expect("a name"),
        };
        for partition in 0..PARTITIONS {
            turns.flow.take_over(partition);
        }
        turns.act();
        turns
    }

    pub(crate) fn log(self) -> Vec<VecDeque<Record>> {
        self.kept.unwrap_or_default()
    }

    fn now(&self) -> Now {
        Now {
            steady: Duration::from_micros(self.micros),
            wall: Timestamp::from_millis(1_000_000 + (self.micros / 1_000) as i64),
        }
    }

    /// Records come until all were handled, or wait: each first waits so many milliseconds, if it does.
    pub(crate) fn play(&mut self, records: u64, bytes: usize, wait: Option<u64>) {
        let value = Bytes::from(vec![b'v'; bytes]);
        let (mut sent, mut turn) = (0, 0_u64);
        while self.flow.partitions().count() < PARTITIONS as usize {
            self.turn(wait);
        }
        for _ in 0..4 {
            self.turn(wait);
        }
        let over = |flow: &Flow| {
            let counts = flow.counts();
            match wait {
                Some(wait) if wait > 1_000 => counts.shelved == records,
                Some(_) | None => counts.handled == records,
            }
        };
        while !over(&self.flow) {
            turn += 1;
            if sent < records && self.flow.has_room() {
                let partition = (turn % PARTITIONS as u64) as i32;
                for _ in 0..HANDFUL.min(records - sent) {
                    let offset = (sent / (HANDFUL * PARTITIONS as u64) * HANDFUL + sent % HANDFUL) as i64;
                    self.arrive(partition, offset, &value);
                    sent += 1;
                }
            }
            self.turn(wait);
            if turn.is_multiple_of(1_000) {
                for partition in 0..PARTITIONS {
                    self.flow.checkpoint(partition);
                }
            }
        }
    }

    fn arrive(&mut self, partition: i32, offset: i64, value: &Bytes) {
        self.flow.arrive(Record {
            at: Origin { topic: self.source.clone(), partition, offset },
            timestamp: Some(Timestamp::from_millis(1_000)),
            key: Some(Bytes::from(format!("key-{}", offset % 1_000))),
            value: Some(value.clone()),
            headers: Headers::default(),
        });
    }

    fn turn(&mut self, wait: Option<u64>) {
        self.micros += 100;
        self.flow.advance(self.now());
        self.act();
        for Attempt { id, number, slot, .. } in std::mem::take(&mut self.running) {
            let outcome = match wait {
                Some(wait) if number == 1 && slot == Slot::First => {
                    let mut failure = Failure::new(Cause::new("NotYet", "not yet")).classed(Class::NotReady);
                    failure.retry_after = Some(Duration::from_millis(wait));
                    Err(failure)
                }
                Some(_) | None => Ok(()),
            };
            self.flow.handled(id, slot, outcome, self.now());
        }
        self.act();
        while let Some((partition, entry)) = self.flow.next_append() {
            self.append(partition, &entry);
        }
        self.read();
    }

    fn append(&mut self, partition: i32, entry: &Entry) {
        let written = entry.write();
        let (key, value, headers) = (written.key, written.value, written.headers);
        let at = Origin { topic: self.shelf.clone(), partition, offset: self.next[partition as usize] };
        self.next[partition as usize] += 1;
        let timestamp = Some(Timestamp::from_millis(1_000));
        self.logs[partition as usize].push_back(Record { at, timestamp, key, value, headers });
    }

    /// What was written and not read.
    pub(crate) fn read(&mut self) {
        for partition in 0..PARTITIONS as usize {
            while let Some(record) = self.logs[partition].pop_front() {
                let number = partition as i32;
                let known = |stamp| self.flow.expected(number, stamp);
                let entry = Entry::brief_unless(&record, known).expect("an entry");
                let (at, size) = (record.at.offset, record.size() as u32);
                self.flow.read(number, at, &entry, size, self.now());
                if let Some(kept) = &mut self.kept {
                    kept[partition].push_back(record);
                }
            }
        }
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.flow.next_action() {
            match action {
                Action::Handle(attempt) => self.running.push(attempt),
                Action::Claim { partition, entry } => self.append(partition, &entry),
                Action::Prove { partition, claim, .. } => self.flow.proven(partition, claim, self.now()),
                Action::Locate { partition, mark, .. } => {
                    let located = mark.map_or(Located::BeginsAt(0), |_| Located::GoesOn);
                    self.flow.located(partition, located, self.now());
                }
                Action::Trim { partition, .. } => self.flow.trimmed(partition, None),
                _ => {}
            }
        }
    }
}

fn settings() -> Settings {
    let many = NonZeroU32::new(256).expect("not zero");
    Settings {
        group: "g".into(),
        instance: "i".into(),
        rules: Rules {
            classifier: Classifier::always(Class::Transient),
            policies: PerClass::from_fn(|_| "list(1s x100)".parse().expect("a policy")),
            exhausted: PerClass::default(),
            strategy: Strategy::Shelf,
        },
        order_by: OrderBy::None,
        followers: Followers::Pass,
        blocking: Blocking::Subscription,
        concurrency: many,
        retry_concurrency: many,
        surge_guard: None,
        max_loss: None,
        limits: Limits { records: 10_000, bytes: 64 << 20 },
        shelf: Some(ShelfSettings {
            identity: Identity { topic: "orders".into(), topic_id: None, group: "g".into() },
            process: 7,
            cache: 64 << 20,
            limits: Limits { records: 10_000_000, bytes: 1 << 40 },
            payload: Payload::Whole,
            originals: None,
        }),
    }
}

fn empty() -> Vec<VecDeque<Record>> {
    vec![VecDeque::new(); PARTITIONS as usize]
}
