//! Transactions: records and the offsets they come from become visible together, or not at all.
//!
//! One is run as a whole, on a blocking thread: begin, publish, wait for every confirmation, add the
//! offsets, commit. Whatever fails is undone before it is reported.

mod failed;
mod producer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_core::Topic;
use tokio::task::spawn_blocking;

pub use failed::TransactionFailed;

use crate::consume::{GroupMetadata, Mark, marked};
use crate::{Error, Outgoing, Publishing, Settings};
use producer::Producer;

/// How transactions are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transacting {
    /// After this time the broker undoes a transaction that nobody ends; nothing waits longer than that.
    pub timeout: Duration,
    /// The smallest of the limits of the topics that are written; librdkafka's megabyte if absent.
    pub max_message_bytes: Option<usize>,
}

impl Default for Transacting {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), max_message_bytes: None }
    }
}

/// Runs transactions under one transactional id, one after the other.
pub struct Transactions {
    settings: Settings,
    id: String,
    transacting: Transacting,
    /// Locked while a transaction runs, even if nobody waits for it any more.
    producer: Arc<Mutex<Producer>>,
}

impl Transactions {
    /// Takes the id: whoever had it before is fenced off, and what that one left open is undone.
    pub async fn new(settings: &Settings, id: &str, transacting: &Transacting) -> Result<Self, Error> {
        let (settings, id, transacting) = (settings.clone(), id.to_owned(), transacting.clone());
        let producer = take_id(&settings, &id, &transacting).await?;
        Ok(Self { settings, id, transacting, producer: Arc::new(Mutex::new(producer)) })
    }

    /// Takes the id anew, after [`TransactionFailed::Broken`].
    pub async fn renew(&mut self) -> Result<(), Error> {
        let producer = take_id(&self.settings, &self.id, &self.transacting).await?;
        let old = std::mem::replace(&mut self.producer, Arc::new(Mutex::new(producer)));
        // The old one waits for its thread when it goes.
        spawn_blocking(move || drop(old)).await?;
        Ok(())
    }

    /// Publishes the records and commits the offsets of `topic` for the group, together. Without offsets
    /// it is refused: nothing would fence off a member that the group has left behind.
    ///
    /// If the future is dropped, the transaction ends as it does.
    pub async fn run(
        &self,
        outgoing: Vec<Outgoing>,
        marks: Vec<Mark>,
        topic: &Topic,
        group: GroupMetadata,
    ) -> Result<(), TransactionFailed> {
        self.run_all(outgoing, vec![(topic.clone(), marks)], group).await
    }

    /// Publishes the records together, without offsets: only the transactional id fences. For one who keeps in
    /// records of its own how far it came, in the same transaction.
    ///
    /// If the future is dropped, the transaction ends as it does.
    pub async fn publish(&self, outgoing: impl Into<Arc<[Outgoing]>>) -> Result<(), TransactionFailed> {
        let (outgoing, producer) = (outgoing.into(), self.producer.clone());
        let ran = spawn_blocking(move || {
            producer.lock().unwrap_or_else(PoisonError::into_inner).run(&outgoing, None)
        });
        ran.await.unwrap_or_else(|cut_off| Err(TransactionFailed::CutOff(cut_off)))
    }

    /// Publishes records, and then, in the same transaction, what `tell` makes of the offsets that they have: whoever
    /// sees the one sees the other.
    ///
    /// If the future is dropped, the transaction ends as it does.
    pub async fn publish_and_tell(
        &self,
        outgoing: Vec<Outgoing>,
        tell: impl FnOnce(&[i64]) -> Vec<Outgoing> + Send + 'static,
    ) -> Result<(), TransactionFailed> {
        let producer = self.producer.clone();
        let ran = spawn_blocking(move || {
            producer.lock().unwrap_or_else(PoisonError::into_inner).run_and_tell(&outgoing, tell)
        });
        ran.await.unwrap_or_else(|cut_off| Err(TransactionFailed::CutOff(cut_off)))
    }

    /// As [`Self::run`], with offsets of several topics.
    pub async fn run_all(
        &self,
        outgoing: Vec<Outgoing>,
        marks: Vec<(Topic, Vec<Mark>)>,
        group: GroupMetadata,
    ) -> Result<(), TransactionFailed> {
        if marks.iter().all(|(_, marks)| marks.is_empty()) {
            return Err(TransactionFailed::Unmarked);
        }
        let producer = self.producer.clone();
        let ran = spawn_blocking(move || {
            let offsets = marked(&marks).map_err(TransactionFailed::Broken)?;
            producer.lock().unwrap_or_else(PoisonError::into_inner).run(&outgoing, Some((&offsets, &group.0)))
        });
        ran.await.unwrap_or_else(|cut_off| Err(TransactionFailed::CutOff(cut_off)))
    }
}

async fn take_id(settings: &Settings, id: &str, transacting: &Transacting) -> Result<Producer, Error> {
    let publishing = Publishing {
        timeout: transacting.timeout,
        max_message_bytes: transacting.max_message_bytes,
        ..Publishing::default()
    };
    let mut config = publishing.config(settings);
    let timeout = transacting.timeout;
    config.set("transactional.id", id).set("transaction.timeout.ms", timeout.as_millis().to_string());
    // All records of a transaction are there at once: there is little to wait for.
    config.set("linger.ms", "1");
    let failed = |source| Error::Client { brokers: settings.brokers.clone(), source };
    spawn_blocking(move || Producer::start(&config, timeout)).await?.map_err(failed)
}
