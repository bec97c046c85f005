//! The topics while the worker runs: a source that was made anew, or has more partitions than before.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::flow::{ByDue, Flow, Now};
use redrive_kafka::TopicId;
use tracing::info;

use super::News;
use super::engine::{Engine, chain};
use super::troubles::About;
use crate::topics;

/// How often the topics are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// When they are looked at first: by then the group has given out its partitions.
const FIRST: Duration = Duration::from_secs(5);

/// When the topics are looked at next; never while someone is looking.
#[derive(Default)]
pub(crate) struct Watch {
    next: Option<Duration>,
    is_looking: bool,
    partitions: Option<i32>,
    /// Where each partition ended when it was last looked at.
    ends: Option<BTreeMap<i32, i64>>,
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
    /// Looks at the topics when it is time.
    pub(super) fn watch(&mut self, now: Now) {
        let next = *self.watch.next.get_or_insert(now.steady.saturating_add(FIRST));
        if self.watch.is_looking || now.steady < next || self.is_stopping() {
            return;
        }
        self.watch.is_looking = true;
        self.watch.next = Some(now.steady.saturating_add(LOOK));
        self.watch.by_due = self.flow.waiting_by_due(now);
        let (spec, news, known) = (self.spec.clone(), self.news.clone(), self.watch.partitions);
        let (consumer, ours) = (self.consumer.clone(), self.flow.partitions().collect::<Vec<_>>());
        tokio::spawn(async move {
            let settled = &spec.settled.settled;
            let found = spec.admin.outline(std::slice::from_ref(&settled.topic)).await;
            // A broker that cannot be asked says nothing about topics; that it cannot is told elsewhere.
            let Ok(found) = found else {
                let _ = news.send(News::Watched(Watched { source: None, unready: None, ends: None }));
                return;
            };
            let source = found.get(&settled.topic).map(|topic| (topic.id, topic.partitions));
            let grown = source.zip(known).is_some_and(|((_, now), before)| now > before);
            let unready = match grown {
                true => topics::ensure(&spec.admin, std::slice::from_ref(settled), &spec.mender).await.err(),
                false => None,
            };
            let unready = unready.map(|error| chain(&error));
            let ends = consumer.ends(ours).await.ok();
            let _ = news.send(News::Watched(Watched { source, unready, ends }));
        });
    }

    pub(super) fn watched(&mut self, watched: Watched) {
        self.watch.is_looking = false;
        self.watch.ends = watched.ends.or(self.watch.ends.take());
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
                if self.watch.partitions.is_some_and(|before| before < partitions) {
                    info!(
                        partitions,
                        "the source has more partitions; key order across the change is Kafka's"
                    );
                }
                self.watch.partitions = Some(partitions);
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
