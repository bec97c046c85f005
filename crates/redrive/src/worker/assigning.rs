//! Partitions that come and go: where they begin, and how they are given up.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::Topic;
use redrive_core::flow::{Located, Now};
use redrive_core::settings::Start;
use redrive_core::shelf::{Identity, Missing};
use redrive_kafka::{Consumer, Error as KafkaError};
use tracing::{debug, info, warn};

use super::News;
use super::engine::{Engine, chain};
use super::place::{Known, Place, place};
use super::troubles::About;

/// How long the broker may take to say where a partition begins.
const ANSWER: Duration = Duration::from_secs(10);
/// When to look again at a partition that could not begin.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// How long a partition waits for others to begin with.
const TOGETHER: Duration = Duration::from_millis(250);

/// What is told of a shelf that is empty although the group has run with it.
const LOST: &str = "its shelf is empty, although the group has run with one: it was deleted or truncated, and what \
                    waited there is gone";

/// Where a partition begins, or what kept us from finding out.
pub(crate) type Found = Result<Place, String>;

/// A partition that has not begun.
pub(crate) struct Starting {
    /// Which look at it counts: an answer to an earlier one may be of an earlier assignment, and old.
    look: u64,
    /// When to look again.
    pub(crate) again: Option<Duration>,
}

/// Partitions that begin together: one that begins later waits until what is being fetched of the others comes, which
/// may take long where they have nothing new; and so does what is asked about it.
#[derive(Default)]
pub(crate) struct Together {
    /// Each with the offset it begins at.
    places: BTreeMap<i32, i64>,
    /// When they begin at the latest.
    pub(super) at: Option<Duration>,
}

/// Partitions that the group wants back, all at once.
pub(crate) struct GivingUp {
    pub(crate) partitions: Vec<i32>,
    /// When what still runs is cut off.
    pub(crate) deadline: Duration,
}

impl Together {
    fn forget(&mut self, partition: i32) {
        self.places.remove(&partition);
        self.at.take_if(|_| self.places.is_empty());
    }
}

impl Engine {
    /// Partitions are ours: their shelves say where they are.
    pub(super) fn assigned(&mut self, partitions: Vec<i32>) {
        info!(?partitions, "assigned");
        let now = self.clock.now();
        self.ours.extend(&partitions);
        for partition in partitions {
            self.take_over(partition, now);
        }
    }

    /// A shelf is ours, and says how far its source has come: find out where that begins.
    pub(super) fn look(&mut self, partition: i32, mark: Option<i64>, missing: Option<Missing>) {
        self.looks += 1;
        let look = self.looks;
        self.starting.insert(partition, Starting { look, again: None });
        let (consumer, news) = (self.consumer.clone(), self.news.clone());
        let (start, accept_loss) = (self.spec.settled.settled.start, self.spec.accept_loss);
        let tag = self.saving.tag().to_owned();
        // Whoever knows that nothing lived on it can do without.
        let register = self.register();
        let may_be_lost = !accept_loss && !self.shelves.is_spotless(partition);
        let cut_off = missing.map(|missing| cut_off(missing, &self.shelves.topic));
        if let Some(what) = cut_off.as_ref().filter(|_| !may_be_lost) {
            warn!(partition, what, "it goes on with what is left");
        }
        tokio::spawn(async move {
            let found = find(&consumer, partition, mark, start, accept_loss, &tag).await;
            let found = found.map(|(place, is_lost)| {
                let lost = cut_off.or(is_lost.then(|| LOST.to_owned()));
                lost.filter(|_| may_be_lost).map_or(place, Place::Gap)
            });
            let damaged = match &register {
                Some(register) if found.is_ok() => Some(register.read(partition).await),
                _ => None,
            };
            let found = match damaged {
                Some(Ok(offsets)) => {
                    let _ = news.send(News::Damaged { partition, offsets });
                    found
                }
                Some(Err(error)) => Err(format!("its letters cannot be read: {}", chain(&error))),
                None => found,
            };
            let _ = news.send(News::Found { look, partition, found });
        });
    }

    pub(super) fn found(&mut self, look: u64, partition: i32, found: Found, now: Now) {
        // Revoked or lost while we asked, and maybe ours again since.
        let is_asked = self.starting.get(&partition).is_some_and(|starting| starting.look == look);
        if !is_asked || self.is_stopping() {
            return;
        }
        match found {
            Ok(Place::Committed(_)) => {
                self.starting.remove(&partition);
                self.flow.located(partition, Located::GoesOn, now);
            }
            Ok(Place::New(offset)) => {
                self.starting.remove(&partition);
                self.flow.located(partition, Located::BeginsAt(offset), now);
            }
            Ok(Place::Gap(what)) => {
                let what = format!("partition {partition} does not begin: {what}");
                let remedy = "find out what happened; to go on without what is gone, start with --accept-loss \
                              (in code: Worker::accept_loss)";
                self.troubles.raise(About::Stopped(partition), what, remedy);
            }
            Err(what) => {
                let what = format!("partition {partition} does not begin yet: {what}");
                self.abandon(partition);
                self.troubles.raise(About::Stopped(partition), what, "it is tried again by itself");
                self.look_later(partition, now.steady.saturating_add(AGAIN));
            }
        }
    }

    pub(super) fn foreign(&mut self, partition: i32, theirs: &Identity) {
        let settled = &self.spec.settled.settled;
        let is_ours = theirs.topic == settled.topic.as_str() && theirs.group == settled.group;
        if is_ours && self.spec.accept_loss {
            self.clear_shelf(partition);
            return;
        }
        let (shelf, topic) = (&settled.shelf, &settled.topic);
        let (what, remedy) = match is_ours {
            true => (
                format!(
                    "partition {partition} does not begin: {topic} was deleted and made anew, and {shelf} holds what \
                     waits of the earlier one"
                ),
                format!(
                    "make sure that nothing in {shelf} is wanted (redrive delayed list), then start with \
                     --accept-loss, which clears it (in code: Worker::accept_loss)"
                ),
            ),
            false => (
                format!(
                    "partition {partition} does not begin: {shelf} belongs to the group {} of the topic {}",
                    theirs.group, theirs.topic
                ),
                "give one of the two another name: topics.shelf".to_owned(),
            ),
        };
        self.abandon(partition);
        self.troubles.raise(About::Stopped(partition), what, &remedy);
    }

    /// The source of a partition may be read: together with the others that were assigned with it.
    pub(super) fn begin(&mut self, partition: i32, offset: i64, now: Now) {
        self.starting.remove(&partition);
        self.turns.insert(partition, None);
        self.saving.begin(partition);
        self.together.places.insert(partition, offset);
        // Nobody turns a clock for it.
        let wait = if self.clock.is_turned() { Duration::ZERO } else { TOGETHER };
        self.together.at.get_or_insert(now.steady.saturating_add(wait));
    }

    /// Whether it is time: all that may begin are there, or the first of them has waited long enough.
    pub(super) fn begins(&self, now: Now) -> bool {
        let is_awaited = |partition: &i32| {
            !self.turns.contains_key(partition) && !self.troubles.has(About::Stopped(*partition))
        };
        self.together.at.is_some_and(|at| at <= now.steady || !self.ours.iter().any(is_awaited))
    }

    /// Has those begin that are there.
    pub(super) fn begin_gathered(&mut self, now: Now) {
        if self.together.places.is_empty() {
            return;
        }
        let Together { places, .. } = std::mem::take(&mut self.together);
        let list: Vec<_> = places.iter().map(|(partition, offset)| (*partition, *offset)).collect();
        for (partition, begun) in self.consumer.begin_all(&list) {
            match begun {
                Ok(turn) => {
                    info!(partition, offset = places.get(&partition), "begun");
                    self.troubles.clear(About::Stopped(partition));
                    self.turns.insert(partition, Some(turn));
                }
                Err(error) if error.group_moved_on() => debug!(partition, %error, "not ours any more"),
                Err(error) => {
                    let what = chain(&error);
                    self.abandon(partition);
                    self.troubles.raise(About::Stopped(partition), what, "it is tried again by itself");
                    self.look_later(partition, now.steady.saturating_add(AGAIN));
                }
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
        for partition in due {
            self.take_over(partition, now);
        }
    }

    /// Unless it is not ours any more: an answer that comes after that must not make this member claim what is another's.
    pub(super) fn look_later(&mut self, partition: i32, at: Duration) {
        if !self.ours.contains(&partition) {
            return;
        }
        self.starting.insert(partition, Starting { look: 0, again: Some(at) });
    }

    /// The offset we read at is no longer there.
    pub(super) fn out_of_range(&mut self, partition: i32, now: Now) {
        let position = self.flow.position(partition);
        warn!(partition, position, "the offset to read next is not there");
        self.take_over_again(partition, "its source is out of range", now);
    }

    /// The group wants partitions back: nothing new of them starts, what runs may end.
    pub(super) fn revoked(&mut self, partitions: Vec<i32>, now: Now) {
        info!(?partitions, "revoked");
        for partition in &partitions {
            self.ours.remove(partition);
            self.starting.remove(partition);
            self.together.forget(*partition);
            self.flow.drain(*partition);
        }
        let deadline = now.steady.saturating_add(self.spec.settled.settled.drain_timeout);
        self.giving_up.push(GivingUp { partitions, deadline });
        self.saving.hurry(now);
    }

    /// Partitions may be another's already: what runs of them is cut off.
    pub(super) fn lost(&mut self, partitions: &[i32]) {
        warn!(?partitions, "partitions were lost: what runs is cut off, nothing is committed");
        for partition in partitions {
            self.ours.remove(partition);
            self.abandon(*partition);
        }
        // They may be ours again before the rest is given up.
        for giving_up in &mut self.giving_up {
            giving_up.partitions.retain(|partition| !partitions.contains(partition));
        }
        self.giving_up.retain(|giving_up| !giving_up.partitions.is_empty());
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
        self.together.forget(partition);
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
        self.shelves.forget(partition);
        self.originals.forget(partition);
        self.clearing.forget(partition);
        self.undecodable.forget(partition);
        self.troubles.forget(partition);
    }
}

/// What is told of a shelf that somebody else has cut.
fn cut_off(missing: Missing, shelf: &Topic) -> String {
    let Missing { from, to } = missing;
    let from = from.map_or(String::new(), |from| format!("from offset {from} "));
    format!(
        "its shelf was cut by somebody else: what stood in {shelf} {from}to {} is gone, and with it what waited there",
        to - 1
    )
}

/// Where a partition begins, and whether its shelf is lost.
async fn find(
    consumer: &Consumer,
    partition: i32,
    mark: Option<i64>,
    start: Start,
    accept_loss: bool,
    tag: &str,
) -> Result<(Place, bool), String> {
    let find = async {
        let count = consumer.partitions().await?.max(partition + 1);
        let committed = consumer.committed(&(0..count).collect::<Vec<_>>(), ANSWER).await?;
        let bounds = consumer.bounds(partition).await?;
        let one = committed.iter().find(|one| one.partition == partition);
        let one_tag = one.and_then(|one| Tag::read(&one.metadata));
        let offset = one.and_then(|one| one.offset);
        // Somebody else's commit is an operator's: he wants the group there.
        let reset = offset.filter(|_| one_tag.is_none());
        let at_time = match start {
            Start::At(time) if reset.or(mark).or(offset).is_none() => {
                consumer.offset_at(partition, time).await?
            }
            Start::At(_) | Start::Earliest | Start::Latest => None,
        };
        let known_partitions = committed.iter().filter_map(|one| Tag::read(&one.metadata)?.partitions).min();
        let ran_before = committed.iter().any(|one| one.offset.is_some());
        let known = Known {
            committed: reset.or(mark).or(offset),
            of_another_topic: one.is_some_and(|one| is_of_another(&one.metadata, tag)),
            came_later: known_partitions.map_or(ran_before, |known| partition >= known),
            bounds,
            at_time,
        };
        // A log that begins is written before anything is committed, and is never cut as a whole.
        let is_lost = mark.is_none() && one_tag.is_some_and(|tag| tag.has_shelf);
        let place = match place(known, start, accept_loss) {
            // What the log of the shelf does not say yet is written there first.
            Place::Committed(offset) if reset.is_some() || mark.is_none() => Place::New(offset),
            place => place,
        };
        Ok::<_, KafkaError>((place, is_lost))
    };
    find.await.map_err(|error| chain(&error))
}

/// What we commit beside an offset.
struct Tag<'a> {
    topic_id: &'a str,
    partitions: Option<i32>,
    has_shelf: bool,
}

impl<'a> Tag<'a> {
    fn read(metadata: &'a str) -> Option<Self> {
        let mut words = metadata.strip_prefix(super::saving::TAG)?.split_whitespace();
        let topic_id = words.next()?;
        let partitions = words.next().and_then(|count| count.parse().ok());
        Some(Self { topic_id, partitions, has_shelf: words.next() == Some("shelf") })
    }
}

/// Whether offsets were committed by us, and for a topic with another id.
fn is_of_another(metadata: &str, tag: &str) -> bool {
    match (Tag::read(metadata), Tag::read(tag)) {
        (Some(theirs), Some(ours)) => theirs.topic_id != ours.topic_id,
        _ => false,
    }
}
