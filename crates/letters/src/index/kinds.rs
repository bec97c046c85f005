//! What many letters have in common, in memory: a question is first answered for kinds, and then only letters of
//! kinds that fit are looked at.

use std::sync::Arc;

use redrive_core::Class;
use redrive_core::route::Reason;
use rusqlite::Connection;

use super::{Index, codes};
use crate::error::Error;
use crate::state::State;
use crate::{Dialect, Fingerprint};

/// Letters that have this in common.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) id: i64,
    pub(crate) topic: Arc<str>,
    pub(crate) failure: Arc<FailureRow>,
    pub(crate) class: Option<Class>,
    pub(crate) reason: Option<Reason>,
    pub(crate) dialect: Dialect,
    /// At most [`super::entry::ATTEMPTS`].
    pub(crate) attempts: i64,
    pub(crate) state: State,
    /// Whether nothing more is to be done about them.
    pub(crate) is_dealt_with: bool,
    /// What it shares with kinds that differ in their attempts alone.
    pub(crate) base: i64,
    pub(crate) count: u64,
}

/// A failure group.
#[derive(Debug)]
pub(crate) struct FailureRow {
    pub(crate) id: i64,
    pub(crate) fingerprint: Fingerprint,
    /// The topic that was consumed, or the letter topic where that is not known.
    pub(crate) source: String,
    pub(crate) consumer: Option<String>,
    pub(crate) error_type: Option<String>,
    /// Normalised.
    pub(crate) message: String,
    pub(crate) keys: u64,
}

/// All kinds, as they were at some state of the file.
#[derive(Default)]
pub(crate) struct Kinds {
    version: Option<(i64, u64)>,
    all: Arc<Vec<Kind>>,
    /// By base, and within it by the hour. Read when first asked for.
    hours: Option<Arc<Vec<Hour>>>,
}

/// How many letters the kinds of a base have in an hour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hour {
    pub(crate) base: i64,
    pub(crate) hour: i64,
    pub(crate) count: u64,
}

impl Index {
    /// All kinds that there are letters of in the topics that questions are about.
    pub(crate) fn kinds(&mut self) -> Result<Arc<Vec<Kind>>, Error> {
        let found = (|| {
            // What others wrote, and what this one wrote.
            let theirs = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
            let version = Some((theirs, self.connection.total_changes()));
            if self.kinds.version != version {
                let mut all = read(&self.connection)?;
                if let Some(about) = &self.about {
                    all.retain(|kind| about.iter().any(|topic| topic.as_str() == &*kind.topic));
                }
                self.kinds = Kinds { version, all: Arc::new(all), hours: None };
            }
            Ok(self.kinds.all.clone())
        })();
        found.map_err(|source| self.failed("read", source))
    }
}

impl Index {
    /// How many letters there are by the hour, by base and hour.
    pub(crate) fn hours(&mut self) -> Result<Arc<Vec<Hour>>, Error> {
        self.kinds()?;
        if let Some(hours) = &self.kinds.hours {
            return Ok(hours.clone());
        }
        let hours = self.ask(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT base, hour, count FROM hours ORDER BY base, hour")?;
            let rows = statement.query_map([], |row| {
                let count = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
                Ok(Hour { base: row.get(0)?, hour: row.get(1)?, count })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        Ok(self.kinds.hours.insert(Arc::new(hours)).clone())
    }
}

fn read(connection: &Connection) -> rusqlite::Result<Vec<Kind>> {
    use std::collections::HashMap;
    let mut topics: HashMap<i64, Arc<str>> = HashMap::new();
    let mut statement = connection.prepare_cached("SELECT id, name FROM topics")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        topics.insert(row.get(0)?, row.get::<_, String>(1)?.into());
    }
    let mut failures: HashMap<i64, Arc<FailureRow>> = HashMap::new();
    let mut statement = connection.prepare_cached(
        "SELECT id, fingerprint, source, consumer, error_type, message, keys FROM failures",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let failure = FailureRow {
            id: row.get(0)?,
            fingerprint: Fingerprint::from_number(row.get::<_, i64>(1)? as u64),
            source: row.get(2)?,
            consumer: row.get(3)?,
            error_type: row.get(4)?,
            message: row.get(5)?,
            keys: u64::try_from(row.get::<_, i64>(6)?).unwrap_or(0),
        };
        failures.insert(failure.id, Arc::new(failure));
    }
    let mut statement = connection.prepare_cached(
        "SELECT id, topic, failure, class, reason, dialect, attempts, state, base, count FROM kinds WHERE count > 0",
    )?;
    let mut rows = statement.query([])?;
    let mut kinds = Vec::new();
    while let Some(row) = rows.next()? {
        let (topic, failure) = (topics.get(&row.get(1)?), failures.get(&row.get(2)?));
        let (Some(topic), Some(failure)) = (topic, failure) else { continue };
        kinds.push(Kind {
            id: row.get(0)?,
            topic: topic.clone(),
            failure: failure.clone(),
            class: codes::class_of(row.get(3)?),
            reason: codes::reason_of(row.get(4)?),
            dialect: codes::dialect_of(row.get(5)?),
            attempts: row.get(6)?,
            state: codes::state_of(row.get(7)?),
            is_dealt_with: codes::is_dealt_with(row.get(7)?),
            base: row.get(8)?,
            count: u64::try_from(row.get::<_, i64>(9)?).unwrap_or(0),
        });
    }
    Ok(kinds)
}
