//! The journal in Kafka: its topic, and all of it as it is read.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use redrive::{Clock, pauses};
use redrive_core::{Record, Topic};
use redrive_kafka::{
    Admin, Error as KafkaError, Passage, Refused, Settings, TransactionFailed, read_through,
};

use super::{Chain, Entry};
use crate::jobs::{Followed, Head, NoTurn, Unread};

/// The topic of what people did.
pub const TOPIC: &str = "redrive.journal";

/// Why a deed is not in the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Kafka did not do something.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// It could not be written.
    #[error("cannot write to {TOPIC}")]
    Write(#[from] TransactionFailed),
    /// What was written does not come back.
    #[error(transparent)]
    Unread(Unread),
}

impl From<NoTurn> for Error {
    fn from(error: NoTurn) -> Self {
        match error {
            NoTurn::Kafka(error) => Self::Kafka(error),
            NoTurn::Write(error) => Self::Write(error),
            NoTurn::Unread(error) => Self::Unread(error),
        }
    }
}

/// The topic of what people did.
#[must_use]
pub fn topic() -> Topic {
    TOPIC.parse().expect("Kafka accepts it")
}

/// What the topic must have: nothing is ever removed.
#[must_use]
pub fn topic_settings() -> BTreeMap<String, String> {
    let settings = [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Who writes here, as `user@host`.
#[must_use]
pub fn writer() -> String {
    let named = |names: &[&str]| {
        let found = names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        found.map(|name| name.replace('/', "_"))
    };
    let host = named(&["HOSTNAME"]).or_else(|| {
        let name = std::fs::read_to_string("/etc/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    });
    let user = named(&["REDRIVE_USER", "USER", "LOGNAME"]).unwrap_or_else(|| "somebody".to_owned());
    format!("{user}@{}", host.unwrap_or_else(|| "localhost".to_owned()))
}

/// Makes the topic unless it is there, like the topic of the state.
pub(super) async fn prepare(settings: &Settings) -> Result<(), KafkaError> {
    let admin = Admin::new(settings)?;
    pauses::prepare(&admin).await?;
    let (journal, state) = (topic(), pauses::topic());
    let found = admin.outline(&[journal.clone(), state.clone()]).await?;
    if found.contains_key(&journal) {
        return Ok(());
    }
    let replication = found.get(&state).map_or(1, |state| state.replication);
    match admin.create(&journal, 1, replication, &topic_settings()).await {
        Err(error) if error.refusal().is_some_and(Refused::is_there_already) => Ok(()),
        result => result,
    }
}

/// The journal as it is.
#[derive(Debug, Default)]
pub struct Journal {
    /// What can be read, in order, each with its offset.
    pub entries: Vec<(i64, Entry)>,
    /// Whether it is as it was written.
    pub chain: Chain,
}

impl Journal {
    /// Reads all of it; empty where nothing was ever written.
    pub async fn read(settings: &Settings) -> Result<Self, KafkaError> {
        let topic = topic();
        let found = Admin::new(settings)?.outline(std::slice::from_ref(&topic)).await?;
        match found.get(&topic) {
            Some(state) => {
                let partitions = (0..state.partitions).collect();
                read_through(settings, topic, partitions, Self::default(), Self::pass).await
            }
            None => Ok(Self::default()),
        }
    }

    /// Reads all of it, and the heads of its writers. An entry and its head are one transaction, and both are read one
    /// after the other: for a head that tells of the last entries it is waited so long, if it is not there yet.
    pub async fn verified(
        settings: &Settings,
        clock: &Clock,
        wait: Duration,
    ) -> Result<(Self, BTreeMap<String, Head>), KafkaError> {
        // The journal last: what is written between the two readings is not missing.
        let mut followed = Followed::read(settings).await?;
        let journal = Self::read(settings).await?;
        if followed.is_there() {
            followed.until(clock, wait, |state| journal.chain.is_confirmed(state.heads())).await?;
        }
        Ok((journal, followed.state.heads().clone()))
    }

    fn pass(&mut self, passage: Passage) {
        match passage {
            Passage::Begin { .. } => *self = Self::default(),
            Passage::Record(record) => self.take(&record),
        }
    }

    fn take(&mut self, record: &Record) {
        let writer = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default()).into_owned();
        let value = record.value.as_deref().unwrap_or_default();
        self.chain.take(record.at.offset, &writer, value);
        if let Ok((entry, _)) = Entry::read(value) {
            self.entries.push((record.at.offset, entry));
        }
    }
}
