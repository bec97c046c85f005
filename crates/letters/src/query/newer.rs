//! What came since one looked last.

use std::collections::BTreeMap;

use super::fit::Fit;
use super::{Query, Summary};
use crate::error::Error;
use crate::index::Index;
use crate::index::place::id;

/// How far each partition had been read when one looked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks(BTreeMap<i64, i64>);

impl Index {
    /// How far each partition has been read.
    pub fn marks(&self) -> Result<Marks, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT id, next FROM places")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>().map(Marks)
        })
    }

    /// Letters that are meant and came since, in the order in which they lie.
    pub fn newer(&mut self, query: &Query, since: &Marks) -> Result<Vec<Summary>, Error> {
        let fit = Fit::of(query, &self.kinds()?)?;
        let mut found = Vec::new();
        for (place, next) in self.marks()?.0 {
            let from = since.0.get(&place).copied().unwrap_or(0);
            if from >= next {
                continue;
            }
            let ids = self.ask(|connection| {
                let mut statement = connection
                    .prepare_cached("SELECT id FROM letters WHERE id >= ?1 AND id < ?2 ORDER BY id")?;
                let rows = statement.query_map([id(place, from), id(place, next)], |row| row.get(0))?;
                rows.collect::<rusqlite::Result<Vec<i64>>>()
            })?;
            for row in self.fitting(&ids, &fit)? {
                let Some(kind) = fit.kinds.get(&row.kind) else { continue };
                found.extend(self.summary(row, kind)?);
            }
        }
        Ok(found)
    }
}
