//! Puts letters into the index, with what is counted about them.

use std::collections::HashMap;

use hashbrown::HashMap as Fast;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::entry::{ATTEMPTS, Entry};
use super::place::{LAST, id};
use super::{Index, codes};
use crate::error::Error;
use crate::state::State;

/// How many messages are remembered, so that each is about once in the file.
const MESSAGES: usize = 65_536;
pub(crate) const HOUR: i64 = 3_600_000;

/// What was looked up while writing, and what was counted and not written yet.
#[derive(Default)]
pub(crate) struct Memory {
    failures: Fast<u64, i64>,
    kinds: Fast<Kind, Known>,
    messages: Fast<u64, i64>,
    counts: Fast<i64, i64>,
    hours: Fast<(i64, i64), i64>,
    keys: Fast<i64, i64>,
    /// Failure groups and the keys of their letters: in order they are written at a fraction of the cost.
    pairs: Vec<(i64, i64)>,
    dealt: Fast<i64, i64>,
}

/// A kind, and its base.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) id: i64,
    pub(super) base: i64,
}

/// What the letters of a kind have in common, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) topic: i64,
    pub(super) failure: i64,
    pub(super) class: i64,
    pub(super) reason: i64,
    pub(super) dialect: i64,
    pub(super) attempts: i64,
    pub(super) state: i64,
}

/// Letters of one partition, in order, and up to where it has been read with them.
pub(crate) struct Run {
    pub(crate) place: i64,
    pub(crate) topic: i64,
    pub(crate) is_compacted: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) next: i64,
}

impl Index {
    /// Adds letters, and notes how far their partitions have been read: both or neither. How many were added.
    pub(crate) fn add(&mut self, runs: Vec<Run>) -> Result<u64, Error> {
        self.together(|connection, memory| {
            let mut added = 0;
            for run in runs {
                added += put(connection, memory, &run)?;
                let mut moved =
                    connection.prepare_cached("UPDATE places SET next = max(next, ?2) WHERE id = ?1")?;
                moved.execute([run.place, run.next])?;
            }
            Ok(added)
        })
    }
}

fn put(connection: &Connection, memory: &mut Memory, run: &Run) -> rusqlite::Result<u64> {
    let (Some(first), Some(last)) = (run.entries.first(), run.entries.last()) else { return Ok(0) };
    let told = told(connection, id(run.place, first.offset), id(run.place, last.offset))?;
    let mut insert = connection.prepare_cached(include_str!("put.sql"))?;
    let mut messages = Messages {
        texts: connection.prepare_cached("INSERT INTO messages (text) VALUES (?1)")?,
        words: connection.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?,
        said: String::new(),
    };
    let mut added = 0;
    for entry in &run.entries {
        // Nothing that could be told from another.
        if entry.offset < 0 || entry.offset > LAST {
            continue;
        }
        let number = id(run.place, entry.offset);
        if run.is_compacted {
            super::forget::supersede(connection, memory, number, entry)?;
            if entry.takes_back {
                continue;
            }
        }
        let is_erased = |told: &Told| codes::state_of(told.state) == State::Erased;
        if told.get(&number).is_some_and(is_erased) {
            continue;
        }
        let failure = failure(connection, memory, entry)?;
        let kind = Kind {
            topic: run.topic,
            failure,
            class: codes::class(entry.class),
            reason: codes::reason(entry.reason),
            dialect: codes::dialect(entry.dialect),
            attempts: i64::from(entry.attempts).min(ATTEMPTS),
            state: told.get(&number).map_or(codes::state(State::Open), |told| told.state),
        };
        let kind = memory.kind(connection, kind)?;
        let message = messages.put(memory, entry)?;
        if write(&mut insert, number, kind.id, message, entry)? == 0 {
            continue;
        }
        added += 1;
        memory.count(kind, entry.time, 1);
        if let Some(Told { state, at: Some(at) }) = told.get(&number)
            && codes::is_dealt_with(*state)
        {
            memory.deal(failure, *at);
        }
        memory.pairs.extend(entry.key.as_ref().map(|key| (failure, key.hash)));
    }
    Ok(added)
}

fn write(
    insert: &mut CachedStatement<'_>,
    number: i64,
    kind: i64,
    message: Option<i64>,
    entry: &Entry,
) -> rusqlite::Result<usize> {
    let (key, lane) = (entry.key.as_ref(), entry.lane.as_ref());
    insert.execute(params![
        number,
        kind,
        entry.time,
        message,
        entry.flags,
        entry.partition,
        entry.source_offset,
        i64::try_from(entry.size).unwrap_or(i64::MAX),
        (i64::from(entry.attempts) >= ATTEMPTS).then_some(entry.attempts),
        (entry.replays > 0).then_some(entry.replays),
        key.map(|key| key.hash),
        key.map(|key| &*key.kept),
        lane.map(|lane| lane.hash),
        lane.map(|lane| &*lane.kept),
        entry.leader,
        entry.filed_under.as_ref().map(|key| key.hash),
        entry.stamp,
    ])
}

/// What is said of a letter: the state of its kind, and since when.
struct Told {
    state: i64,
    at: Option<i64>,
}

/// What is said already of letters in a range.
fn told(connection: &Connection, from: i64, to: i64) -> rusqlite::Result<HashMap<i64, Told>> {
    let mut statement =
        connection.prepare_cached("SELECT id, state, outcome, at FROM states WHERE id BETWEEN ?1 AND ?2")?;
    let rows = statement.query_map([from, to], |row| {
        let (state, outcome) = (codes::state_of(row.get(1)?), codes::outcome_of(row.get(2)?));
        Ok((row.get(0)?, Told { state: codes::state_of_kind(state, outcome), at: row.get(3)? }))
    })?;
    rows.collect()
}

fn failure(connection: &Connection, memory: &mut Memory, entry: &Entry) -> rusqlite::Result<i64> {
    let fingerprint = entry.fingerprint.number();
    if let Some(id) = memory.failures.get(&fingerprint) {
        return Ok(*id);
    }
    let mut find = connection.prepare_cached("SELECT id FROM failures WHERE fingerprint = ?1")?;
    let found = find.query_row([fingerprint as i64], |row| row.get(0)).optional()?;
    let id = match (found, &entry.failure) {
        (Some(id), _) => id,
        (None, failure) => {
            let mut insert = connection.prepare_cached(
                "INSERT INTO failures (fingerprint, source, consumer, error_type, message)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let failure = failure.as_deref();
            insert.insert(params![
                fingerprint as i64,
                failure.map_or("", |failure| &failure.source),
                failure.and_then(|failure| failure.consumer.as_ref()),
                failure.and_then(|failure| failure.error_type.as_ref()),
                failure.map_or("", |failure| &failure.message),
            ])?
        }
    };
    memory.failures.insert(fingerprint, id);
    Ok(id)
}

/// What errors said, each about once.
struct Messages<'c> {
    texts: CachedStatement<'c>,
    words: CachedStatement<'c>,
    said: String,
}

impl Messages<'_> {
    fn put(&mut self, memory: &mut Memory, entry: &Entry) -> rusqlite::Result<Option<i64>> {
        let Some(hash) = entry.said else { return Ok(None) };
        let text = entry.message.as_deref().unwrap_or_default();
        let error_type = entry.error_type.as_deref().unwrap_or_default();
        if let Some(id) = memory.messages.get(&hash) {
            return Ok(Some(*id));
        }
        let id = self.texts.insert([text])?;
        self.said.clear();
        self.said.push_str(error_type);
        self.said.push(' ');
        self.said.push_str(text);
        self.words.execute(params![id, self.said])?;
        if memory.messages.len() >= MESSAGES {
            memory.messages.clear();
        }
        memory.messages.insert(hash, id);
        Ok(Some(id))
    }
}

impl Memory {
    pub(super) fn kind(&mut self, connection: &Connection, kind: Kind) -> rusqlite::Result<Known> {
        if let Some(known) = self.kinds.get(&kind) {
            return Ok(*known);
        }
        let Kind { topic, failure, class, reason, dialect, attempts, state } = kind;
        let values = [topic, failure, class, reason, dialect, state, attempts];
        let mut insert = connection.prepare_cached(include_str!("kind.sql"))?;
        insert.execute(values)?;
        let mut find = connection.prepare_cached(
            "SELECT id, base FROM kinds WHERE topic = ?1 AND failure = ?2 AND class = ?3 AND reason = ?4
             AND dialect = ?5 AND state = ?6 AND attempts = ?7",
        )?;
        let known = find.query_row(values, |row| Ok(Known { id: row.get(0)?, base: row.get(1)? }))?;
        self.kinds.insert(kind, known);
        Ok(known)
    }

    /// So many more letters of a kind at a time, or fewer.
    pub(super) fn count(&mut self, kind: Known, time: i64, by: i64) {
        *self.counts.entry(kind.id).or_default() += by;
        *self.hours.entry((kind.base, time.div_euclid(HOUR))).or_default() += by;
    }

    /// So many more different keys of a failure group, or fewer.
    pub(super) fn key(&mut self, failure: i64, by: i64) {
        *self.keys.entry(failure).or_default() += by;
    }

    /// Writes down which failure groups have letters of which keys.
    pub(super) fn settle_keys(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO keys VALUES (?1, ?2)")?;
        self.pairs.sort_unstable();
        self.pairs.dedup();
        for (failure, key) in self.pairs.drain(..) {
            if insert.execute([failure, key])? > 0 {
                *self.keys.entry(failure).or_default() += 1;
            }
        }
        Ok(())
    }

    /// A letter of a failure group was dealt with at this time.
    pub(super) fn deal(&mut self, failure: i64, at: i64) {
        let last = self.dealt.entry(failure).or_insert(at);
        *last = at.max(*last);
    }

    /// Nothing that was looked up is sure to be there.
    pub(super) fn forget(&mut self) {
        self.failures.clear();
        self.kinds.clear();
        self.messages.clear();
    }

    /// Writes down what was counted.
    pub(super) fn settle(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.settle_keys(connection)?;
        let mut counts = connection.prepare_cached("UPDATE kinds SET count = count + ?2 WHERE id = ?1")?;
        for (kind, by) in self.counts.drain().filter(|(_, by)| *by != 0) {
            counts.execute([kind, by])?;
        }
        let mut hours = connection.prepare_cached(include_str!("hours.sql"))?;
        let mut empty =
            connection.prepare_cached("DELETE FROM hours WHERE base = ?1 AND hour = ?2 AND count <= 0")?;
        for ((base, hour), by) in self.hours.drain().filter(|(_, by)| *by != 0) {
            hours.execute([base, hour, by])?;
            if by < 0 {
                empty.execute([base, hour])?;
            }
        }
        let mut keys = connection.prepare_cached("UPDATE failures SET keys = keys + ?2 WHERE id = ?1")?;
        for (failure, by) in self.keys.drain().filter(|(_, by)| *by != 0) {
            keys.execute([failure, by])?;
        }
        let mut dealt = connection.prepare_cached(include_str!("dealt.sql"))?;
        for (failure, at) in self.dealt.drain() {
            dealt.execute([failure, at])?;
        }
        Ok(())
    }
}
