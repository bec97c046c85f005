//! Takes letters out of the index that are gone from Kafka, with all that was counted about them.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::Index;
use super::entry::Entry;
use super::place::{id, offset_of, place_of};
use super::write::{Known, Memory};
use crate::error::Error;

/// How many letters leave in one transaction, so that nobody waits long for it.
const CHUNK: usize = 5_000;
/// How many pages are given back at a time.
const PAGES: u32 = 4_000;

impl Index {
    /// Takes out what is below an offset of a place; how many letters that were.
    pub(crate) fn sweep(&mut self, place: i64, first: i64) -> Result<u64, Error> {
        let mut gone = 0;
        loop {
            let swept = self.together(|connection, memory| {
                let rows = rows(connection, id(place, 0), id(place, first) - 1)?;
                forget(connection, memory, &rows)?;
                if rows.len() < CHUNK {
                    // What was said of letters that were erased, or never read.
                    let mut said =
                        connection.prepare_cached("DELETE FROM states WHERE id BETWEEN ?1 AND ?2")?;
                    said.execute([id(place, 0), id(place, first) - 1])?;
                    let mut moved = connection.prepare_cached(
                        "UPDATE places SET first = max(first, ?2), next = max(next, ?2) WHERE id = ?1",
                    )?;
                    moved.execute([place, first])?;
                }
                Ok(rows.len())
            })?;
            gone += swept as u64;
            if swept < CHUNK {
                return Ok(gone);
            }
        }
    }

    /// Takes out letters by their numbers.
    pub(crate) fn take_out(&mut self, ids: &[i64]) -> Result<u64, Error> {
        let mut gone = 0;
        for chunk in ids.chunks(CHUNK) {
            gone += self.together(|connection, memory| {
                let mut found = Vec::new();
                for id in chunk {
                    found.extend(rows(connection, *id, *id)?);
                }
                forget(connection, memory, &found)?;
                Ok(found.len() as u64)
            })?;
        }
        Ok(gone)
    }

    /// Takes out everything of a place, which is read from the start again.
    pub(crate) fn empty_place(&mut self, place: i64, first: i64) -> Result<(), Error> {
        while self.together(|connection, memory| {
            let rows = rows(connection, id(place, 0), id(place + 1, 0) - 1)?;
            forget(connection, memory, &rows)?;
            Ok(rows.len())
        })? == CHUNK
        {}
        self.together(|connection, _| {
            connection.execute("UPDATE places SET first = ?2, next = ?2 WHERE id = ?1", [place, first])?;
            Ok(())
        })
    }

    /// What nothing refers to any more, and space that is not used.
    pub(crate) fn tidy(&mut self) -> Result<(), Error> {
        self.together(|connection, memory| {
            memory.forget();
            connection.execute_batch(include_str!("tidy.sql"))
        })?;
        let given = self.connection.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES})"));
        given.map_err(|source| self.failed("write to", source))
    }

    /// Letters that Kafka will drop, in the order of their places.
    pub(crate) fn superseded(&self) -> Result<Vec<(i64, i64)>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT id FROM superseded ORDER BY id")?;
            let ids = statement.query_map([], |row| row.get::<_, i64>(0))?;
            ids.map(|id| id.map(|id| (place_of(id), offset_of(id)))).collect()
        })
    }
}

struct Row {
    id: i64,
    kind: i64,
    time: i64,
    message: Option<i64>,
    hash: Option<i64>,
}

fn rows(connection: &Connection, from: i64, to: i64) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, time, message, hash FROM letters WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3",
    )?;
    let rows = statement.query_map(params![from, to, CHUNK as i64], |row| {
        Ok(Row {
            id: row.get(0)?,
            kind: row.get(1)?,
            time: row.get(2)?,
            message: row.get(3)?,
            hash: row.get(4)?,
        })
    })?;
    rows.collect()
}

fn forget(connection: &Connection, memory: &mut Memory, rows: &[Row]) -> rusqlite::Result<()> {
    let (mut messages, mut keys) = (BTreeSet::new(), BTreeSet::new());
    let mut kinds = HashMap::new();
    let mut delete = connection.prepare_cached("DELETE FROM letters WHERE id = ?1")?;
    let mut state = connection.prepare_cached("DELETE FROM states WHERE id = ?1")?;
    let mut superseded = connection.prepare_cached("DELETE FROM superseded WHERE id = ?1")?;
    let mut of_kind = connection.prepare_cached("SELECT base, failure FROM kinds WHERE id = ?1")?;
    for row in rows {
        delete.execute([row.id])?;
        state.execute([row.id])?;
        superseded.execute([row.id])?;
        let (kind, failure) = match kinds.get(&row.kind) {
            Some(known) => *known,
            None => {
                let known = of_kind.query_row([row.kind], |found| {
                    Ok((Known { id: row.kind, base: found.get(0)? }, found.get::<_, i64>(1)?))
                })?;
                *kinds.entry(row.kind).or_insert(known)
            }
        };
        memory.count(kind, row.time, -1);
        messages.extend(row.message);
        keys.extend(row.hash.map(|hash| (failure, hash)));
    }
    let mut uses = connection
        .prepare_cached("SELECT 1 FROM letters INDEXED BY letters_message WHERE message = ?1 LIMIT 1")?;
    for message in &messages {
        if !uses.exists([message])? {
            connection.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([message])?;
            connection.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([message])?;
        }
    }
    if !messages.is_empty() {
        memory.forget();
    }
    let mut is_left = connection.prepare_cached(include_str!("key_is_left.sql"))?;
    for (failure, hash) in keys {
        if !is_left.exists([failure, hash])? {
            let mut gone = connection.prepare_cached("DELETE FROM keys WHERE failure = ?1 AND hash = ?2")?;
            let gone = gone.execute([failure, hash])?;
            memory.key(failure, -i64::try_from(gone).unwrap_or(0));
        }
    }
    Ok(())
}

/// Takes out one letter, if it is there.
pub(super) fn one(connection: &Connection, memory: &mut Memory, number: i64) -> rusqlite::Result<()> {
    let rows = rows(connection, number, number)?;
    if !rows.is_empty() {
        memory.settle_keys(connection)?;
        forget(connection, memory, &rows)?;
    }
    Ok(())
}

/// On a compacted topic a later record of a key stands for the earlier ones. One without a value takes them back at
/// once; otherwise Kafka drops them when it comes to it.
pub(super) fn supersede(
    connection: &Connection,
    memory: &mut Memory,
    number: i64,
    entry: &Entry,
) -> rusqlite::Result<()> {
    let Some(key) = entry.filed_under.as_ref().or(entry.key.as_ref()) else { return Ok(()) };
    let mut earlier = connection.prepare_cached(include_str!("earlier.sql"))?;
    let from = id(place_of(number), 0);
    let found = earlier.query_map(params![key.hash, from, number, &*key.kept], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    for earlier in found {
        if entry.takes_back {
            // It may have been added just now.
            memory.settle_keys(connection)?;
            forget(connection, memory, &rows(connection, earlier, earlier)?)?;
        } else {
            let mut note = connection.prepare_cached("INSERT OR IGNORE INTO superseded VALUES (?1)")?;
            note.execute([earlier])?;
        }
    }
    Ok(())
}

/// Whether a letter is there.
pub(super) fn is_there(connection: &Connection, id: i64) -> rusqlite::Result<bool> {
    let mut find = connection.prepare_cached("SELECT 1 FROM letters WHERE id = ?1")?;
    Ok(find.query_row([id], |_| Ok(())).optional()?.is_some())
}
