//! Which offsets are safe at the broker: by commits, or by transactions that carry the output too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::flow::{Flow, Now};
use redrive_core::{Class, Failure, Topic};
use redrive_kafka::Transacting as TransactionSettings;
use redrive_kafka::{
    Error as KafkaError, GroupMetadata, Mark, Outgoing, Refusal, TransactionFailed, Transactions,
};
use tokio::sync::Mutex;
use tracing::{debug, warn};

use super::engine::{Engine, chain};
use super::output::{Output, Source};
use super::troubles::About;
use super::{News, Spec, back_off};
use crate::Error;
use crate::cluster::Cluster;
use crate::listener::Event as Heard;

/// How a commit of ours is known: this, the id of the topic it is for, how many partitions that had, and that
/// a shelf says the same.
pub(crate) const TAG: &str = "redrive/1 ";
/// How often offsets are committed.
const COMMIT: Duration = Duration::from_secs(1);
/// How often a transaction is made of what is finished.
const TRANSACTION: Duration = Duration::from_millis(50);
/// The least time between two tries when someone waits for them.
const HURRY: Duration = Duration::from_millis(20);

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
    output: Output,
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
        let transacting =
            Transacting { transactions: Arc::new(Mutex::new(transactions)), output: Output::default() };
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

    /// What waits for its transaction, if there are transactions.
    pub(super) fn output(&mut self) -> Option<&mut Output> {
        self.transactions.as_mut().map(|transacting| &mut transacting.output)
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
        if let Some(output) = self.output() {
            output.forget(partition);
        }
    }

    pub(super) fn is_saving(&self, partition: i32) -> bool {
        self.is_running && self.running.contains(&partition)
    }

    pub(super) fn is_saved(&self, partition: i32, flow: &Flow) -> bool {
        flow.is_written(partition)
            && flow.mark(partition).is_none_or(|mark| self.saved.get(&partition) == Some(&mark))
    }

    /// What is committed of the partitions that are ours.
    pub(super) fn all_saved(&self) -> impl Iterator<Item = (i32, i64)> {
        self.saved.iter().map(|(partition, mark)| (*partition, *mark))
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
        // Looked at then, unless nothing happens: what is saved is cheap to find out now and then, not at every
        // turn.
        if !hurry && self.next > now.steady && !flow.is_idle() {
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

    /// Something happened: where partitions are being given up it may be the last thing that they waited for, and nobody need
    /// turn a clock for that to be saved.
    pub(super) fn hurry_to_leave(&mut self) {
        if self.saving.failures == 0 && (self.is_stopping() || !self.giving_up.is_empty()) {
            let now = self.clock.now();
            self.saving.hurry(now);
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
        let output = &mut transacting.output;
        // What is complete by a checkpoint goes with it, all of it.
        while let Some((partition, entry)) = self.flow.next_append() {
            let Some(stamp) = entry.stamp() else { continue };
            self.shelves.time(partition, stamp, now.steady);
            output.add_entry(partition, stamp, self.shelves.outgoing(partition, &entry));
        }
        let mut partitions: BTreeSet<i32> = self.flow.partitions().collect();
        partitions.retain(|partition| !output.is_held(*partition, now.steady));
        let (outgoing, sources) = output.load(&partitions);
        let marks: Vec<_> =
            self.flow.marks().filter(|(partition, _)| partitions.contains(partition)).collect();
        let is_new = |(partition, mark): &(i32, i64)| self.saving.saved.get(partition) != Some(mark);
        if outgoing.is_empty() && !marks.iter().any(is_new) {
            return;
        }
        let transactions = transacting.transactions.clone();
        self.saving.is_running = true;
        self.saving.running = partitions.iter().copied().collect();
        // Each partition is fenced by its shelf, whether its source has a mark yet or not.
        let fence = |partition: &i32| Mark { partition: *partition, offset: 0, metadata: String::new() };
        let all = vec![
            (self.shelves.topic.clone(), partitions.iter().map(fence).collect()),
            (self.spec.settled.settled.topic.clone(), self.marks(&marks)),
        ];
        let news = self.news.clone();
        tokio::spawn(async move {
            let result = run(transactions, outgoing, all, group).await.map_err(Failed::Transaction);
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
                        self.clearing.is_due();
                    }
                }
                self.published(&saved.sources);
                for partition in saved.partitions {
                    self.throttle(partition);
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
            let refusals = self.saving.output().map(|output| output.take_refusals(*partition));
            self.take_over_again(*partition, "its last transaction counts for nothing, or nobody knows", now);
            if let Some((output, refusals)) = self.saving.output().zip(refusals) {
                output.put_refusals(refusals);
            }
        }
    }

    fn try_again(&mut self, error: &dyn std::error::Error, now: Now) {
        debug!(error = chain(error), "not saved");
        self.saving.failures = self.saving.failures.saturating_add(1);
        self.saving.next = now.steady.saturating_add(self.saving.interval());
    }

    /// All of this is there, for everyone to see.
    fn published(&mut self, sources: &[Source]) {
        let Some(output) = self.saving.output() else { return };
        let letters = output.published(sources);
        for burying in letters {
            self.tell_buried(&burying.story, &burying.letter, None);
        }
    }

    /// Takes no more of a partition of which too much waits for an earlier record.
    pub(super) fn throttle(&mut self, partition: i32) {
        let Some(is_full) = self.saving.output().and_then(|output| output.is_full(partition)) else { return };
        let about = About::Output(partition);
        match is_full {
            true => {
                let what = format!(
                    "much output of partition {partition} waits for its transaction; no more of it is taken"
                );
                self.troubles.raise(about, what, "look at why transactions take long or fail");
            }
            false => self.troubles.clear(about),
        }
        self.flow.throttle(partition, is_full);
    }

    /// Something in the transaction cannot be published. A letter is made smaller, or waits with its
    /// partition. Output is refused for good: the record that it came from has failed after all. By now
    /// later ones of its lane may have been handled, so the partition begins again where it is saved.
    fn refused(&mut self, sources: &[Source], index: usize, kind: Refusal, error: &KafkaError, now: Now) {
        self.saving.next = now.steady;
        let source = sources.get(index).copied();
        if let Some(Source::Entry(partition, nth)) = source
            && kind == Refusal::TooLarge
            && self.is_smaller_next_time(partition, nth)
        {
            return;
        }
        let (at, nth, output) = match source.zip(self.saving.output()) {
            Some((Source::Record(at, nth), output)) => (at, nth, output),
            Some((Source::Entry(partition, _), output)) => {
                output.hold(partition, now.steady.saturating_add(back_off(1)));
                self.burials.count_error();
                self.hold(partition, error);
                return;
            }
            None => {
                self.try_again(error, now);
                return;
            }
        };
        if output.shrink(at, nth, kind) {
            return;
        }
        if let Some(burying) = output.letter(at, nth) {
            let story = burying.story.clone();
            output.hold(at.0, now.steady.saturating_add(back_off(1)));
            self.burials.count_error();
            self.hold(at.0, error);
            let topic = &self.spec.settled.settled.letters;
            self.hear_story(&story, |told| Heard::LetterRefused { told, topic, error });
            return;
        }
        warn!(
            partition = at.0,
            offset = at.1,
            error = chain(error),
            "output is refused: its record has failed"
        );
        self.begin_again(&[at.0], now);
        if let Some(output) = self.saving.output() {
            output.refuse(at, Failure::from_error(error).presumably(Class::Permanent));
        }
    }
}

/// Runs a transaction, and makes the producer anew if it did not survive that: whoever runs the next one
/// finds one that works.
pub(super) async fn run(
    transactions: Arc<Mutex<Transactions>>,
    outgoing: Vec<Outgoing>,
    marks: Vec<(Topic, Vec<Mark>)>,
    group: GroupMetadata,
) -> Result<(), TransactionFailed> {
    let mut transactions = transactions.lock_owned().await;
    let result = transactions.run_all(outgoing, marks, group).await;
    // Nobody else has this transactional id: whoever fenced it off was the broker, by a timeout.
    if let Err(failed) = &result
        && failed.ends_the_producer()
    {
        warn!(error = chain(failed), "the transactional producer is made anew");
        if let Err(error) = transactions.renew().await {
            warn!(error = chain(&error), "the transactional producer could not be made anew");
        }
    }
    result
}
