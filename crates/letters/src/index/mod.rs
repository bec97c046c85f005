//! The index: what questions are asked about, in SQLite, in the state folder. It holds no payload, and may be deleted
//! at any time: it is built anew from Kafka.
//!
//! One process feeds it at a time, any number ask it meanwhile.

pub(crate) mod codes;
pub(crate) mod entry;
mod forget;
pub(crate) mod kinds;
mod open;
pub(crate) mod place;
mod places;
mod states;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use redrive_core::Topic;
use rusqlite::{Connection, OptionalExtension as _};

use crate::error::Error;
use kinds::Kinds;
use write::Memory;

pub use open::Rebuilt;
pub(crate) use places::TopicRow;

/// The index of one cluster's letters.
pub struct Index {
    path: PathBuf,
    connection: Connection,
    /// What was looked up while writing.
    memory: Memory,
    /// The kinds as they were when this was the state of the file.
    kinds: Kinds,
    /// The letter topics that questions are about; all if none are named.
    about: Option<BTreeSet<Topic>>,
}

impl Index {
    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on every question is about these letter topics alone, whatever else was read into the file.
    pub fn ask_about(&mut self, topics: impl IntoIterator<Item = Topic>) {
        self.about = Some(topics.into_iter().collect());
        self.kinds = Kinds::default();
    }

    /// How many letters there are.
    pub fn count(&mut self) -> Result<u64, Error> {
        let kinds = self.kinds()?;
        Ok(kinds.iter().map(|kind| kind.count).sum())
    }

    /// How many bytes the file takes, and what was written to it and is not in it yet.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let with = |suffix: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            std::fs::metadata(path).map_or(0, |found| found.len())
        };
        with("") + with("-wal")
    }

    /// Moves what was written into the file itself, if nobody reads what was before.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        let settled = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        settled.map_err(|source| self.failed("write to", source))
    }

    /// Something that is remembered beside the letters: a position in a topic, for example.
    pub fn note(&self, name: &str) -> Result<Option<String>, Error> {
        self.ask(|connection| {
            connection
                .query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0))
                .optional()
        })
    }

    /// Remembers something.
    pub fn set_note(&self, name: &str, value: &str) -> Result<(), Error> {
        let set = self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [name, value]);
        set.map(drop).map_err(|source| self.failed("write to", source))
    }

    /// Reads something.
    pub(crate) fn ask<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        read(&self.connection).map_err(|source| self.failed("read", source))
    }

    fn failed(&self, deed: &'static str, source: rusqlite::Error) -> Error {
        Error::Index { deed, path: self.path.clone(), source }
    }

    /// Does several things or none of them.
    fn together<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut Memory) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let done = (|| {
            // Whoever writes takes its turn at once, so that nobody finds at the end that it was another's.
            let transaction =
                self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let done = work(&transaction, &mut self.memory)?;
            self.memory.settle(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })();
        done.map_err(|source| {
            // What was looked up may never have been written.
            self.memory = Memory::default();
            Error::Index { deed: "write to", path: self.path.clone(), source }
        })
    }
}
