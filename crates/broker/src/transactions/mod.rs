//! The transaction coordinator: producer ids and epochs, what a transaction touches, how it ends.
//!
//! Comes in: requests as decoded. Goes out: responses, and [`Ending`]s for the caller to carry out.
//! An ending is in the journal before anyone hears of it, so it will be carried out, after a crash
//! by the next process. Decisions are in `transaction.rs`, as plain data; this file waits and keeps time.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use tokio::sync::Notify;
use tokio::time::timeout_at;
use tracing::info;

use crate::clock;

mod book;
mod config;
mod entry;
mod init;
mod requests;
#[cfg(test)]
mod tests;
mod transaction;

pub(crate) use config::TransactionsConfig;
pub(crate) use init::Init;
pub(crate) use requests::End;

use book::Book;
use transaction::{Identity, Touched, Transaction};

/// When an expired transaction cannot be written down as aborted, this long until the next try.
const TRY_AGAIN_MS: i64 = 1_000;

/// How a transaction ends, for the caller to carry out: a marker to every partition that still exists,
/// `Groups::complete_transaction`, then [`Transactions::complete`]. All of it may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Whose transaction it is.
    pub transactional_id: String,
    /// The producer the markers name.
    pub producer_id: i64,
    /// The epoch the markers carry: above the producer's own if it is being shut out.
    pub epoch: i16,
    /// Or abort.
    pub commit: bool,
    /// Where the markers go.
    pub partitions: Vec<(String, i32)>,
    /// Whose offsets were part of it.
    pub groups: Vec<String>,
}

/// The transactions of the broker; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Transactions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: TransactionsConfig,
    book: Mutex<Book>,
    /// Rung when a transaction begins: it may be the next to expire.
    begun: Notify,
}

impl Transactions {
    /// Reads what was written down; what was decided and not finished is in [`unfinished`](Self::unfinished).
    pub(crate) fn open(dir: Option<&Path>, config: TransactionsConfig) -> io::Result<Self> {
        let book = Mutex::new(Book::open(dir, config.clone(), clock::now_ms())?);
        Ok(Self(Arc::new(Shared { config, book, begun: Notify::new() })))
    }

    /// Endings that were decided and not completed.
    pub(crate) fn unfinished(&self) -> Vec<Ending> {
        self.book().transactions.values().filter_map(Transaction::ending).collect()
    }

    /// All of the ending was carried out: the producer may begin its next transaction.
    pub(crate) fn complete(&self, ending: &Ending) -> io::Result<()> {
        let now = clock::now_ms();
        let mut book = self.book();
        let transaction = book.transactions.get(&ending.transactional_id);
        match transaction.and_then(|transaction| transaction.complete(ending, now)) {
            Some(complete) => book.write(complete, now),
            None => Ok(()),
        }
    }

    /// Waits until transactions have outlived their timeout, and ends them. To be called in a loop.
    pub(crate) async fn next_expired(&self) -> Vec<Ending> {
        let mut not_before = i64::MIN;
        loop {
            let now = clock::now_ms();
            if now >= not_before {
                let endings = self.expire(now);
                if !endings.is_empty() {
                    return endings;
                }
            }
            let Some(next) = self.next_expiry() else {
                self.0.begun.notified().await;
                continue;
            };
            // What is still due after that could not be written down.
            not_before = if next <= now { now + TRY_AGAIN_MS } else { next };
            let wait = Duration::from_millis((not_before - now).unsigned_abs());
            if timeout_at(clock::instant() + wait, self.0.begun.notified()).await.is_ok() {
                not_before = i64::MIN;
            }
        }
    }

    /// Ends every transaction that has expired by `now`; its producer is shut out.
    pub(crate) fn expire(&self, now: i64) -> Vec<Ending> {
        let mut book = self.book();
        let expired = book.transactions.values().filter_map(|transaction| transaction.expire(now));
        let expired: Vec<(Transaction, Ending)> = expired.collect();
        let mut endings = Vec::new();
        for (next, ending) in expired {
            if init::put(&mut book, next, now).is_ok() {
                info!(transactional_id = ending.transactional_id, "transaction expired");
                endings.push(ending);
            }
        }
        endings
    }

    pub(crate) fn next_expiry(&self) -> Option<i64> {
        self.book().transactions.values().filter_map(Transaction::expires_ms).min()
    }

    /// Before a transactional batch is appended: `version` is that of the Produce request.
    pub(crate) fn verify_partition(
        &self,
        transactional_id: &str,
        producer_id: i64,
        epoch: i16,
        (topic, partition): (&str, i32),
        version: i16,
    ) -> Result<(), ResponseError> {
        let verified = self.verify(
            transactional_id,
            Identity { producer_id, epoch },
            &Touched::partition(topic, partition),
        );
        verified.map_err(|error| match error {
            ResponseError::InvalidTxnState if version >= 11 => ResponseError::TransactionAbortable,
            // Produce has never known the other.
            ResponseError::ProducerFenced => ResponseError::InvalidProducerEpoch,
            other => other,
        })
    }

    /// Before `Groups::txn_offset_commit`: `version` is that of the TxnOffsetCommit request.
    pub(crate) fn verify_offsets(
        &self,
        transactional_id: &str,
        producer_id: i64,
        epoch: i16,
        group: &str,
        version: i16,
    ) -> Result<(), ResponseError> {
        let verified = self.verify(transactional_id, Identity { producer_id, epoch }, &Touched::group(group));
        verified.map_err(|error| match error {
            ResponseError::InvalidTxnState if version >= 4 => ResponseError::TransactionAbortable,
            ResponseError::ProducerFenced => ResponseError::InvalidProducerEpoch,
            other => other,
        })
    }

    fn verify(&self, id: &str, identity: Identity, needs: &Touched) -> Result<(), ResponseError> {
        let book = self.book();
        let transaction = book.transactions.get(id).ok_or(ResponseError::InvalidProducerIdMapping)?;
        transaction.verify(identity, needs)
    }

    /// Forces what was written down onto the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.book().sync()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
