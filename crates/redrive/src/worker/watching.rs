//! The topics while the worker runs: a source that was made anew, or has more partitions than before.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::flow::{ByDue, Flow, Now};
use redrive_kafka::{Batch, TopicId};
use tracing::info;

use super::News;
use super::engine::{Engine, chain};
use super::troubles::About;
use crate::topics;

/// How often the topics are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// When they are looked at first: by then the group has given out its partitions.
pub(super) const FIRST: Duration = Duration::from_secs(5);

/// Of so many looks at a source that rests one asks where it ends; not all subscriptions at the same time. The others
/// take what the last fetch said, which costs nothing.
const ASKS: u32 = 6;

/// After such a silence it is looked first whether what comes is of the same topic: one that is deleted and made anew
/// under its name is silent in between, and its offsets mean other records.
const SILENCE: Duration = Duration::from_secs(1);

/// When the topics are looked at next; never while someone is looking.
#[derive(Default)]
pub(crate) struct Watch {
    /// When records last came that were certainly of the source.
    heard: Option<Duration>,
    /// What came since, until that is certain.
    unsure: Vec<Batch>,
    next: Option<Duration>,
    is_looking: bool,
    /// How many partitions the source had when the other topics were last found to fit it.
    partitions: i32,
    /// Where each partition ended when it was last looked at.
    ends: Option<BTreeMap<i32, i64>>,
    looks: u32,
    /// Whether something was seen that has not been told.
    pub(super) is_news: bool,
    /// What waited then, by when it is due.
    pub(super) by_due: ByDue,
}

/// What was seen.
pub(crate) struct Watched {
    /// The source, if it is there.
    source: Option<(Option<TopicId>, i32)>,
    /// What keeps the other topics from being as they have to be.
    unready: Option<String>,
    /// Where the partitions that are ours end, if the broker said so.
    ends: Option<BTreeMap<i32, i64>>,
}

impl Watch {
    /// Of topics that were found to fit a source with so many partitions.
    pub(super) fn of(partitions: i32) -> Self {
        Self { partitions, ..Self::default() }
    }

    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.next.filter(|_| !self.is_looking)
    }

    /// How many records are not complete of the partitions that are ours, as far as it is known.
    pub(super) fn lag(&self, flow: &Flow) -> Option<u64> {
        let ends = self.ends.as_ref()?;
        let behind = |(partition, mark): (i32, i64)| {
            let end = ends.get(&partition)?;
            u64::try_from(end.saturating_sub(mark)).ok()
        };
        Some(flow.marks().filter_map(behind).sum())
    }
}

impl Engine {
    /// Whether it is being looked whether what came is of the source; nothing more is taken meanwhile.
    pub(super) fn is_unsure(&self) -> bool {
        !self.watch.unsure.is_empty()
    }

    /// Records came. Says whether they are certainly of the source; otherwise they wait until that is known.
    pub(super) fn is_sure(&mut self, batch: Batch, now: Now) -> Option<Batch> {
        let heard = self.watch.heard.is_some_and(|heard| now.steady.saturating_sub(heard) < SILENCE);
        if self.spec.topic_id.is_none() || heard && !self.is_unsure() {
            self.watch.heard = Some(now.steady);
            return Some(batch);
        }
        if !self.is_unsure() {
            let (spec, news) = (self.spec.clone(), self.news.clone());
            tokio::spawn(async move {
                let found = spec.outlook.of_since(&spec.settled.settled.topic, now.steady).await;
                // A broker that cannot be asked says nothing about topics.
                let id = found.map(|found| found.and_then(|topic| topic.id));
                let _ = news.send(News::Sure(id));
            });
        }
        self.watch.unsure.push(batch);
        None
    }

    /// What was seen of the source since records came: `None` if nobody could be asked, or nothing if it is not there.
    pub(super) fn sure(&mut self, id: Option<Option<TopicId>>, now: Now) {
        let unsure = std::mem::take(&mut self.watch.unsure);
        match id {
            Some(Some(id)) if Some(id) != self.spec.topic_id => self.made_anew(),
            Some(_) | None => {
                self.watch.heard = Some(now.steady);
                for batch in unsure {
                    self.records(batch);
                }
            }
        }
    }

    /// Looks at the topics when it is time.
    pub(super) fn watch(&mut self, now: Now) {
        let next = *self.watch.next.get_or_insert(now.steady.saturating_add(FIRST));
        if self.watch.is_looking || now.steady < next || self.is_stopping() {
            return;
        }
        self.watch.is_looking = true;
        // Those of all subscriptions at the same moment: to wake once for all of them costs the least.
        let since_last = Duration::from_millis(now.steady.as_millis() as u64 % LOOK.as_millis() as u64);
        self.watch.next = Some(now.steady.saturating_sub(since_last).saturating_add(LOOK));
        self.watch.by_due = self.flow.waiting_by_due(now);
        let (spec, news, known) = (self.spec.clone(), self.news.clone(), self.watch.partitions);
        let (consumer, ours) = (self.consumer.clone(), self.flow.partitions().collect::<Vec<_>>());
        self.watch.looks = self.watch.looks.wrapping_add(1);
        let is_asked =
            self.watch.looks == 1 || self.watch.looks % ASKS == self.spec.nth % ASKS || !self.rests();
        let known_ends = (!is_asked).then(|| self.known_ends()).flatten();
        tokio::spawn(async move {
            let settled = &spec.settled.settled;
            // A broker that cannot be asked says nothing about topics; that it cannot is told elsewhere.
            let Some(found) = spec.outlook.of(&settled.topic).await else {
                let _ = news.send(News::Watched(Watched { source: None, unready: None, ends: None }));
                return;
            };
            let source = found.map(|topic| (topic.id, topic.partitions));
            let grown = source.is_some_and(|(_, now)| now > known);
            let unready = match grown {
                true => topics::ensure(&spec.admin, std::slice::from_ref(settled), &spec.mender).await.err(),
                false => None,
            };
            let unready = unready.map(|error| chain(&error));
            let ends = match known_ends {
                Some(ends) => Some(ends),
                None => consumer.ends(ours).await.ok(),
            };
            let _ = news.send(News::Watched(Watched { source, unready, ends }));
        });
    }

    /// Whether nothing happens and nothing is wrong: no record is in memory, none waits, all is read.
    pub(super) fn rests(&self) -> bool {
        self.flow.is_idle() && self.troubles.is_empty() && self.starting.is_empty() && !self.flow.is_paused()
    }

    /// Where the partitions end by the last fetch, if all of them are complete there: an end that lies further
    /// may be one of a transaction that is not over, which only the broker knows.
    fn known_ends(&self) -> Option<BTreeMap<i32, i64>> {
        let marks: BTreeMap<i32, i64> = self.flow.marks().collect();
        let are_ends = |(partition, mark): (&i32, &i64)| self.consumer.known_end(*partition) == Some(*mark);
        (marks.len() == self.flow.partitions().count() && marks.iter().all(are_ends)).then_some(marks)
    }

    pub(super) fn watched(&mut self, watched: Watched) {
        self.watch.is_looking = false;
        if watched.ends.is_some() && watched.ends != self.watch.ends {
            self.watch.ends = watched.ends;
            self.watch.is_news = true;
        }
        let Some((id, partitions)) = watched.source else { return };
        self.troubles.clear(About::Kafka);
        if id.is_some() && self.spec.topic_id.is_some() && id != self.spec.topic_id {
            self.made_anew();
            return;
        }
        match watched.unready {
            Some(what) => {
                let what = format!("the source has {partitions} partitions now: {what}");
                self.troubles.raise(About::Topics, what, "redrive topics apply");
            }
            None => {
                if self.watch.partitions < partitions {
                    info!(
                        partitions,
                        "the source has more partitions; key order across the change is Kafka's"
                    );
                }
                self.watch.partitions = partitions;
                self.troubles.clear(About::Topics);
            }
        }
    }

    /// The topic was deleted and made anew: its offsets mean other records now.
    fn made_anew(&mut self) {
        let topic = &self.spec.settled.settled.topic;
        let what = format!("{topic} was deleted and made anew while it was consumed");
        let remedy =
            "make sure that nothing is missing, then restart with --accept-loss to begin the new topic";
        self.troubles.raise(About::Topics, what, remedy);
        for partition in self.turns.keys().copied().collect::<Vec<_>>() {
            self.abandon(partition);
            if let Err(error) = self.consumer.pause(partition) {
                info!(partition, error = chain(&error), "not paused");
            }
        }
        self.starting.clear();
    }
}
