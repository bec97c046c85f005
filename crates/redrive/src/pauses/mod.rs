//! Pauses that hold on every instance and across restarts: records of the compacted topic `redrive.state`, the
//! newest of a subscription being what is so now.
//!
//! Tools write them with [`set`]; a worker that heeds them reads all of them before it starts, and follows
//! the topic from there on.

mod follow;
mod record;

use std::collections::BTreeMap;

use redrive_core::Topic;
use redrive_kafka::{Admin, Error, Passage, Publisher, Publishing, Refused, Settings, read_through};

use crate::status::Pause;
pub(crate) use follow::{Known, follow};
pub use record::Wanted;

/// The topic of what holds for all instances.
pub const TOPIC: &str = "redrive.state";

/// Replicas, where the cluster has so many brokers.
const REPLICAS: usize = 3;

/// The topic of what holds for all instances.
#[must_use]
pub fn topic() -> Topic {
    TOPIC.parse().expect("Kafka accepts it")
}

/// What the topic must have: only the newest record of each key counts, and that is kept.
#[must_use]
pub fn topic_settings() -> BTreeMap<String, String> {
    BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())])
}

/// Makes the topic unless it is there.
pub async fn prepare(admin: &Admin) -> Result<(), Error> {
    let topic = topic();
    if !admin.outline(std::slice::from_ref(&topic)).await?.is_empty() {
        return Ok(());
    }
    let replication = i16::try_from(admin.cluster().await?.brokers.clamp(1, REPLICAS)).unwrap_or(1);
    match admin.create(&topic, 1, replication, &topic_settings()).await {
        Err(error) if error.refusal().is_some_and(Refused::is_there_already) => Ok(()),
        result => result,
    }
}

/// Pauses a subscription on every instance, or lets it go on. It is written when this returns; every
/// instance that runs hears of it within moments.
pub async fn set(settings: &Settings, wanted: &Wanted) -> Result<(), Error> {
    prepare(&Admin::new(settings)?).await?;
    let publisher = Publisher::new(settings, &Publishing::default())?;
    publisher.publish(wanted.write()).await.map(drop)
}

/// What is wanted of subscriptions, as far as somebody ever wanted something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pauses {
    wanted: BTreeMap<(Topic, String), Option<Pause>>,
    /// Where each partition of the topic ended.
    ends: BTreeMap<i32, i64>,
}

impl Pauses {
    /// Reads all of them. Where there is no such topic nobody ever wanted anything.
    pub async fn read(settings: &Settings, admin: &Admin) -> Result<Self, Error> {
        let topic = topic();
        let found = admin.outline(std::slice::from_ref(&topic)).await?;
        let Some(state) = found.get(&topic) else { return Ok(Self::default()) };
        let partitions = (0..state.partitions).collect();
        read_through(settings, topic, partitions, Self::default(), |pauses, passage| match passage {
            Passage::Begin { partition, to, .. } => drop(pauses.ends.insert(partition, to)),
            Passage::Record(record) => drop(pauses.take(Wanted::read(&record))),
        })
        .await
    }

    /// Who paused a subscription, if somebody did.
    #[must_use]
    pub fn of(&self, topic: &Topic, group: &str) -> Option<&Pause> {
        self.wanted.get(&(topic.clone(), group.to_owned()))?.as_ref()
    }

    /// All that are paused: what they consume, by which group, and who paused them.
    pub fn all(&self) -> impl Iterator<Item = (&Topic, &str, &Pause)> {
        self.wanted
            .iter()
            .filter_map(|((topic, group), pause)| Some((topic, group.as_str(), pause.as_ref()?)))
    }

    /// Takes what came last; says whether it is one of ours.
    fn take(&mut self, wanted: Option<Wanted>) -> bool {
        let Some(Wanted { topic, group, pause }) = wanted else { return false };
        self.wanted.insert((topic, group), pause);
        true
    }
}
