//! Which offsets are safe at the broker: by commits, or by transactions that carry the output too.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::flow::{Flow, Now};
use redrive_core::letter::{Letter, Size};
use redrive_kafka::Transacting as TransactionSettings;
use redrive_kafka::{Error as KafkaError, Mark, Outgoing, Refusal, TransactionFailed, Transactions};
use tokio::sync::Mutex;
use tracing::{debug, warn};

use super::engine::{Engine, chain};
use super::troubles::About;
use super::{News, Spec, back_off};
use crate::Error;
use crate::cluster::Cluster;

/// How a commit of ours is known: this, the id of the topic it is for, how many partitions that had, and that
/// a shelf says the same.
pub(crate) const TAG: &str = "redrive/1 ";
/// How often offsets are committed.
const COMMIT: Duration = Duration::from_secs(1);
/// How often a transaction is made of what is finished.
const TRANSACTION: Duration = Duration::from_millis(50);
/// The least time between two tries when someone waits for them.
const HURRY: Duration = Duration::from_millis(20);
/// What may wait for its transaction before no more records are taken: that has to end within its time.
const MOST_WAITING: usize = 10_000;

/// What is safe, and what is not yet.
pub(crate) struct Saving {
    saved: HashMap<i32, i64>,
    /// The partitions of the commit or transaction that is on its way.
    running: HashSet<i32>,
    is_running: bool,
    next: Duration,
    failures: u32,
    tag: String,
    transactions: Option<Transacting>,
}

struct Transacting {
    transactions: Arc<Mutex<Transactions>>,
    /// What is published together with the offset that made it.
    waiting: BTreeMap<(i32, i64), Vec<Waiting>>,
    count: usize,
    /// Entries for shelves that are in no committed transaction yet, in their order.
    entries: Vec<(i32, Outgoing)>,
    /// Partitions with something that was refused, and when to try them again.
    refused: HashMap<i32, Duration>,
}

struct Waiting {
    outgoing: Outgoing,
    /// What it is, if it is a letter, and how much of it is left.
    letter: Option<(Letter, Size)>,
}

/// How a commit or a transaction ended.
pub(crate) struct Saved {
    marks: Vec<(i32, i64)>,
    /// What else it was about.
    partitions: Vec<i32>,
    /// Where each published record came from, in their order.
    sources: Vec<Source>,
    result: Result<(), Failed>,
}

/// Where something that is published came from.
#[derive(Clone, Copy)]
enum Source {
    /// The output or letter of a record: its place, and which of them.
    Record((i32, i64), usize),
    /// The owner of a shelf partition.
    Entry(i32),
}

enum Failed {
    Commit(KafkaError),
    Transaction(TransactionFailed),
}

impl Saving {
    pub(super) fn commits() -> Self {
        Self {
            saved: HashMap::new(),
            running: HashSet::new(),
            is_running: false,
            next: Duration::ZERO,
            failures: 0,
            tag: TAG.to_owned(),
            transactions: None,
        }
    }

    pub(super) async fn transactions(cluster: &Cluster, spec: &Spec) -> Result<Self, Error> {
        let limits = TransactionSettings {
            max_message_bytes: spec.max_message_bytes,
            ..TransactionSettings::default()
        };
        let transactions = Transactions::new(cluster.settings(), &spec.transactional_id, &limits).await?;
        let transacting = Transacting {
            transactions: Arc::new(Mutex::new(transactions)),
            waiting: BTreeMap::new(),
            count: 0,
            entries: Vec::new(),
            refused: HashMap::new(),
        };
        Ok(Self { transactions: Some(transacting), ..Self::commits() })
    }

    /// Someone waits for what is done to be safe.
    pub(super) fn hurry(&mut self, now: Now) {
        self.next = self.next.min(now.steady);
    }

    pub(super) fn set_topic(&mut self, id: &str, partitions: i32) {
        self.tag = format!("{TAG}{id} {partitions} shelf");
    }

    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) fn is_transactional(&self) -> bool {
        self.transactions.is_some()
    }

    pub(super) fn has_room(&self) -> bool {
        self.transactions.as_ref().is_none_or(|transactions| transactions.count < MOST_WAITING)
    }

    /// A partition begins: nothing of it is committed by us yet.
    pub(super) fn begin(&mut self, partition: i32) {
        self.saved.remove(&partition);
    }

    pub(super) fn shared_transactions(&self) -> Option<Arc<Mutex<Transactions>>> {
        Some(self.transactions.as_ref()?.transactions.clone())
    }

    pub(super) fn forget(&mut self, partition: i32) {
        self.saved.remove(&partition);
        if let Some(transactions) = &mut self.transactions {
            transactions.refused.remove(&partition);
            let kept = |at: &(i32, i64), _: &mut Vec<Waiting>| at.0 != partition;
            transactions.waiting.retain(kept);
            transactions.entries.retain(|(of, _)| *of != partition);
            transactions.count = transactions.waiting.values().map(Vec::len).sum();
        }
    }

    /// What a handler wants to publish with its offset.
    pub(super) fn add(&mut self, at: (i32, i64), output: Vec<Outgoing>) {
        self.wait(at, output.into_iter().map(|outgoing| Waiting { outgoing, letter: None }).collect());
    }

    /// A letter that is published with its offset.
    pub(super) fn add_letter(&mut self, at: (i32, i64), outgoing: Outgoing, letter: Letter) {
        self.wait(at, vec![Waiting { outgoing, letter: Some((letter, Size::Whole)) }]);
    }

    fn wait(&mut self, at: (i32, i64), more: Vec<Waiting>) {
        let Some(transactions) = &mut self.transactions else { return };
        transactions.count += more.len();
        transactions.waiting.entry(at).or_default().extend(more);
    }

    pub(super) fn is_saving(&self, partition: i32) -> bool {
        self.is_running && self.running.contains(&partition)
    }

    pub(super) fn is_saved(&self, partition: i32, flow: &Flow) -> bool {
        flow.is_written(partition)
            && flow.mark(partition).is_none_or(|mark| self.saved.get(&partition) == Some(&mark))
    }

    pub(super) fn is_done(&self, flow: &Flow) -> bool {
        !self.is_running && flow.partitions().all(|partition| self.is_saved(partition, flow))
    }

    fn interval(&self) -> Duration {
        match (&self.transactions, self.failures) {
            (_, failures @ 1..) => back_off(failures - 1) / 4,
            (None, 0) => COMMIT,
            (Some(_), 0) => TRANSACTION,
        }
    }

    pub(super) fn next_wake(&self, flow: &Flow, hurry: bool, now: Now) -> Option<Duration> {
        if self.is_running {
            return None;
        }
        // Looked at then: what is saved is cheap to find out now and then, not at every turn.
        if !hurry && self.next > now.steady {
            return Some(self.next);
        }
        if flow.partitions().all(|partition| self.is_saved(partition, flow)) {
            return None;
        }
        Some(self.next.max(now.steady))
    }

    pub(super) async fn end(&mut self) {
        if let Some(transactions) = self.transactions.take() {
            // Whoever holds it ends by itself; a transaction that is open is aborted by the broker.
            drop(transactions.transactions.lock().await);
        }
    }
}

impl Engine {
    /// Makes safe what is complete, when it is time.
    pub(super) fn save(&mut self, now: Now) {
        let hurry = self.is_stopping() || !self.giving_up.is_empty();
        if self.saving.is_running || now.steady < self.saving.next {
            return;
        }
        for partition in self.turns.keys() {
            self.flow.checkpoint(*partition);
        }
        self.append();
        let interval = match hurry {
            true => self.saving.interval().min(HURRY),
            false => self.saving.interval(),
        };
        self.saving.next = now.steady.saturating_add(interval);
        if self.saving.is_transactional() {
            self.transact(now);
            return;
        }
        let marks =
            self.flow.marks().filter(|(partition, mark)| self.saving.saved.get(partition) != Some(mark));
        let marks: Vec<_> = marks.collect();
        if !marks.is_empty() {
            self.commit(marks);
        }
    }

    fn commit(&mut self, marks: Vec<(i32, i64)>) {
        self.saving.is_running = true;
        self.saving.running = marks.iter().map(|(partition, _)| *partition).collect();
        let (consumer, news, all) = (self.consumer.clone(), self.news.clone(), self.marks(&marks));
        tokio::spawn(async move {
            let result = consumer.commit(all).await.map_err(Failed::Commit);
            let _ =
                news.send(News::Saved(Saved { marks, partitions: Vec::new(), sources: Vec::new(), result }));
        });
    }

    fn marks(&self, marks: &[(i32, i64)]) -> Vec<Mark> {
        let tag = self.saving.tag();
        let mark = |(partition, offset): &(i32, i64)| Mark {
            partition: *partition,
            offset: *offset,
            metadata: tag.to_owned(),
        };
        marks.iter().map(mark).collect()
    }

    fn transact(&mut self, now: Now) {
        // Captured first: if a loss was told by then it is found below, and if not, then this is of the
        // generation that still owned everything, and a later owner's group refuses it.
        let Some(group) = self.consumer.group_metadata() else { return };
        if self.events.has_control() {
            self.saving.next = now.steady;
            return;
        }
        let Some(transacting) = &mut self.saving.transactions else { return };
        while let Some((partition, entry)) = self.flow.next_append() {
            if let Some(stamp) = entry.stamp() {
                self.shelves.time(partition, stamp, now.steady);
            }
            transacting.entries.push((partition, self.shelves.outgoing(partition, &entry)));
        }
        transacting.refused.retain(|_, again| *again > now.steady);
        let is_refused = |partition: &i32| transacting.refused.contains_key(partition);
        let (mut outgoing, mut sources) = (Vec::new(), Vec::new());
        let mut partitions = BTreeSet::new();
        // What is complete by a checkpoint goes with it, all of it.
        for (at, waiting) in transacting.waiting.iter().filter(|(at, _)| !is_refused(&at.0)) {
            partitions.insert(at.0);
            for (index, one) in waiting.iter().enumerate() {
                outgoing.push(one.outgoing.clone());
                sources.push(Source::Record(*at, index));
            }
        }
        for (partition, entry) in transacting.entries.iter().filter(|(of, _)| !is_refused(of)) {
            partitions.insert(*partition);
            outgoing.push(entry.clone());
            sources.push(Source::Entry(*partition));
        }
        let marks: Vec<_> = self.flow.marks().filter(|(partition, _)| !is_refused(partition)).collect();
        let is_new = |(partition, mark): &(i32, i64)| self.saving.saved.get(partition) != Some(mark);
        if partitions.is_empty() && !marks.iter().any(is_new) {
            return;
        }
        partitions.extend(marks.iter().map(|(partition, _)| *partition));
        let transactions = transacting.transactions.clone();
        self.saving.is_running = true;
        // The fence of each partition is that of its shelf, whether its source has a mark yet or not.
        let fences = partitions.iter().map(|partition| Mark {
            partition: *partition,
            offset: 0,
            metadata: String::new(),
        });
        let all = vec![
            (self.shelves.topic.clone(), fences.collect::<Vec<_>>()),
            (self.spec.settled.settled.topic.clone(), self.marks(&marks)),
        ];
        self.saving.running = partitions.iter().copied().collect();
        let news = self.news.clone();
        tokio::spawn(async move {
            let mut transactions = transactions.lock_owned().await;
            let result = transactions.run_all(outgoing, all, group).await;
            // Nobody else has this transactional id: whoever fenced it off was the broker, by a timeout.
            if let Err(failed) = &result
                && failed.ends_the_producer()
            {
                warn!(error = chain(failed), "the transactional producer is made anew");
                if let Err(error) = transactions.renew().await {
                    warn!(error = chain(&error), "the transactional producer could not be made anew");
                }
            }
            let result = result.map_err(Failed::Transaction);
            drop(transactions);
            let partitions = partitions.into_iter().collect();
            let _ = news.send(News::Saved(Saved { marks, partitions, sources, result }));
        });
    }

    pub(super) fn saved(&mut self, saved: Saved, now: Now) {
        self.saving.is_running = false;
        self.saving.running.clear();
        match saved.result {
            Ok(()) => {
                self.saving.failures = 0;
                self.troubles.clear(About::Commits);
                for (partition, mark) in saved.marks {
                    // Given up meanwhile, or begun anew.
                    if self.turns.contains_key(&partition) {
                        self.saving.saved.insert(partition, mark);
                    }
                }
                self.forget_published(&saved.sources);
                for partition in saved.partitions {
                    self.release(partition);
                }
            }
            Err(Failed::Commit(error)) if error.group_moved_on() => self.try_again(&error, now),
            Err(Failed::Commit(error)) => {
                let what = format!("offsets cannot be committed: {}", chain(&error));
                self.troubles.raise(About::Commits, what, "it is tried again by itself; nothing is lost");
                self.try_again(&error, now);
            }
            Err(Failed::Transaction(TransactionFailed::Refused { kind, index, source, topic })) => {
                let error = KafkaError::Publish { topic, kind, source };
                self.refused(&saved.sources, index, kind, &error, now);
            }
            Err(Failed::Transaction(failed)) => {
                let is_left_behind =
                    matches!(failed, TransactionFailed::Fenced(_)) && !failed.ends_the_producer();
                if !is_left_behind {
                    let what = format!("a transaction did not commit: {}", chain(&failed));
                    self.troubles.raise(About::Commits, what, "it is tried again by itself; nothing is lost");
                }
                if failed.ends_the_producer() || matches!(failed, TransactionFailed::CutOff(_)) {
                    self.begin_again(&saved.partitions, now);
                }
                self.try_again(&failed, now);
            }
        }
    }

    /// Whether the transaction of these was committed is not known: the logs of their shelves say. To run it
    /// again could make two of what it published, so what is not committed is handled again.
    fn begin_again(&mut self, partitions: &[i32], now: Now) {
        for partition in partitions {
            self.take_over_again(*partition, "a transaction ended without a word", now);
        }
    }

    fn try_again(&mut self, error: &dyn std::error::Error, now: Now) {
        debug!(error = chain(error), "not saved");
        self.saving.failures = self.saving.failures.saturating_add(1);
        self.saving.next = now.steady.saturating_add(self.saving.interval());
    }

    fn forget_published(&mut self, sources: &[Source]) {
        let Some(transacting) = &mut self.saving.transactions else { return };
        let mut entries: HashMap<i32, usize> = HashMap::new();
        let mut records: HashMap<(i32, i64), usize> = HashMap::new();
        for source in sources {
            match source {
                Source::Record(at, _) => *records.entry(*at).or_default() += 1,
                Source::Entry(partition) => *entries.entry(*partition).or_default() += 1,
            }
        }
        for (at, published) in records {
            let Some(waiting) = transacting.waiting.get_mut(&at) else { continue };
            // A record that came back may have published again since.
            waiting.drain(..published.min(waiting.len()));
            transacting.count = transacting.count.saturating_sub(published);
            if waiting.is_empty() {
                transacting.waiting.remove(&at);
            }
        }
        transacting.entries.retain(|(partition, _)| match entries.get_mut(partition) {
            Some(published) if *published > 0 => {
                *published -= 1;
                false
            }
            Some(_) | None => true,
        });
    }

    /// Something in the transaction cannot be published: a letter is made smaller, anything else waits
    /// with its partition.
    fn refused(&mut self, sources: &[Source], index: usize, kind: Refusal, error: &KafkaError, now: Now) {
        self.saving.next = now.steady;
        let partition = match sources.get(index).copied() {
            None => {
                self.try_again(error, now);
                return;
            }
            Some(Source::Record(at, nth)) if self.shrink(at, nth, kind) => return,
            Some(Source::Record(at, _)) => at.0,
            Some(Source::Entry(partition)) => partition,
        };
        self.burials.count_error();
        let Some(transacting) = &mut self.saving.transactions else { return };
        transacting.refused.insert(partition, now.steady.saturating_add(back_off(1)));
        self.hold(partition, error);
    }

    fn shrink(&mut self, at: (i32, i64), nth: usize, kind: Refusal) -> bool {
        if kind != Refusal::TooLarge {
            return false;
        }
        let Some(transacting) = &mut self.saving.transactions else { return false };
        let waiting = transacting.waiting.get_mut(&at).and_then(|all| all.get_mut(nth));
        let Some(Waiting { outgoing, letter: Some((letter, size)) }) = waiting else { return false };
        let Some(smaller) = size.smaller() else { return false };
        *size = smaller;
        let letter = letter.clone().shrunk(smaller, None);
        (outgoing.value, outgoing.headers) = (letter.value, letter.headers);
        true
    }
}
