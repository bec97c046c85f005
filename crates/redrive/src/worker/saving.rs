//! Which offsets are safe at the broker: by commits, or by transactions that carry the output too.

use std::collections::{BTreeMap, HashMap, HashSet};
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

/// How a commit of ours is known: this, the id of the topic it is for, and how many partitions that had.
pub(crate) const TAG: &str = "redrive/1 ";
/// How often offsets are committed.
const COMMIT: Duration = Duration::from_secs(1);
/// How often a transaction is made of what is finished.
const TRANSACTION: Duration = Duration::from_millis(50);
/// The least time between two tries when someone waits for them.
const HURRY: Duration = Duration::from_millis(20);
/// What goes into one transaction at most: it has to end within its time.
const MOST_IN_ONE: usize = 5_000;
const MOST_BYTES_IN_ONE: usize = 16 << 20;
/// What may wait for its transaction before no more records are taken.
const MOST_WAITING: usize = 20_000;

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
    /// Partitions with something that was refused, and when to try them again.
    refused: HashMap<i32, Duration>,
}

struct Waiting {
    outgoing: Outgoing,
    /// What it is, if it is a letter, and how much of it is left.
    letter: Option<(Letter, Size)>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        let length = |bytes: Option<&bytes::Bytes>| bytes.map_or(0, bytes::Bytes::len);
        length(self.outgoing.key.as_ref()) + length(self.outgoing.value.as_ref()) + 100
    }
}

/// How a commit or a transaction ended.
pub(crate) struct Saved {
    marks: Vec<(i32, i64)>,
    /// Where in the flow each published record came from, in their order.
    sources: Vec<((i32, i64), usize)>,
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
        let transacting = Transacting {
            transactions: Arc::new(Mutex::new(transactions)),
            waiting: BTreeMap::new(),
            count: 0,
            refused: HashMap::new(),
        };
        Ok(Self { transactions: Some(transacting), ..Self::commits() })
    }

    /// Someone waits for what is done to be safe.
    pub(super) fn hurry(&mut self, now: Now) {
        self.next = self.next.min(now.steady);
    }

    pub(super) fn set_topic(&mut self, id: &str, partitions: i32) {
        self.tag = format!("{TAG}{id} {partitions}");
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

    /// A partition begins; `saved` is what the group has committed of it.
    pub(super) fn begin(&mut self, partition: i32, saved: Option<i64>) {
        self.forget(partition);
        if let Some(offset) = saved {
            self.saved.insert(partition, offset);
        }
    }

    pub(super) fn forget(&mut self, partition: i32) {
        self.saved.remove(&partition);
        if let Some(transactions) = &mut self.transactions {
            transactions.refused.remove(&partition);
            let kept = |at: &(i32, i64), _: &mut Vec<Waiting>| at.0 != partition;
            transactions.waiting.retain(kept);
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
        flow.mark(partition).is_none_or(|mark| self.saved.get(&partition) == Some(&mark))
    }

    pub(super) fn is_done(&self, flow: &Flow) -> bool {
        !self.is_running && flow.marks().all(|(partition, _)| self.is_saved(partition, flow))
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
        if flow.marks().all(|(partition, _)| self.is_saved(partition, flow)) {
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
        let marks: Vec<_> = self
            .flow
            .marks()
            .filter(|(partition, mark)| self.saving.saved.get(partition) != Some(mark))
            .collect();
        let interval = match hurry {
            true => self.saving.interval().min(HURRY),
            false => self.saving.interval(),
        };
        self.saving.next = now.steady.saturating_add(interval);
        if marks.is_empty() {
            return;
        }
        match self.saving.transactions {
            None => self.commit(marks),
            Some(_) => self.transact(marks, now),
        }
    }

    fn commit(&mut self, marks: Vec<(i32, i64)>) {
        self.saving.is_running = true;
        self.saving.running = marks.iter().map(|(partition, _)| *partition).collect();
        let (consumer, news, all) = (self.consumer.clone(), self.news.clone(), self.marks(&marks));
        tokio::spawn(async move {
            let result = consumer.commit(all).await.map_err(Failed::Commit);
            let _ = news.send(News::Saved(Saved { marks, sources: Vec::new(), result }));
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

    fn transact(&mut self, mut marks: Vec<(i32, i64)>, now: Now) {
        // Captured first: if a loss was told by then it is found below, and if not, then this is of the
        // generation that still owned everything, and a later owner's group refuses it.
        let Some(group) = self.consumer.group_metadata() else { return };
        if self.events.has_control() {
            self.saving.next = now.steady;
            return;
        }
        let Saving { transactions: Some(transacting), saved, .. } = &mut self.saving else { return };
        transacting.refused.retain(|_, again| *again > now.steady);
        marks.retain(|(partition, _)| !transacting.refused.contains_key(partition));
        if marks.is_empty() {
            return;
        }
        let (mut outgoing, mut sources, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (partition, mark) in &mut marks {
            for (at, waiting) in transacting.waiting.range((*partition, i64::MIN)..(*partition, *mark)) {
                let more: usize = waiting.iter().map(Waiting::bytes).sum();
                let is_full =
                    outgoing.len() + waiting.len() > MOST_IN_ONE || bytes + more > MOST_BYTES_IN_ONE;
                if is_full && !outgoing.is_empty() {
                    // All below is complete, so any lower mark is right too; the rest is for the next one.
                    *mark = at.1;
                    break;
                }
                bytes += more;
                for (index, one) in waiting.iter().enumerate() {
                    outgoing.push(one.outgoing.clone());
                    sources.push((*at, index));
                }
            }
        }
        marks.retain(|(partition, mark)| saved.get(partition) != Some(mark));
        if marks.is_empty() {
            return;
        }
        let transactions = transacting.transactions.clone();
        self.saving.is_running = true;
        self.saving.running = marks.iter().map(|(partition, _)| *partition).collect();
        let (news, all) = (self.news.clone(), self.marks(&marks));
        let topic = self.spec.settled.settled.topic.clone();
        tokio::spawn(async move {
            let mut transactions = transactions.lock_owned().await;
            let result = transactions.run(outgoing, all, &topic, group).await;
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
            let _ = news.send(News::Saved(Saved { marks, sources, result }));
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
                    self.forget_published(partition, mark);
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
                    self.begin_again(&saved.marks, now);
                }
                self.try_again(&failed, now);
            }
        }
    }

    /// Whether the transaction of these was committed is not known: the group's offsets say. To run it again
    /// could make two of what it published, so what is not committed is handled again.
    fn begin_again(&mut self, marks: &[(i32, i64)], now: Now) {
        for (partition, _) in marks {
            if !self.turns.contains_key(partition) {
                continue;
            }
            self.abandon(*partition);
            let is_asked_back =
                self.giving_up.iter().any(|giving_up| giving_up.partitions.contains(partition));
            if !is_asked_back {
                self.look_later(*partition, now.steady);
            }
        }
    }

    fn try_again(&mut self, error: &dyn std::error::Error, now: Now) {
        debug!(error = chain(error), "not saved");
        self.saving.failures = self.saving.failures.saturating_add(1);
        self.saving.next = now.steady.saturating_add(self.saving.interval());
    }

    fn forget_published(&mut self, partition: i32, mark: i64) {
        let Some(transacting) = &mut self.saving.transactions else { return };
        let mut later = transacting.waiting.split_off(&(partition, i64::MIN));
        let mut above = later.split_off(&(partition, mark));
        transacting.waiting.append(&mut above);
        transacting.count = transacting.count.saturating_sub(later.values().map(Vec::len).sum());
    }

    /// Something in the transaction cannot be published: a letter is made smaller, anything else waits
    /// with its partition.
    fn refused(
        &mut self,
        sources: &[((i32, i64), usize)],
        index: usize,
        kind: Refusal,
        error: &KafkaError,
        now: Now,
    ) {
        self.saving.next = now.steady;
        let Some((at, nth)) = sources.get(index).copied() else {
            self.try_again(error, now);
            return;
        };
        if self.shrink(at, nth, kind) {
            return;
        }
        self.burials.count_error();
        let Some(transacting) = &mut self.saving.transactions else { return };
        transacting.refused.insert(at.0, now.steady.saturating_add(back_off(1)));
        self.hold(at.0, error);
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
