//! Walks through letters in the order of their times: those of few kinds kind by kind, otherwise all of them.

use rusqlite::{Connection, params};

use super::fit::Fit;
use super::row::Row;

/// Above so many kinds all letters are walked through.
const FEW: usize = 400;
/// How many rows one answer looks at; then it says how far it came.
pub(super) const BUDGET: usize = 20_000;

/// Where a walk stands: what comes next is beyond this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) time: i64,
    pub(super) id: i64,
}

/// A stretch of a walk.
pub(super) struct Stretch {
    /// Letters of the kinds that are meant, in order.
    pub(super) rows: Vec<Row>,
    /// Where it stands, unless there is nothing more.
    pub(super) mark: Option<Mark>,
    /// How many were looked at.
    pub(super) looked: usize,
}

/// The next stretch of letters, `newest` first or last, beyond `mark`.
pub(super) fn stretch(
    connection: &Connection,
    fit: &Fit,
    kinds: &[i64],
    newest: bool,
    mark: Option<Mark>,
    most: usize,
) -> rusqlite::Result<Stretch> {
    // Where most letters fit, or where each has to be looked at, it is better to pass all of them.
    let share = if fit.looks_at_letters() { 4 } else { 2 };
    let is_common = kinds.len() > 8 && kinds.len() == fit.kinds.len() && fit.count * share >= fit.all;
    if kinds.len() > FEW || is_common {
        through_all(connection, fit, kinds, newest, mark, most)
    } else {
        by_kind(connection, fit, kinds, newest, mark, most)
    }
}

fn bounds(fit: &Fit, newest: bool, mark: Option<Mark>) -> (i64, i64) {
    let (from, before) = fit.times;
    let to = before.saturating_sub(1);
    match mark {
        Some(mark) if newest => (from, to.min(mark.time)),
        Some(mark) => (from.max(mark.time), to),
        None => (from, to),
    }
}

/// Beyond the mark: of the same time, those of lower numbers when the newest come first, of higher ones otherwise.
fn beyond(newest: bool, mark: Option<Mark>) -> (i64, i64) {
    match (mark, newest) {
        (Some(mark), _) => (mark.time, mark.id),
        (None, true) => (i64::MAX, i64::MAX),
        (None, false) => (i64::MIN, i64::MIN),
    }
}

fn by_kind(
    connection: &Connection,
    fit: &Fit,
    kinds: &[i64],
    newest: bool,
    mark: Option<Mark>,
    most: usize,
) -> rusqlite::Result<Stretch> {
    let sql = if newest {
        "SELECT time, id FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time BETWEEN ?2 AND ?3
         AND (time < ?4 OR id < ?5) ORDER BY time DESC, id DESC LIMIT ?6"
    } else {
        "SELECT time, id FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time BETWEEN ?2 AND ?3
         AND (time > ?4 OR id > ?5) ORDER BY time, id LIMIT ?6"
    };
    let ((from, to), (time, id)) = (bounds(fit, newest, mark), beyond(newest, mark));
    let mut statement = connection.prepare_cached(sql)?;
    let mut found: Vec<(i64, i64)> = Vec::new();
    for kind in kinds {
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![kind, from, to, time, id, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            found.push(row?);
        }
    }
    let more = found.len() >= most;
    found.sort_unstable();
    if newest {
        found.reverse();
    }
    found.truncate(most);
    let mark = found.last().filter(|_| more).map(|(time, id)| Mark { time: *time, id: *id });
    let mut rows = Vec::with_capacity(found.len());
    for (_, id) in &found {
        rows.extend(super::row::row(connection, *id)?);
    }
    Ok(Stretch { looked: rows.len(), rows, mark })
}

fn through_all(
    connection: &Connection,
    fit: &Fit,
    kinds: &[i64],
    newest: bool,
    mark: Option<Mark>,
    most: usize,
) -> rusqlite::Result<Stretch> {
    let sql = if newest { include_str!("newest.sql") } else { include_str!("oldest.sql") };
    let kinds: hashbrown::HashSet<i64> = kinds.iter().copied().collect();
    let ((from, to), (time, id)) = (bounds(fit, newest, mark), beyond(newest, mark));
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([from, to, time, id])?;
    let (mut rows, mut looked) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        looked += 1;
        if kinds.contains(&row.get::<_, i64>(1)?)
            && fit.may_take(row.get_ref(11)?.as_blob_or_null().ok().flatten())
        {
            rows.push(Row::read(row)?);
        }
        if rows.len() >= most || looked >= BUDGET {
            let mark = Some(Mark { time: row.get(2)?, id: row.get(0)? });
            return Ok(Stretch { rows, mark, looked });
        }
    }
    Ok(Stretch { rows, mark: None, looked })
}
