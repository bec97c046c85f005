//! The letters that a question means, with what has to be known of them before they are sent.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use redrive_core::{Origin, Topic};

use super::route::Candidate;
use crate::index::codes;
use crate::query::Query;
use crate::{Dialect, Error, Index, State};

/// What is read of a letter.
type Row = (i64, Option<i32>, Option<i64>, Option<u32>, i64, Option<i64>, Option<i64>, Option<i64>);

/// What was consumed, and by which group.
type Of<'a> = (&'a str, Option<&'a str>);

impl Index {
    /// All letters that are meant, ready to be planned with. A header that is asked for is not looked at.
    pub fn candidates_of(&mut self, query: &Query) -> Result<Vec<Candidate>, Error> {
        let letters = self.select(query)?;
        let kinds = self.kinds()?;
        let kinds: HashMap<i64, _> = kinds.iter().map(|kind| (kind.id, kind)).collect();
        let mut sources: HashMap<&str, Option<Topic>> = HashMap::new();
        let mut led: HashMap<(Of<'_>, i32, i64), Vec<Origin>> = HashMap::new();
        let mut candidates = Vec::with_capacity(letters.len());
        for at in letters {
            let Some(number) = self.number(&at)? else { continue };
            let Some((kind, partition, offset, replays, flags, hash, lane, leader)) = self.row(number)?
            else {
                continue;
            };
            let Some(kind) = kinds.get(&kind) else { continue };
            let lane = if flags & codes::LANE_IS_KEY == 0 { lane } else { hash };
            let leaders = match (partition, leader, lane) {
                (Some(partition), Some(leader), Some(lane)) => {
                    let of = (kind.failure.source.as_str(), kind.failure.consumer.as_deref());
                    match led.entry((of, partition, leader)) {
                        Entry::Occupied(known) => known.get().clone(),
                        Entry::Vacant(place) => {
                            let found = self.of_record((partition, leader), lane)?;
                            let is_left = |kind: &i64| {
                                kinds.get(kind).is_some_and(|kind| {
                                    (kind.failure.source.as_str(), kind.failure.consumer.as_deref()) == of
                                        && matches!(kind.state, State::Open | State::Replaying)
                                })
                            };
                            let left = found.into_iter().filter(|(_, kind)| is_left(kind));
                            place.insert(left.map(|(at, _)| at).collect()).clone()
                        }
                    }
                }
                _ => Vec::new(),
            };
            let others = match (partition, offset, hash) {
                (Some(partition), Some(offset), Some(hash)) => {
                    let others = self.others(number, (partition, offset), hash)?;
                    let same = others.into_iter().filter(|(_, other, _)| {
                        kinds.get(other).is_some_and(|other| {
                            (&other.failure.source, &other.failure.consumer)
                                == (&kind.failure.source, &kind.failure.consumer)
                        })
                    });
                    same.map(|(at, _, replays)| (at, replays)).collect()
                }
                _ => Vec::new(),
            };
            let source = &kind.failure.source;
            let source = sources.entry(source).or_insert_with(|| source.parse().ok()).clone();
            // Where the source is not known, the letter topic stands for it.
            let source = source.filter(|source| *source != at.topic);
            let origin = source.clone().zip(partition).zip(offset);
            candidates.push(Candidate {
                at,
                dialect: kind.dialect,
                origin: origin.map(|((topic, partition), offset)| Origin { topic, partition, offset }),
                source: source.map(|topic| (topic, partition)),
                group: kind.failure.consumer.clone(),
                replays: replays.unwrap_or(0),
                others,
                is_empty: flags & codes::TOMBSTONE != 0 && kind.dialect == Dialect::Unknown,
                leaders,
            });
        }
        Ok(candidates)
    }

    fn row(&self, number: i64) -> Result<Option<Row>, Error> {
        use rusqlite::OptionalExtension as _;
        self.ask(|connection| {
            let mut find = connection.prepare_cached(
                "SELECT kind, partition, offset, replays, flags, hash, lane_hash, leader FROM letters WHERE id = ?1",
            )?;
            find.query_row([number], |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                    row.get(7)?,
                ))
            })
            .optional()
        })
    }

    /// The letters of a lane that may be of this record, with their kinds.
    fn of_record(&self, (partition, offset): (i32, i64), lane: i64) -> Result<Vec<(Origin, i64)>, Error> {
        let found: Vec<(i64, i64)> = self.ask(|connection| {
            let mut find = connection.prepare_cached(
                "SELECT id, kind FROM letters WHERE hash = ?1 AND partition = ?2 AND offset = ?3
                 UNION SELECT id, kind FROM letters WHERE lane_hash = ?1 AND partition = ?2 AND offset = ?3",
            )?;
            let rows = find.query_map(rusqlite::params![lane, partition, offset], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            rows.collect()
        })?;
        let mut letters = Vec::with_capacity(found.len());
        for (number, kind) in found {
            letters.extend(self.located(number)?.map(|at| (at, kind)));
        }
        Ok(letters)
    }

    /// The other letters that may be of the same record, with their kinds and how often each was sent back. Only of
    /// one that was sent back itself there can be others.
    fn others(
        &self,
        number: i64,
        (partition, offset): (i32, i64),
        hash: i64,
    ) -> Result<Vec<(Origin, i64, u32)>, Error> {
        let found: Vec<(i64, i64, Option<u32>)> = self.ask(|connection| {
            let mut find = connection.prepare_cached(
                "SELECT id, kind, replays FROM letters
                 WHERE hash = ?1 AND partition = ?2 AND offset = ?3 AND id != ?4 AND EXISTS (
                     SELECT 1 FROM states WHERE states.id = ?4
                     UNION ALL SELECT 1 FROM letters WHERE letters.id = ?4 AND replays > 0
                 )",
            )?;
            let rows = find.query_map(rusqlite::params![hash, partition, offset, number], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect()
        })?;
        let mut others = Vec::with_capacity(found.len());
        for (number, kind, replays) in found {
            if let Some(at) = self.located(number)? {
                others.push((at, kind, replays.unwrap_or(0)));
            }
        }
        Ok(others)
    }
}
