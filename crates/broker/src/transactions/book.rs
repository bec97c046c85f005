//! All transactional ids, the producer ids given out, and their journal.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tracing::warn;

use super::config::TransactionsConfig;
use super::entry::Entry;
use super::transaction::Transaction;
use crate::journal::Journal;

/// Producer ids are written down by the block: a crash skips what is left of one.
const BLOCK: i64 = 1_000;

#[derive(Debug)]
pub(super) struct Book {
    pub(super) transactions: BTreeMap<String, Transaction>,
    journal: Journal,
    config: TransactionsConfig,
    next_producer_id: i64,
    reserved_below: i64,
    /// The journal's size when only the living was in it.
    live_bytes: u64,
}

impl Book {
    pub(super) fn open(dir: Option<&Path>, config: TransactionsConfig, now: i64) -> io::Result<Self> {
        let path = dir.map(|dir| dir.join("transactions.journal"));
        let (journal, entries) = Journal::open(path.as_deref())?;
        let mut book = Self {
            transactions: BTreeMap::new(),
            journal,
            config,
            next_producer_id: 0,
            reserved_below: 0,
            live_bytes: 0,
        };
        for entry in entries {
            book.apply(Entry::decode(&entry)?);
        }
        book.next_producer_id = book.reserved_below;
        book.forget_idle(now);
        book.compact_if_mostly_dead(now);
        Ok(book)
    }

    /// Forces the journal onto the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }

    /// Never the same twice, over restarts too.
    pub(super) fn fresh_producer_id(&mut self) -> io::Result<i64> {
        if self.next_producer_id >= self.reserved_below {
            let below = self.reserved_below + BLOCK;
            self.journal.append(&Entry::ProducerIds { below }.encode())?;
            self.reserved_below = below;
        }
        let id = self.next_producer_id;
        self.next_producer_id += 1;
        Ok(id)
    }

    /// Written down, then so.
    pub(super) fn write(&mut self, transaction: Transaction, now: i64) -> io::Result<()> {
        let entry = Entry::Transaction(transaction);
        self.journal.append(&entry.encode())?;
        self.apply(entry);
        self.compact_if_mostly_dead(now);
        Ok(())
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::ProducerIds { below } => self.reserved_below = self.reserved_below.max(below),
            Entry::Transaction(transaction) => {
                self.transactions.insert(transaction.id.clone(), transaction);
            }
        }
    }

    fn forget_idle(&mut self, now: i64) {
        let idle_ms = self.config.id_expiration_ms;
        self.transactions.retain(|_, transaction| !transaction.is_forgettable(idle_ms, now));
    }

    fn compact_if_mostly_dead(&mut self, now: i64) {
        let len = self.journal.len_bytes();
        if len <= self.config.compact_above_bytes || len / 2 < self.live_bytes {
            return;
        }
        self.forget_idle(now);
        let ids = Entry::ProducerIds { below: self.reserved_below };
        let living = self.transactions.values().map(|transaction| Entry::Transaction(transaction.clone()));
        match self.journal.rewrite([ids].into_iter().chain(living).map(|entry| entry.encode())) {
            Ok(()) => self.live_bytes = self.journal.len_bytes(),
            // The old entries are all there: nothing is lost but room, and the next doubling tries again.
            Err(error) => {
                warn!(%error, "cannot rewrite the transactions' journal");
                self.live_bytes = len;
            }
        }
    }
}
