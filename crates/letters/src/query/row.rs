//! A letter as the index knows it.

use bytes::Bytes;
use redrive_core::route::Reason;
use redrive_core::{Class, Origin, Timestamp};
use rusqlite::Connection;

use crate::error::Error;
use crate::index::kinds::Kind;
use crate::index::{Index, codes};
use crate::state::{Outcome, State};
use crate::{Dialect, Fingerprint};

/// What the index knows of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Where it lies: its id.
    pub at: Origin,
    /// When it became a letter.
    pub time: Timestamp,
    /// Who wrote it.
    pub dialect: Dialect,
    /// The topic that was consumed, or the letter topic where that is not known.
    pub source: String,
    /// The partition there.
    pub partition: Option<i32>,
    /// The offset there.
    pub offset: Option<i64>,
    /// The consumer group.
    pub group: Option<String>,
    /// The original key, or its beginning if it is long.
    pub key: Option<Bytes>,
    /// The business key, or its beginning.
    pub lane: Option<Bytes>,
    /// The class of the failure.
    pub class: Option<Class>,
    /// Why it is a letter.
    pub reason: Option<Reason>,
    /// The type of the error.
    pub error_type: Option<String>,
    /// What it says, or the beginning of that.
    pub message: Option<String>,
    /// The failure group.
    pub failure: Fingerprint,
    /// How often the handler was called.
    pub attempts: u32,
    /// How often it was sent back before.
    pub replays: u32,
    /// The offset of the record because of which it is a letter.
    pub leader: Option<i64>,
    /// The size of the payload.
    pub size: u64,
    /// Whether its record has no value.
    pub is_tombstone: bool,
    /// Whether the payload is somewhere else.
    pub is_pointer: bool,
    /// What is the matter with it.
    pub state: State,
    /// The job that has to do with it.
    pub job: Option<String>,
    /// What became of it, if it was sent back.
    pub outcome: Option<Outcome>,
    pub(crate) id: i64,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(super) id: i64,
    pub(super) kind: i64,
    pub(super) time: i64,
    pub(super) message: Option<i64>,
    pub(super) flags: i64,
    pub(super) partition: Option<i32>,
    offset: Option<i64>,
    size: i64,
    attempts: Option<u32>,
    replays: Option<u32>,
    pub(super) hash: Option<i64>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) lane_hash: Option<i64>,
    pub(super) lane: Option<Vec<u8>>,
    pub(super) leader: Option<i64>,
}

impl Row {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            time: row.get(2)?,
            message: row.get(3)?,
            flags: row.get(4)?,
            partition: row.get(5)?,
            offset: row.get(6)?,
            size: row.get(7)?,
            attempts: row.get(8)?,
            replays: row.get(9)?,
            hash: row.get(10)?,
            key: row.get(11)?,
            lane_hash: row.get(12)?,
            lane: row.get(13)?,
            leader: row.get(14)?,
        })
    }

    pub(super) fn attempts(&self, kind: &Kind) -> u32 {
        self.attempts.unwrap_or_else(|| u32::try_from(kind.attempts).unwrap_or(0))
    }
}

/// One row, if it is there.
pub(super) fn row(connection: &Connection, id: i64) -> rusqlite::Result<Option<Row>> {
    use rusqlite::OptionalExtension as _;
    let mut find = connection.prepare_cached(include_str!("letter.sql"))?;
    find.query_row([id], Row::read).optional()
}

/// What an error said.
pub(super) fn message(connection: &Connection, row: &Row) -> rusqlite::Result<Option<String>> {
    use rusqlite::OptionalExtension as _;
    let Some(id) = row.message else { return Ok(None) };
    let mut find = connection.prepare_cached("SELECT text FROM messages WHERE id = ?1")?;
    find.query_row([id], |row| row.get(0)).optional()
}

impl Index {
    pub(super) fn summary(&self, row: Row, kind: &Kind) -> Result<Option<Summary>, Error> {
        let Some(at) = self.located(row.id)? else { return Ok(None) };
        let (message, said) = self.ask(|connection| {
            let mut said = connection.prepare_cached(
                "SELECT jobs.name, states.outcome FROM states LEFT JOIN jobs ON jobs.id = states.job
                 WHERE states.id = ?1",
            )?;
            let mut said = said.query([row.id])?;
            let said = match said.next()? {
                Some(said) => (said.get(0)?, codes::outcome_of(said.get(1)?)),
                None => (None, None),
            };
            Ok((message(connection, &row)?, said))
        })?;
        let attempts = row.attempts(kind);
        let key = row.key.map(Bytes::from);
        let lane = if row.flags & codes::LANE_IS_KEY == 0 { row.lane.map(Bytes::from) } else { key.clone() };
        Ok(Some(Summary {
            at,
            time: Timestamp::from_millis(row.time),
            dialect: kind.dialect,
            source: kind.failure.source.clone(),
            partition: row.partition,
            offset: row.offset,
            group: kind.failure.consumer.clone(),
            key,
            lane,
            class: kind.class,
            reason: kind.reason,
            error_type: kind.failure.error_type.clone(),
            message,
            failure: kind.failure.fingerprint,
            attempts,
            replays: row.replays.unwrap_or(0),
            leader: row.leader,
            size: u64::try_from(row.size).unwrap_or(0),
            is_tombstone: row.flags & codes::TOMBSTONE != 0,
            is_pointer: row.flags & codes::POINTER != 0,
            state: kind.state,
            job: said.0,
            outcome: said.1,
            id: row.id,
        }))
    }
}
