//! Tombstones into the topics that letters came from, where those are compacted: for records that nobody wants any
//! more. Only for a record that is still the last of its key: a tombstone would remove a later one with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use redrive::Settings;
use redrive::topics::is_compacted;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Outgoing, Passage, Publisher, Publishing, read_through};

use crate::replay::{Candidate, Error};

/// What becomes of the records that letters came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// The records that get a tombstone, and their keys.
    pub tombstones: BTreeMap<Origin, Bytes>,
    /// How many get none, and why.
    pub not: BTreeMap<NoTombstone, u64>,
}

/// Why a record gets no tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoTombstone {
    /// Its letter does not say where it came from.
    NoOrigin,
    /// Its topic is not compacted, or not there.
    NotCompacted,
    /// It is gone from there, and its key may be another record's.
    Gone,
    /// It has no key.
    NoKey,
    /// A later record has its key.
    Later,
    /// It is a tombstone itself.
    IsOne,
}

/// What is found in a source on the way to its end.
#[derive(Default)]
struct Found {
    wanted: HashSet<Origin>,
    /// Keys of records that are wanted, the last of each.
    keys: HashMap<(i32, Bytes), Origin>,
    not: HashMap<Origin, NoTombstone>,
}

impl Sources {
    /// Of these letters. Their sources are read from end to end.
    pub async fn of(settings: &Settings, letters: &[Candidate]) -> Result<Self, Error> {
        let mut sources = Self::default();
        let mut topics: BTreeMap<Topic, BTreeSet<Origin>> = BTreeMap::new();
        for letter in letters {
            match &letter.origin {
                Some(origin) => drop(topics.entry(origin.topic.clone()).or_default().insert(origin.clone())),
                None => sources.leave(NoTombstone::NoOrigin),
            }
        }
        let names: Vec<Topic> = topics.keys().cloned().collect();
        let described = Admin::new(settings)?.describe(&names).await?;
        for (topic, origins) in topics {
            if !described.get(&topic).is_some_and(is_compacted) {
                origins.iter().for_each(|_| sources.leave(NoTombstone::NotCompacted));
                continue;
            }
            let partitions: BTreeSet<i32> = origins.iter().map(|origin| origin.partition).collect();
            let found = Found { wanted: origins.iter().cloned().collect(), ..Found::default() };
            let partitions = partitions.into_iter().collect();
            let found = read_through(settings, topic, partitions, found, Found::pass).await?;
            found.wanted.iter().for_each(|_| sources.leave(NoTombstone::Gone));
            found.not.values().for_each(|why| sources.leave(*why));
            sources.tombstones.extend(found.keys.into_iter().map(|((_, key), origin)| (origin, key)));
        }
        Ok(sources)
    }

    fn leave(&mut self, why: NoTombstone) {
        *self.not.entry(why).or_default() += 1;
    }

    /// Writes the tombstones.
    pub async fn write(&self, settings: &Settings) -> Result<(), Error> {
        let publisher = Publisher::new(settings, &Publishing::default())?;
        let records = self.tombstones.iter().map(|(origin, key)| {
            Outgoing::to(origin.topic.clone()).partition(origin.partition).key(key.clone())
        });
        let sent: Vec<_> = records.map(|record| publisher.publish(record)).collect();
        for sent in sent {
            sent.await?;
        }
        Ok(())
    }

    /// How many go into which topic.
    #[must_use]
    pub fn by_topic(&self) -> BTreeMap<&Topic, u64> {
        self.tombstones.keys().fold(BTreeMap::new(), |mut counts, origin| {
            *counts.entry(&origin.topic).or_default() += 1;
            counts
        })
    }
}

impl Found {
    fn pass(&mut self, passage: Passage) {
        let Passage::Record(record) = passage else { return };
        let place = record.key.clone().map(|key| (record.at.partition, key));
        if let Some(earlier) = place.as_ref().and_then(|place| self.keys.remove(place)) {
            self.not.insert(earlier, NoTombstone::Later);
        }
        if !self.wanted.remove(&record.at) {
            return;
        }
        match (place, record.value) {
            (None, _) => drop(self.not.insert(record.at, NoTombstone::NoKey)),
            (Some(_), None) => drop(self.not.insert(record.at, NoTombstone::IsOne)),
            (Some(place), Some(_)) => drop(self.keys.insert(place, record.at)),
        }
    }
}

impl fmt::Display for NoTombstone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoOrigin => "they do not say where they came from",
            Self::NotCompacted => "their topic is not compacted",
            Self::Gone => "they are gone from their topic",
            Self::NoKey => "they have no key",
            Self::Later => "a later record of their topic has their key, and would be removed, too",
            Self::IsOne => "they are tombstones themselves",
        })
    }
}
