//! Partitions that come and go: where they begin, and how they are given up.

use std::time::Duration;

use redrive_core::flow::Now;
use redrive_core::settings::Start;
use redrive_kafka::Consumer;
use tracing::{debug, info, warn};

use super::News;
use super::engine::{Engine, chain};
use super::place::{Known, Place, place};
use super::troubles::About;

/// How long the broker may take to say where a partition begins.
const ANSWER: Duration = Duration::from_secs(10);
/// When to look again at a partition that could not begin.
const AGAIN: Duration = Duration::from_secs(5);

/// Where a partition begins, or what kept us from finding out.
pub(crate) type Found = Result<Place, String>;

/// A partition that has not begun.
pub(crate) struct Starting {
    /// Which look at it counts: an answer to an earlier one may be of an earlier assignment, and old.
    look: u64,
    /// When to look again.
    pub(crate) again: Option<Duration>,
}

/// Partitions that the group wants back, all at once.
pub(crate) struct GivingUp {
    pub(crate) partitions: Vec<i32>,
    /// When what still runs is cut off.
    pub(crate) deadline: Duration,
}

impl Engine {
    /// Partitions are ours: find out where they begin.
    pub(super) fn assigned(&mut self, partitions: Vec<i32>) {
        info!(?partitions, "assigned");
        self.look(partitions);
    }

    fn look(&mut self, partitions: Vec<i32>) {
        self.looks += 1;
        let look = self.looks;
        for partition in &partitions {
            self.starting.insert(*partition, Starting { look, again: None });
        }
        let (consumer, news) = (self.consumer.clone(), self.news.clone());
        let (start, accept_loss) = (self.spec.settled.settled.start, self.spec.accept_loss);
        let tag = self.saving.tag().to_owned();
        tokio::spawn(async move {
            let found = find(&consumer, &partitions, start, accept_loss, &tag).await;
            let _ = news.send(News::Found { look, found });
        });
    }

    pub(super) fn found(&mut self, look: u64, found: Vec<(i32, Found)>, now: Now) {
        for (partition, found) in found {
            // Revoked or lost while we asked, and maybe ours again since.
            let is_asked = self.starting.get(&partition).is_some_and(|starting| starting.look == look);
            if !is_asked || self.is_stopping() {
                continue;
            }
            let (offset, is_new) = match found {
                Ok(Place::Committed(offset)) => (offset, false),
                Ok(Place::New(offset)) => (offset, true),
                Ok(Place::Gap(what)) => {
                    let what = format!("partition {partition} does not begin: {what}");
                    let remedy = "find out what happened; to go on without what is gone, start with --accept-loss \
                                  (in code: Worker::accept_loss)";
                    self.troubles.raise(About::Stopped(partition), what, remedy);
                    continue;
                }
                Err(what) => {
                    let what = format!("partition {partition} does not begin yet: {what}");
                    self.troubles.raise(About::Stopped(partition), what, "it is tried again by itself");
                    self.look_later(partition, now.steady.saturating_add(AGAIN));
                    continue;
                }
            };
            self.begin(partition, offset, is_new, now);
        }
    }

    fn begin(&mut self, partition: i32, offset: i64, is_new: bool, now: Now) {
        match self.consumer.begin(partition, offset) {
            Ok(turn) => {
                info!(partition, offset, "begun");
                self.starting.remove(&partition);
                self.troubles.clear(About::Stopped(partition));
                self.turns.insert(partition, turn);
                self.flow.begin(partition, offset);
                // A new group's place is committed before it has done anything: otherwise one that began
                // at the end would begin at another end after a restart.
                self.saving.begin(partition, (!is_new).then_some(offset));
            }
            Err(error) if error.group_moved_on() => debug!(partition, %error, "not ours any more"),
            Err(error) => {
                self.troubles.raise(About::Stopped(partition), chain(&error), "it is tried again by itself");
                self.look_later(partition, now.steady.saturating_add(AGAIN));
            }
        }
    }

    /// Looks again at partitions that could not begin.
    pub(super) fn look_again(&mut self, now: Now) {
        if self.starting.is_empty() {
            return;
        }
        let due = self.starting.iter().filter(|(_, one)| one.again.is_some_and(|at| at <= now.steady));
        let due: Vec<_> = due.map(|(partition, _)| *partition).collect();
        if !due.is_empty() {
            self.look(due);
        }
    }

    pub(super) fn look_later(&mut self, partition: i32, at: Duration) {
        self.starting.insert(partition, Starting { look: 0, again: Some(at) });
    }

    /// The offset we read at is no longer there.
    pub(super) fn out_of_range(&mut self, partition: i32, now: Now) {
        let position = self.flow.position(partition);
        warn!(partition, position, "the offset to read next is not there");
        self.turns.remove(&partition);
        self.abandon(partition);
        self.look_later(partition, now.steady);
    }

    /// The group wants partitions back: nothing new of them starts, what runs may end.
    pub(super) fn revoked(&mut self, partitions: Vec<i32>, now: Now) {
        info!(?partitions, "revoked");
        for partition in &partitions {
            self.starting.remove(partition);
            self.flow.drain(*partition);
        }
        let deadline = now.steady.saturating_add(self.spec.settled.settled.drain_timeout);
        self.giving_up.push(GivingUp { partitions, deadline });
        self.saving.hurry(now);
    }

    /// Gives up what is drained and saved, or has had its time.
    pub(super) fn give_up(&mut self, now: Now) {
        let mut waiting = Vec::new();
        for giving_up in std::mem::take(&mut self.giving_up) {
            let is_saved = |partition: &i32| {
                self.flow.is_drained(*partition) && self.saving.is_saved(*partition, &self.flow)
            };
            let saving = giving_up.partitions.iter().any(|partition| self.saving.is_saving(*partition));
            let over = giving_up.partitions.iter().all(is_saved) || now.steady >= giving_up.deadline;
            // An open transaction ends first: its offsets must not land once the partition is another's.
            if !over || saving {
                waiting.push(giving_up);
                continue;
            }
            for partition in &giving_up.partitions {
                self.abandon(*partition);
            }
            if let Err(error) = self.consumer.give_up(&giving_up.partitions) {
                debug!(error = chain(&error), "not given up");
            }
            info!(partitions = ?giving_up.partitions, "given up");
        }
        self.giving_up = waiting;
    }

    /// When the next partitions are given up at the latest, unless something of them is being saved.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let is_saving =
            |one: &&GivingUp| one.partitions.iter().any(|partition| self.saving.is_saving(*partition));
        self.giving_up.iter().filter(|one| !is_saving(one)).map(|one| one.deadline).min()
    }

    /// Forgets a partition and cuts off what still runs of it.
    pub(super) fn abandon(&mut self, partition: i32) {
        self.starting.remove(&partition);
        self.turns.remove(&partition);
        let now = self.clock.now();
        let running = self.flow.abandon(partition);
        if !running.is_empty() {
            for (id, slot) in self.attempts.cut_off(&running.into_iter().collect()) {
                self.flow.handled(id, slot, Ok(()), now);
            }
        }
        let flow = &self.flow;
        self.burials.forget(|id| flow.ticket(id).is_none());
        self.saving.forget(partition);
        self.troubles.forget(partition);
    }
}

async fn find(
    consumer: &Consumer,
    partitions: &[i32],
    start: Start,
    accept_loss: bool,
    tag: &str,
) -> Vec<(i32, Found)> {
    let known = async {
        let count = consumer.partitions().await?;
        let all: Vec<_> = (0..count.max(partitions.iter().max().map_or(0, |most| most + 1))).collect();
        consumer.committed(&all, ANSWER).await
    };
    let committed = match known.await {
        Ok(committed) => committed,
        Err(error) => {
            let what = chain(&error);
            return partitions.iter().map(|partition| (*partition, Err(what.clone()))).collect();
        }
    };
    let ran_before = committed.iter().any(|one| one.offset.is_some());
    let known_partitions = committed.iter().filter_map(|one| Tag::read(&one.metadata)?.partitions).min();
    // Side by side: one that nobody leads now does not keep the others waiting.
    let looks = partitions.iter().map(|partition| {
        let one = committed.iter().find(|one| one.partition == *partition);
        let committed = one.and_then(|one| one.offset);
        let of_another_topic = one.is_some_and(|one| is_of_another(&one.metadata, tag));
        let came_later = known_partitions.map_or(ran_before, |known| *partition >= known);
        async move {
            let bounds = consumer.bounds(*partition).await;
            let at_time = match start {
                Start::At(time) if committed.is_none() => consumer.offset_at(*partition, time).await,
                Start::At(_) | Start::Earliest | Start::Latest => Ok(None),
            };
            let place = bounds.and_then(|bounds| {
                let known = Known { committed, of_another_topic, came_later, bounds, at_time: at_time? };
                Ok(place(known, start, accept_loss))
            });
            (*partition, place.map_err(|error| chain(&error)))
        }
    });
    futures_util::future::join_all(looks).await
}

/// What we commit beside an offset.
struct Tag<'a> {
    topic_id: &'a str,
    partitions: Option<i32>,
}

impl<'a> Tag<'a> {
    fn read(metadata: &'a str) -> Option<Self> {
        let mut words = metadata.strip_prefix(super::saving::TAG)?.split_whitespace();
        let topic_id = words.next()?;
        Some(Self { topic_id, partitions: words.next().and_then(|count| count.parse().ok()) })
    }
}

/// Whether offsets were committed by us, and for a topic with another id.
fn is_of_another(metadata: &str, tag: &str) -> bool {
    match (Tag::read(metadata), Tag::read(tag)) {
        (Some(theirs), Some(ours)) => theirs.topic_id != ours.topic_id,
        _ => false,
    }
}
