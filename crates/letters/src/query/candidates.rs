//! Letters that an index of the file finds at once: by id, key, lane, leader or words. Where those are too many,
//! none: they are walked through instead.

use rusqlite::Connection;

use super::Query;
use super::fit::Fit;
use crate::error::Error;
use crate::index::Index;

/// More than this are walked through in order.
const MOST: usize = 4_000;

impl Index {
    /// The numbers of letters among which all that are meant are; none if they are too many or not to be found so.
    pub(super) fn candidates(
        &self,
        query: &Query,
        fit: &Fit,
        most: Option<usize>,
    ) -> Result<Option<Vec<i64>>, Error> {
        if !query.ids.is_empty() {
            let numbers = query.ids.iter().map(|id| self.number(id)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Some(numbers.into_iter().flatten().collect()));
        }
        let most = most.unwrap_or(MOST);
        self.ask(|connection| {
            let found = if !fit.keys().is_empty() {
                by_hash(connection, fit.keys(), most, &["hash"])?
            } else if !fit.lanes().is_empty() {
                by_hash(connection, fit.lanes(), most, &["hash", "lane_hash"])?
            } else if let Some(leader) = fit.leader() {
                numbers(connection, "leader", leader, most)?
            } else if let Some(question) = fit.words.as_ref().map(super::words::Words::question) {
                return match question {
                    Some(question) => by_words(connection, &question, most),
                    None => Ok(None),
                };
            } else {
                return Ok(None);
            };
            Ok((found.len() < most).then_some(found))
        })
    }
}

fn by_hash(
    connection: &Connection,
    values: &[(i64, Vec<u8>)],
    most: usize,
    columns: &[&str],
) -> rusqlite::Result<Vec<i64>> {
    let mut found = Vec::new();
    for (hash, _) in values {
        for column in columns {
            found.extend(numbers(connection, column, *hash, most)?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn numbers(connection: &Connection, column: &str, value: i64, most: usize) -> rusqlite::Result<Vec<i64>> {
    let sql = format!("SELECT id FROM letters WHERE {column} = ?1 LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([value, i64::try_from(most).unwrap_or(i64::MAX)], |row| row.get(0))?;
    rows.collect()
}

fn by_words(connection: &Connection, question: &str, most: usize) -> rusqlite::Result<Option<Vec<i64>>> {
    let mut statement = connection.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 LIMIT ?2")?;
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let messages = statement.query_map(rusqlite::params![question, limit], |row| row.get::<_, i64>(0))?;
    // A word that the full-text index takes for several cannot be asked for; it is looked for letter by letter.
    let Ok(messages) = messages.collect::<rusqlite::Result<Vec<i64>>>() else { return Ok(None) };
    if messages.len() >= most {
        return Ok(None);
    }
    let mut found = Vec::new();
    for message in messages {
        found.extend(numbers(connection, "message", message, most)?);
        if found.len() >= most {
            return Ok(None);
        }
    }
    Ok(Some(found))
}
