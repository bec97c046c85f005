//! What is said of letters and failure groups elsewhere, beside the letters.

use std::collections::HashMap;

use redrive_core::{Origin, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::write::{Kind, Known, Memory};
use super::{Index, codes, forget};
use crate::Fingerprint;
use crate::error::Error;
use crate::state::{GroupWish, LetterState, State, Wish};

impl Index {
    /// Takes in what is said of letters, whether they are in the index by now or not; the last that is said of one
    /// counts. Those of topics that are not read here are left out; how many were taken in.
    pub fn set_states(&mut self, states: &[LetterState]) -> Result<u64, Error> {
        let mut numbered = Vec::with_capacity(states.len());
        for state in states {
            if let Some(number) = self.number(&state.letter)? {
                numbered.push((number, state));
            }
        }
        let is_erased = |(_, said): &(i64, &LetterState)| said.state == State::Erased;
        let has_erased = numbered.iter().any(is_erased);
        if has_erased {
            // What is erased is not to be found in the file, either.
            let overwrites = self.connection.execute_batch("PRAGMA secure_delete = on");
            overwrites.map_err(|source| self.failed("write to", source))?;
        }
        let count = self.together(|connection, memory| {
            for (number, state) in &numbered {
                set(connection, memory, *number, state)?;
            }
            Ok(numbered.len() as u64)
        })?;
        if has_erased {
            self.tidy()?;
            self.settle()?;
        }
        Ok(count)
    }

    /// Refuses a letter that was erased, or that lies elsewhere now, though Kafka may have it still.
    pub fn may_show(&self, letter: &Origin) -> Result<(), Error> {
        let Some(number) = self.number(letter)? else { return Ok(()) };
        let said = self.ask(|connection| {
            let mut find = connection.prepare_cached("SELECT state FROM states WHERE id = ?1")?;
            find.query_row([number], |row| row.get(0)).optional()
        })?;
        match said.map(codes::state_of) {
            Some(State::Erased) => Err(Error::NoLetter(letter.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes in what somebody said of a failure group.
    pub fn set_group_wish(&mut self, said: &GroupWish) -> Result<(), Error> {
        self.together(|connection, _| {
            let fingerprint = said.failure.number() as i64;
            connection.execute(
                "INSERT OR REPLACE INTO group_states VALUES (?1, ?2, ?3, ?4, ?5)",
                params![fingerprint, said.wish.name(), said.by, said.at.millis(), said.why],
            )?;
            Ok(())
        })
    }

    /// When letters of failure groups were dealt with last.
    pub(crate) fn dealings(&self) -> Result<HashMap<Fingerprint, Timestamp>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT fingerprint, at FROM dealings")?;
            let rows = statement.query_map([], |row| {
                let failure = Fingerprint::from_number(row.get::<_, i64>(0)? as u64);
                Ok((failure, Timestamp::from_millis(row.get(1)?)))
            })?;
            rows.collect()
        })
    }

    /// What people said of failure groups.
    pub fn group_wishes(&self) -> Result<Vec<GroupWish>, Error> {
        self.ask(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT fingerprint, state, by, at, why FROM group_states")?;
            let rows = statement.query_map([], |row| {
                Ok(GroupWish {
                    failure: Fingerprint::from_number(row.get::<_, i64>(0)? as u64),
                    wish: Wish::named(&row.get::<_, String>(1)?).unwrap_or(Wish::Open),
                    by: row.get(2)?,
                    at: Timestamp::from_millis(row.get(3)?),
                    why: row.get(4)?,
                })
            })?;
            rows.collect()
        })
    }

    /// Forgets all that was said, before it is folded anew.
    pub fn clear_states(&mut self) -> Result<(), Error> {
        let told = self.connection.prepare_cached("SELECT id FROM states").and_then(|mut statement| {
            let ids = statement.query_map([], |row| row.get::<_, i64>(0))?;
            ids.collect::<rusqlite::Result<Vec<_>>>()
        });
        let told = told.map_err(|source| self.failed("read", source))?;
        self.together(|connection, memory| {
            for number in told {
                shift(connection, memory, number, codes::state(State::Open))?;
            }
            connection.execute_batch("DELETE FROM states; DELETE FROM dealings; DELETE FROM group_states;")
        })
    }
}

fn set(
    connection: &Connection,
    memory: &mut Memory,
    number: i64,
    said: &LetterState,
) -> rusqlite::Result<()> {
    let job = match &said.job {
        Some(name) => {
            connection.prepare_cached("INSERT OR IGNORE INTO jobs (name) VALUES (?1)")?.execute([name])?;
            let mut find = connection.prepare_cached("SELECT id FROM jobs WHERE name = ?1")?;
            Some(find.query_row([name], |row| row.get::<_, i64>(0))?)
        }
        None => None,
    };
    if said.state == State::Erased {
        // First, since it takes along what was said.
        forget::one(connection, memory, number)?;
    }
    let mut insert =
        connection.prepare_cached("INSERT OR REPLACE INTO states VALUES (?1, ?2, ?3, ?4, ?5)")?;
    insert.execute(params![
        number,
        codes::state(said.state),
        job,
        said.outcome.map(codes::outcome),
        said.at.map(Timestamp::millis),
    ])?;
    let state = codes::state_of_kind(said.state, said.outcome);
    let failure = shift(connection, memory, number, state)?;
    if let (Some(failure), Some(at), true) = (failure, said.at, codes::is_dealt_with(state)) {
        memory.deal(failure, at.millis());
    }
    Ok(())
}

/// Makes a letter one of the kind that is the same but for its state; its failure group, if it is there.
fn shift(
    connection: &Connection,
    memory: &mut Memory,
    number: i64,
    state: i64,
) -> rusqlite::Result<Option<i64>> {
    if !forget::is_there(connection, number)? {
        return Ok(None);
    }
    let mut find = connection.prepare_cached(
        "SELECT letters.kind, letters.time, kinds.topic, kinds.failure, kinds.class, kinds.reason,
                kinds.dialect, kinds.attempts, kinds.state, kinds.base
         FROM letters JOIN kinds ON kinds.id = letters.kind WHERE letters.id = ?1",
    )?;
    let found = find.query_row([number], |row| {
        let kind = Kind {
            topic: row.get(2)?,
            failure: row.get(3)?,
            class: row.get(4)?,
            reason: row.get(5)?,
            dialect: row.get(6)?,
            attempts: row.get(7)?,
            state: row.get(8)?,
        };
        Ok((Known { id: row.get(0)?, base: row.get(9)? }, row.get::<_, i64>(1)?, kind))
    });
    let Some((was, time, kind)) = found.optional()? else { return Ok(None) };
    let becomes = memory.kind(connection, Kind { state, ..kind })?;
    if was.id != becomes.id {
        connection
            .prepare_cached("UPDATE letters SET kind = ?2 WHERE id = ?1")?
            .execute([number, becomes.id])?;
        memory.count(was, time, -1);
        memory.count(becomes, time, 1);
    }
    Ok(Some(kind.failure))
}
