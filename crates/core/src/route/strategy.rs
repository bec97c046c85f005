//! Where a record waits that is set aside, and which topic that means.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Reason, Route};
use crate::buckets::{BadWalk, Buckets};
use crate::policy::Policy;
use crate::time::Timestamp;
use crate::topic::{self, BadTopic, Purpose, Topic};

/// Where records wait that are set aside. Topic names are derived once, so that routing cannot fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// On the shelf: one topic, any delay, order kept.
    Shelf,
    /// In a table of PostgreSQL.
    Postgres,
    /// In a topic for each delay of the policy.
    Ladder(BTreeMap<Duration, Topic>),
    /// In one topic, from which records go back.
    Return(Topic),
    /// In the shared topics of the delay service.
    Service {
        /// The bucket topics, by their delays.
        buckets: BTreeMap<Duration, Topic>,
        /// Where a record goes whose wait is shorter than every bucket.
        back: Topic,
    },
}

/// A strategy that cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStrategy {
    /// A name that Kafka refuses.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// A delay that the buckets cannot reach.
    #[error(transparent)]
    Walk(#[from] BadWalk),
}

impl Strategy {
    /// A ladder with a rung for each delay of `policy`; equal delays share one.
    pub fn ladder(source: &Topic, group: &str, policy: &Policy) -> Result<Self, BadStrategy> {
        let rungs = policy
            .distinct_delays()
            .map(|delay| Ok((delay, topic::derived(source, group, Purpose::Rung(delay))?)));
        Ok(Self::Ladder(rungs.collect::<Result<_, BadTopic>>()?))
    }

    /// One retry topic.
    pub fn one_topic(source: &Topic, group: &str) -> Result<Self, BadStrategy> {
        Ok(Self::Return(topic::derived(source, group, Purpose::Retry)?))
    }

    /// The shared buckets, if they can reach every delay of `policy`.
    pub fn service(
        source: &Topic,
        group: &str,
        buckets: &Buckets,
        policy: &Policy,
    ) -> Result<Self, BadStrategy> {
        for delay in policy.distinct_delays() {
            buckets.walk(delay)?;
        }
        if policy.jitter().is_some() {
            buckets.reach(policy.max_delay())?;
        }
        let topics = buckets.delays().iter().map(|delay| Ok((*delay, topic::bucket(*delay)?)));
        let back = topic::derived(source, group, Purpose::Return)?;
        Ok(Self::Service { buckets: topics.collect::<Result<_, BadTopic>>()?, back })
    }

    /// The wait that setting aside for `wait` really means: a ladder has only its rungs.
    pub(super) fn rounded(&self, wait: Duration) -> Duration {
        match self {
            Self::Ladder(rungs) => rungs.range(wait..).next().map_or(wait, |(rung, _)| *rung),
            Self::Shelf | Self::Postgres | Self::Return(_) | Self::Service { .. } => wait,
        }
    }

    pub(super) fn set_aside(&self, wait: Duration, now: Timestamp) -> Route {
        let due = now.plus(wait);
        let topic = match self {
            Self::Shelf | Self::Postgres => return Route::Shelve { due },
            Self::Return(topic) => Some(topic),
            // Longer than the longest rung: it is the last to hold the record, and still never early.
            Self::Ladder(rungs) => {
                rungs.range(wait..).next().or_else(|| rungs.last_key_value()).map(|(_, rung)| rung)
            }
            Self::Service { buckets, back } => {
                Some(buckets.range(..=wait).next_back().map_or(back, |(_, topic)| topic))
            }
        };
        match topic {
            Some(topic) => Route::Forward { topic: topic.clone(), due },
            // A ladder without rungs has a policy without delays, which is never asked to wait.
            None => Route::Bury(Reason::Exhausted),
        }
    }
}
