//! The shelf as it is acted on: its log is followed, claimed, written, read back and cut, as the flow asks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::flow::{Now, Smaller};
use redrive_core::shelf::{BadEntry, ClaimId, Entry, Stamp, Wait};
use redrive_core::{Origin, Record, Topic};
use redrive_kafka::{
    Error as KafkaError, Line, Mark, Outgoing, Picked, Picker, Publisher, Publishing, Refusal, Settings,
    Tail, Tailed, What,
};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use super::engine::{Engine, chain};
use super::troubles::About;
use super::{News, Spec, back_off, saving};
use crate::Error;
use crate::clock::Clock;

/// What an entry takes of the log beside its key, value and headers.
const FRAME: usize = 70;
/// The most that is asked for at once when entries are read back.
const FAR: i64 = 5_000;

/// How long entries wait for others to go with while some are on their way: a broker takes few large batches for less
/// than many small ones.
const GATHER: Duration = Duration::from_millis(4);

/// The most bytes of a batch.
const BATCH: usize = 512 * 1_024;

/// About how many bytes of one partition are sent at once: a batch, unless the topic accepts less.
const PORTION: usize = BATCH / 8 * 7;

/// The most entries that are sent at once: making them takes a few milliseconds, in which nothing else is done.
const HANDFUL: usize = 4_000;

/// How long an entry of ours may take to be read back before another is timed instead.
const TIMED: Duration = Duration::from_secs(1);

/// The shelf of one subscription.
pub(crate) struct Shelves {
    pub(super) topic: Topic,
    tail: Tail,
    pub(super) tailed: mpsc::Receiver<Vec<Tailed>>,
    picker: Picker,
    publisher: Publisher,
    /// The partitions that are followed, each with the number of its following.
    turns: HashMap<i32, u64>,
    next_turn: u64,
    /// What has to be read back, by partition and offset.
    wanted: BTreeMap<i32, BTreeSet<i64>>,
    is_picking: bool,
    is_passing: bool,
    /// What is read back in one pass: the partition, where it goes on and where it ends.
    pub(super) passing: Option<(i32, i64, i64)>,
    proving: HashMap<i32, AbortHandle>,
    /// Appends that failed, by when they are tried again.
    again: BTreeSet<(Duration, i32, ClaimId, u64)>,
    tries: HashMap<i32, u32>,
    /// Claims that failed, by when another is made.
    claims: BTreeSet<(Duration, i32, ClaimId)>,
    stuck: HashSet<i32>,
    /// Partitions that are taken over again, and on whose shelf nothing lived before.
    spotless: HashSet<i32>,
    /// By partition: an entry of ours that is on its way, and when it was sent.
    sent: HashMap<i32, (ClaimId, u64, Duration)>,
    /// Partitions with entries on their way. librdkafka sends one batch of a partition at a time, and spins while it has
    /// more: that waits here until the batch is confirmed, or late.
    under_way: HashSet<i32>,
    /// When entries that wait for others are sent.
    gathered: Option<Duration>,
    /// The partition that had its turn last: the others come first.
    last_sent: i32,
}

/// What became of what was asked of the shelf.
pub(crate) enum Shelved {
    /// A claim could not be written, or nobody knows.
    ClaimFailed {
        partition: i32,
        claim: ClaimId,
        error: String,
    },
    /// The group accepted the commit that proves a claim.
    Proven {
        partition: i32,
        claim: ClaimId,
    },
    /// Entries were confirmed.
    Appended {
        partition: i32,
    },
    /// One was not.
    AppendFailed {
        partition: i32,
        claim: ClaimId,
        seq: u64,
        error: KafkaError,
    },
    /// Entries take long to be confirmed.
    Late {
        partition: i32,
    },
    /// Entries were read back.
    Picked {
        partition: i32,
        turn: u64,
        asked: BTreeSet<i64>,
        result: Result<Vec<Back>, KafkaError>,
    },
    /// Originals were read back from the source.
    Ended {
        partition: i32,
        turn: u64,
        result: Result<Option<i64>, KafkaError>,
    },
    Recalled {
        partition: i32,
        turn: u64,
        asked: BTreeSet<i64>,
        result: Result<Picked, KafkaError>,
    },
    /// The letter of a record that is no entry is there, if one had to be written.
    EntryBuried {
        partition: i32,
        turn: u64,
        at: i64,
        result: Result<Option<Origin>, KafkaError>,
    },
    /// A part of a pass was read.
    Met {
        partition: i32,
        turn: u64,
        result: Result<Vec<Back>, KafkaError>,
    },
    /// Everything was cut off, or not.
    Cleared {
        partition: i32,
        result: Result<(), KafkaError>,
    },
    /// The log was cut, or not.
    Trimmed {
        partition: i32,
        to: i64,
        result: Result<(), KafkaError>,
    },
}

/// Where an entry stands that was read back, and the record that waits there, if one does.
type Back = (i64, Option<Arc<Wait>>);

impl Shelves {
    pub(super) fn new(settings: &Settings, spec: &Spec, publisher: Publisher) -> Result<Self, Error> {
        let topic = spec.settled.settled.shelf.clone();
        let (tail, tailed) = spec.tails.follow(topic.clone(), spec.partitions)?;
        Ok(Self {
            topic,
            tail,
            tailed,
            picker: Picker::new(settings)?,
            publisher,
            turns: HashMap::new(),
            next_turn: 0,
            wanted: BTreeMap::new(),
            is_picking: false,
            is_passing: false,
            passing: None,
            proving: HashMap::new(),
            again: BTreeSet::new(),
            tries: HashMap::new(),
            claims: BTreeSet::new(),
            stuck: HashSet::new(),
            spotless: HashSet::new(),
            sent: HashMap::new(),
            under_way: HashSet::new(),
            gathered: None,
            last_sent: -1,
        })
    }

    pub(super) fn next_wake(&self) -> Option<Duration> {
        let again = self.again.first().map(|(at, ..)| *at);
        let claims = self.claims.first().map(|(at, ..)| *at);
        again.into_iter().chain(claims).chain(self.gathered).min()
    }

    /// Whether entries are sent now that have so much time: one that has none at once, if it is alone.
    fn sends(&mut self, slack: Duration, now: Duration) -> bool {
        let slack = if self.under_way.is_empty() { slack } else { slack.max(GATHER) };
        let at = now.saturating_add(slack);
        now >= *self.gathered.insert(self.gathered.map_or(at, |gathered| gathered.min(at)))
    }

    pub(super) fn forget(&mut self, partition: i32) {
        if self.turns.remove(&partition).is_some() {
            self.tail.remove(partition);
        }
        if let Some(proving) = self.proving.remove(&partition) {
            proving.abort();
        }
        self.wanted.remove(&partition);
        self.passing.take_if(|(of, ..)| *of == partition);
        self.again.retain(|(_, of, ..)| *of != partition);
        self.claims.retain(|(_, of, _)| *of != partition);
        self.tries.remove(&partition);
        self.stuck.remove(&partition);
        self.sent.remove(&partition);
        self.spotless.remove(&partition);
        self.under_way.remove(&partition);
    }

    /// Which following of a partition this is.
    pub(super) fn turn(&self, partition: i32) -> Option<u64> {
        self.turns.get(&partition).copied()
    }

    /// Reads what stands here, if it is there.
    pub(super) fn pick_one(
        &self,
        partition: i32,
        at: i64,
    ) -> impl Future<Output = Result<Option<Record>, KafkaError>> + use<> {
        let (picker, from) =
            (self.picker.clone(), Origin { topic: self.topic.clone(), partition, offset: at });
        async move { Ok(picker.pick(from, at).await?.pop()) }
    }

    /// Whether we know that nothing is lost if this shelf is empty.
    pub(super) fn is_spotless(&self, partition: i32) -> bool {
        self.spotless.contains(&partition)
    }

    /// An entry is about to be sent: one at a time is timed, and one that does not come back not for long.
    pub(super) fn time(&mut self, partition: i32, stamp: Stamp, now: Duration) {
        let is_timed = |sent: &(ClaimId, u64, Duration)| now < sent.2 + TIMED;
        if !self.sent.get(&partition).is_some_and(is_timed) {
            self.sent.insert(partition, (stamp.claim, stamp.seq, now));
        }
    }

    /// When this entry was sent, if it is the one that is timed.
    fn timed(&mut self, partition: i32, entry: &Entry) -> Option<Duration> {
        let (stamp, (claim, seq, at)) = (entry.stamp()?, self.sent.get(&partition)?);
        (stamp.claim == *claim && stamp.seq == *seq).then_some(*at).inspect(|_| {
            self.sent.remove(&partition);
        })
    }

    pub(super) fn outgoing(&self, partition: i32, entry: &Entry) -> Outgoing {
        let written = entry.write();
        Outgoing {
            partition: Some(partition),
            key: written.key,
            value: written.value,
            headers: written.headers,
            ..Outgoing::to(self.topic.clone())
        }
    }
}

impl Engine {
    /// A partition is ours: its shelf is followed from the start and claimed.
    pub(super) fn take_over(&mut self, partition: i32, now: Now) {
        self.shelves.next_turn += 1;
        let turn = self.shelves.next_turn;
        match self.shelves.tail.add(partition, turn) {
            Ok(()) => {
                self.shelves.turns.insert(partition, turn);
                self.starting.remove(&partition);
                self.flow.take_over(partition);
            }
            Err(error) => {
                let what = format!("the shelf of partition {partition} cannot be read: {}", chain(&error));
                self.troubles.raise(About::Stopped(partition), what, "it is tried again by itself");
                self.look_later(partition, now.steady.saturating_add(super::assigning::AGAIN));
            }
        }
    }

    /// The same again, from the start of the log.
    pub(super) fn take_over_again(&mut self, partition: i32, why: &str, now: Now) {
        info!(partition, why, "taken over again");
        let is_spotless = self.flow.is_shelf_bare(partition) || self.shelves.is_spotless(partition);
        self.abandon(partition);
        if is_spotless {
            self.shelves.spotless.insert(partition);
        }
        if !self.is_stopping() {
            self.look_later(partition, now.steady);
        }
    }

    /// What was read of the shelves.
    pub(super) fn tailed(&mut self, all: Vec<Tailed>) {
        for Tailed { partition, turn, what } in all {
            if self.shelves.turns.get(&partition) != Some(&turn) {
                continue;
            }
            match what {
                What::Records(lines) => self.entries(partition, turn, lines),
                What::OutOfRange => {
                    let now = self.clock.now();
                    self.take_over_again(partition, "its log was cut meanwhile", now);
                }
                What::Failed(error) => {
                    let what =
                        format!("the shelf of partition {partition} cannot be read: {}", chain(&error));
                    self.troubles.raise(About::Shelf(partition), what, "see the broker's reason");
                }
            }
        }
    }

    fn entries(&mut self, partition: i32, turn: u64, lines: Vec<Line>) {
        if let Some(written) = lines.last().and_then(|line| line.record.timestamp) {
            self.clock.heard(written, None);
        }
        let now = self.clock.now();
        self.tally.entries_read += lines.len() as u64;
        if !self.is_shelf_stuck(partition) {
            self.troubles.clear(About::Shelf(partition));
        }
        for Line { record, size } in lines {
            let size = u32::try_from(size + FRAME).unwrap_or(u32::MAX);
            // What we wrote ourselves need not be read.
            let entry = Entry::brief_unless(&record, |stamp| self.flow.expected(partition, stamp));
            if let Ok(entry) = &entry
                && let Some(sent) = self.shelves.timed(partition, entry)
                && let Some(written) = record.timestamp
            {
                self.clock.heard(written, Some(sent));
            }
            match entry {
                Ok(entry) => self.flow.read(partition, record.at.offset, &entry, size, now),
                Err(error @ BadEntry::Newer(_)) => {
                    let what =
                        format!("partition {partition} is stopped: {} cannot be read: {error}", record.at);
                    self.abandon(partition);
                    let remedy = "run the version that wrote it, or a later one";
                    self.troubles.raise(About::Stopped(partition), what, remedy);
                }
                Err(error) => {
                    debug!(at = %record.at, %error, "not an entry of a shelf");
                    self.flow.read_undecodable(partition, record.at.offset, size);
                }
            }
            // Taken over again, or stopped, by what was just read.
            if self.shelves.turns.get(&partition) != Some(&turn) {
                return;
            }
        }
    }

    /// Writes a claim: by itself, or fenced by the group where everything is.
    pub(super) fn claim(&mut self, partition: i32, entry: &Entry) {
        let Some(stamp) = entry.stamp() else { return };
        let claim = stamp.claim;
        self.shelves.sent.remove(&partition);
        self.shelves.time(partition, stamp, self.clock.now().steady);
        let outgoing = self.shelves.outgoing(partition, entry);
        debug!(partition, %claim, "claiming");
        let news = self.news.clone();
        let failed = move |error: String| {
            let _ = news.send(News::Shelved(Shelved::ClaimFailed { partition, claim, error }));
        };
        if let Some(transactions) = self.saving.shared_transactions() {
            let Some(group) = self.consumer.group_metadata() else {
                failed("the group is being joined".to_owned());
                return;
            };
            let mark = Mark { partition, offset: 0, metadata: String::new() };
            let marks = vec![(self.shelves.topic.clone(), vec![mark])];
            tokio::spawn(async move {
                if let Err(error) = saving::run(transactions, vec![outgoing], marks, group).await {
                    failed(chain(&error));
                }
            });
            return;
        }
        let published = self.shelves.publisher.publish(outgoing);
        tokio::spawn(async move {
            if let Err(error) = published.await {
                failed(chain(&error));
            }
        });
    }

    /// Has the group accept a commit: a claim without it may be one that came too late.
    pub(super) fn prove(&mut self, partition: i32, claim: ClaimId, at: i64) {
        let (consumer, topic, news) = (self.consumer.clone(), self.shelves.topic.clone(), self.news.clone());
        // Not a wait of the subscription's: nobody turns a clock for it.
        let clock = Clock::system();
        let task = tokio::spawn(async move {
            for tries in 0.. {
                let mark = Mark { partition, offset: at + 1, metadata: String::new() };
                match consumer.commit_of(topic.clone(), vec![mark]).await {
                    Ok(()) => break,
                    Err(error) => debug!(partition, error = chain(&error), "the claim is not proven yet"),
                }
                clock.sleep(back_off(tries) / 4).await;
            }
            let _ = news.send(News::Shelved(Shelved::Proven { partition, claim }));
        });
        if let Some(before) = self.shelves.proving.insert(partition, task.abort_handle()) {
            before.abort();
        }
    }

    /// Writes what the flow has for the shelves; under exactly-once the transactions do.
    pub(super) fn append(&mut self) {
        if self.saving.is_transactional() {
            return;
        }
        let is_free = self.flow.writers().any(|partition| !self.shelves.under_way.contains(&partition));
        let Some(slack) = self.flow.slack().filter(|_| is_free) else {
            self.shelves.gathered = None;
            return;
        };
        // Nobody turns a clock for it.
        let slack = if self.clock.is_turned() { Duration::ZERO } else { slack };
        let now = self.clock.now().steady;
        if !self.shelves.sends(slack, now) {
            return;
        }
        self.shelves.gathered = None;
        let mut room = HANDFUL;
        for partition in self.writers_in_turn() {
            room -= self.append_to(partition, room, now);
            if room == 0 {
                // The rest goes in the next round, after a look at what else there is.
                self.shelves.gathered = Some(now);
                return;
            }
            self.shelves.last_sent = partition;
        }
    }

    /// Writes a portion of what the flow has for one of them, and no more entries than there is room for. Says how many.
    fn append_to(&mut self, partition: i32, room: usize, now: Duration) -> usize {
        let (mut sent, mut bytes, publisher) = (Vec::new(), 0, self.shelves.publisher.clone());
        let mut next = || {
            if sent.len() == room || bytes >= PORTION {
                return None;
            }
            let entry = self.flow.next_append_to(partition)?;
            let stamp = entry.stamp()?;
            self.shelves.time(partition, stamp, now);
            sent.push(stamp);
            let outgoing = self.shelves.outgoing(partition, &entry);
            bytes += outgoing.size() + FRAME;
            Some(outgoing)
        };
        let Some(first) = next() else { return 0 };
        // Each is on its way before the next is made: what it takes meanwhile is used again and again.
        let mut refused = publisher.publish_all(std::iter::once(first).chain(std::iter::from_fn(next)));
        let count = sent.len();
        if count == room || bytes >= PORTION {
            // There may be more, which has waited as long already.
            self.flow.hurry();
        }
        self.shelves.under_way.insert(partition);
        let (news, clock) = (self.news.clone(), self.clock.clone());
        let timeout = self.spec.settled.settled.publish_timeout;
        tokio::spawn(async move {
            let late = {
                let news = news.clone();
                tokio::spawn(async move {
                    clock.sleep(timeout).await;
                    let _ = news.send(News::Shelved(Shelved::Late { partition }));
                })
            };
            while let Some((number, error)) = refused.next().await {
                let Stamp { claim, seq, .. } = sent[number];
                let _ = news.send(News::Shelved(Shelved::AppendFailed { partition, claim, seq, error }));
            }
            late.abort();
            let _ = news.send(News::Shelved(Shelved::Appended { partition }));
        });
        count
    }

    /// The partitions to whose shelves something may have to be written and nothing is on its way, those first whose turn
    /// it is.
    fn writers_in_turn(&self) -> Vec<i32> {
        let last = self.shelves.last_sent;
        let free = self.flow.writers().filter(|partition| !self.shelves.under_way.contains(partition));
        let (before, mut all): (Vec<_>, Vec<_>) = free.partition(|partition| *partition <= last);
        all.extend(before);
        all
    }

    /// An entry has to be read back.
    pub(super) fn fetch(&mut self, partition: i32, at: i64) {
        self.shelves.wanted.entry(partition).or_default().insert(at);
    }

    /// Reads back what is wanted, a run at a time.
    pub(super) fn pick(&mut self) {
        if self.shelves.is_picking {
            return;
        }
        // In turns: what is late already must not make the next late too.
        self.shelves.is_passing = self.shelves.passing.is_some() && !self.shelves.is_passing;
        if self.shelves.is_passing || self.shelves.wanted.is_empty() {
            self.go_on_with_pass();
            return;
        }
        let Some((partition, wanted)) = self.shelves.wanted.pop_first() else { return };
        let (Some(first), Some(turn)) =
            (wanted.first().copied(), self.shelves.turns.get(&partition).copied())
        else {
            return;
        };
        self.shelves.is_picking = true;
        let last = first.saturating_add(FAR);
        let from = Origin { topic: self.shelves.topic.clone(), partition, offset: first };
        let (picker, news) = (self.shelves.picker.clone(), self.news.clone());
        tokio::spawn(async move {
            let result = picker.pick(from, last).await.map(read_back);
            let _ = news.send(News::Shelved(Shelved::Picked { partition, turn, asked: wanted, result }));
        });
    }

    /// Reads the next part of a pass.
    fn go_on_with_pass(&mut self) {
        let Some((partition, next, to)) = self.shelves.passing else { return };
        let Some(turn) = self.shelves.turns.get(&partition).copied() else { return };
        self.shelves.is_picking = true;
        let from = Origin { topic: self.shelves.topic.clone(), partition, offset: next };
        let (picker, news) = (self.shelves.picker.clone(), self.news.clone());
        tokio::spawn(async move {
            let result = picker.pick_many(from, to).await.map(read_back);
            let _ = news.send(News::Shelved(Shelved::Met { partition, turn, result }));
        });
    }

    /// A part of a pass was read: what is not there any more is passed over.
    fn met(&mut self, partition: i32, result: Result<Vec<Back>, KafkaError>, now: Now) {
        let Some((_, _, to)) = self.shelves.passing.filter(|(of, ..)| *of == partition) else { return };
        let met = match result {
            Ok(met) => met,
            Err(error) => {
                // What it should have met is read one by one when it is due.
                debug!(partition, error = chain(&error), "reading ahead failed");
                Vec::new()
            }
        };
        let next = met.last().map_or(to, |(at, _)| *at) + 1;
        for (at, wait) in met {
            self.flow.fetched(partition, at, wait);
        }
        if next <= to {
            self.shelves.passing = Some((partition, next, to));
            return;
        }
        self.shelves.passing = None;
        self.flow.passed(partition, now);
    }

    fn picked(&mut self, partition: i32, mut asked: BTreeSet<i64>, result: Result<Vec<Back>, KafkaError>) {
        let records = match result {
            Ok(records) => records,
            Err(error) => {
                let what = format!("the shelf of partition {partition} cannot be read: {}", chain(&error));
                self.troubles.raise(About::Shelf(partition), what, "it is tried again by itself");
                self.shelves.wanted.entry(partition).or_default().append(&mut asked);
                return;
            }
        };
        self.troubles.clear(About::Shelf(partition));
        let first = asked.first().copied().unwrap_or(0);
        let last = records.last().map_or(first, |(at, _)| *at);
        // What was passed and did not come is not there.
        let later = asked.split_off(&(last + 1));
        for (at, wait) in records {
            asked.remove(&at);
            self.flow.fetched(partition, at, wait);
        }
        for at in asked {
            self.flow.fetched(partition, at, None);
        }
        if !later.is_empty() {
            self.shelves.wanted.entry(partition).or_default().extend(later);
        }
    }

    /// Cuts the log.
    pub(super) fn trim(&mut self, partition: i32, to: i64) {
        let below = Origin { topic: self.shelves.topic.clone(), partition, offset: to };
        let (admin, news) = (self.spec.admin.clone(), self.news.clone());
        tokio::spawn(async move {
            let result = admin.delete_records(&below).await.map(drop);
            let _ = news.send(News::Shelved(Shelved::Trimmed { partition, to, result }));
        });
    }

    /// Cuts off all that a shelf partition holds, which is of a topic that is gone: somebody accepted that.
    pub(super) fn clear_shelf(&mut self, partition: i32) {
        let waiting = self.flow.waiting(partition);
        warn!(partition, waiting, "the shelf holds records of a topic that is gone; it is cleared");
        self.abandon(partition);
        let all = Origin { topic: self.shelves.topic.clone(), partition, offset: -1 };
        let (admin, news) = (self.spec.admin.clone(), self.news.clone());
        tokio::spawn(async move {
            let result = admin.delete_records(&all).await.map(drop);
            let _ = news.send(News::Shelved(Shelved::Cleared { partition, result }));
        });
    }

    fn cleared(&mut self, partition: i32, result: Result<(), KafkaError>, now: Now) {
        if !self.ours.contains(&partition) {
            return;
        }
        if let Err(error) = result {
            let what = format!("the shelf of partition {partition} cannot be cleared: {}", chain(&error));
            let remedy = "allow this user to delete records of it: redrive acls";
            self.troubles.raise(About::Stopped(partition), what, remedy);
        }
        let wait = if self.troubles.has(About::Stopped(partition)) {
            super::assigning::AGAIN
        } else {
            Duration::ZERO
        };
        self.look_later(partition, now.steady.saturating_add(wait));
    }

    /// Something came of what was asked of a shelf.
    pub(super) fn shelved(&mut self, shelved: Shelved, now: Now) {
        match shelved {
            // Lost, or given up, meanwhile: it is nothing to us any more.
            Shelved::ClaimFailed { partition, .. } if self.flow.phase(partition).is_none() => {}
            Shelved::ClaimFailed { partition, claim, error } => {
                let tries = self.shelves.tries.entry(partition).or_default();
                *tries += 1;
                let again = now.steady.saturating_add(back_off(*tries - 1));
                let what = format!("the shelf of partition {partition} cannot be claimed: {error}");
                self.troubles.raise(About::Shelf(partition), what, "it is tried again by itself");
                self.shelves.claims.insert((again, partition, claim));
            }
            Shelved::Proven { partition, claim } => {
                self.shelves.tries.remove(&partition);
                self.flow.proven(partition, claim, now);
            }
            Shelved::Appended { partition } => {
                self.shelves.under_way.remove(&partition);
                self.written(partition);
            }
            Shelved::AppendFailed { partition, claim, seq, error }
                if is_too_large(&error) && self.is_smaller(partition, claim, seq) => {}
            Shelved::AppendFailed { partition, claim, seq, error } => {
                let tries = self.shelves.tries.entry(partition).or_default();
                *tries += 1;
                let again = now.steady.saturating_add(back_off(*tries - 1));
                self.shelves.again.insert((again, partition, claim, seq));
                self.shelves.stuck.insert(partition);
                self.unwritten(partition, &error);
                if matches!(error, KafkaError::Publish { kind: Refusal::Other, .. }) {
                    self.renew_shelf_publisher();
                }
            }
            Shelved::Late { partition } => {
                self.shelves.under_way.remove(&partition);
                self.shelves.stuck.insert(partition);
                self.unwritten(partition, &Publisher::late(self.shelves.topic.clone()));
            }
            Shelved::Picked { partition, turn, asked, result } => {
                self.shelves.is_picking = false;
                if self.shelves.turns.get(&partition) == Some(&turn) {
                    self.picked(partition, asked, result);
                }
            }
            Shelved::Ended { partition, turn, result } => self.found_end(partition, turn, result),
            Shelved::Recalled { partition, turn, asked, result } => {
                self.recalled(partition, turn, asked, result, now);
            }
            Shelved::EntryBuried { partition, turn, at, result } => {
                self.entry_buried(partition, turn, at, result, now);
            }
            Shelved::Met { partition, turn, result } => {
                self.shelves.is_picking = false;
                if self.shelves.turns.get(&partition) == Some(&turn) {
                    self.met(partition, result, now);
                }
            }
            Shelved::Cleared { partition, result } => self.cleared(partition, result, now),
            Shelved::Trimmed { partition, to, result } => self.trimmed(partition, to, result),
        }
    }

    /// Whether what does not fit on the shelf is written in another way, or need not be.
    fn is_smaller(&mut self, partition: i32, claim: ClaimId, seq: u64) -> bool {
        match self.flow.too_large(partition, claim, seq) {
            Smaller::Pointer => {
                info!(partition, "a record does not fit on the shelf: it waits as a pointer");
                self.flow.append_failed(partition, claim, seq);
                true
            }
            Smaller::Left => true,
            Smaller::No => false,
        }
    }

    /// The same within a transaction, of which nothing was written: the next one has it as it is by now.
    pub(super) fn is_smaller_next_time(&mut self, partition: i32, nth: usize) -> bool {
        let stamp = self.saving.output().and_then(|output| output.entry(partition, nth));
        let Some(stamp) = stamp else { return false };
        let smaller = match self.flow.too_large(partition, stamp.claim, stamp.seq) {
            Smaller::Pointer => self.flow.expected(partition, stamp),
            Smaller::Left => None,
            Smaller::No => return false,
        };
        let outgoing = smaller.map(|entry| self.shelves.outgoing(partition, &entry));
        if let Some(output) = self.saving.output() {
            output.replace_entry(partition, nth, outgoing);
        }
        true
    }

    fn trimmed(&mut self, partition: i32, to: i64, result: Result<(), KafkaError>) {
        match result {
            Ok(()) => {
                debug!(partition, to, "the shelf was cut");
                self.troubles.clear(About::Growing);
                self.flow.trimmed(partition, Some(to));
            }
            Err(error) => {
                let topic = &self.shelves.topic;
                let what = format!("{topic} grows, as it cannot be cut: {}", chain(&error));
                let remedy = "allow this user to delete records of it: redrive acls";
                self.troubles.raise(About::Growing, what, remedy);
                self.flow.trimmed(partition, None);
            }
        }
    }

    /// What the old one still writes has lower numbers, and does not count.
    fn renew_shelf_publisher(&mut self) {
        match Publisher::new(&self.kafka, &shelf_publishing(&self.publishing)) {
            Ok(publisher) => self.shelves.publisher = publisher,
            Err(error) => warn!(error = chain(&error), "the publisher of the shelf cannot be made anew"),
        }
    }

    /// What is written to the shelf of a partition is not confirmed: nothing new of it starts.
    fn unwritten(&mut self, partition: i32, error: &KafkaError) {
        let shelf = &self.shelves.topic;
        let kind = match error {
            KafkaError::Publish { kind, .. } => *kind,
            _ => Refusal::Other,
        };
        let remedy = match kind {
            Refusal::MissingTopic => format!("make the topic {shelf}: redrive topics apply"),
            Refusal::MissingPartition => {
                format!("give {shelf} as many partitions as the source has: redrive topics apply")
            }
            Refusal::TooLarge => format!("raise max.message.bytes of {shelf}: redrive topics apply"),
            Refusal::NotAllowed => format!("allow this user to write to {shelf}: redrive acls"),
            _ => "check that the brokers can be reached and enough replicas are in sync".to_owned(),
        };
        let what = format!("partition {partition} is held: its shelf is not written: {}", chain(error));
        self.troubles.raise(About::Shelf(partition), what, &remedy);
        self.flow.hold(partition, true);
    }

    fn written(&mut self, partition: i32) {
        let fails = self.shelves.again.iter().any(|(_, of, ..)| *of == partition);
        if fails {
            return;
        }
        if self.shelves.stuck.remove(&partition) {
            self.shelves.tries.remove(&partition);
            self.troubles.clear(About::Shelf(partition));
            self.release(partition);
        }
    }

    pub(super) fn is_shelf_stuck(&self, partition: i32) -> bool {
        self.shelves.stuck.contains(&partition)
    }

    /// Tries again what did not work, when its time has come.
    pub(super) fn retry_shelves(&mut self, now: Now) {
        while let Some((at, partition, claim, seq)) = self.shelves.again.first().copied() {
            if at > now.steady {
                break;
            }
            self.shelves.again.remove(&(at, partition, claim, seq));
            self.flow.append_failed(partition, claim, seq);
            // It was written meanwhile, with another that was tried again earlier: nobody else will say so.
            if self.flow.is_written(partition) {
                self.written(partition);
            }
        }
        while let Some((at, partition, claim)) = self.shelves.claims.first().copied() {
            if at > now.steady {
                break;
            }
            self.shelves.claims.remove(&(at, partition, claim));
            self.flow.claim_failed(partition, claim);
        }
    }
}

fn is_too_large(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Publish { kind: Refusal::TooLarge, .. })
}

/// What waits at each of these places. On the thread that read them: there may be many.
fn read_back(records: Vec<Record>) -> Vec<Back> {
    let back = records.into_iter().map(|record| match Entry::read(&record) {
        Ok(Entry::Wait(_, wait) | Entry::Replay(wait)) => (record.at.offset, Some(wait)),
        Ok(_) | Err(_) => (record.at.offset, None),
    });
    back.collect()
}

/// Entries wait less for each other than letters do: their records are held up by it. Not less than a millisecond, for
/// which librdkafka would spin; and where many are set aside they go in large batches, as it spins while as many batches
/// of a partition as it allows are under way.
pub(super) fn shelf_publishing(publishing: &Publishing) -> Publishing {
    Publishing { linger: Duration::from_millis(1), batch: BATCH, ..publishing.clone() }
}
