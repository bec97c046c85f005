//! All letters that a question means, in the order in which they lie; and those of them with a header.

use redrive_core::Origin;
use redrive_kafka::{Picker, Settings};

use super::fit::Fit;
use super::{Cursor, Page, Query};
use crate::error::Error;
use crate::index::Index;

/// How many letters may be read back from Kafka to look at their headers.
const MOST: u64 = 20_000;

impl Index {
    /// All letters that are meant, by topic, partition and offset. A header that is asked for is not looked at.
    pub fn select(&mut self, query: &Query) -> Result<Vec<Origin>, Error> {
        let fit = Fit::of(query, &self.kinds()?)?;
        let mut ids = match self.candidates(query, &fit, Some(usize::MAX))? {
            Some(candidates) => self.fitting(&candidates, &fit)?.into_iter().map(|row| row.id).collect(),
            None => self.of_kinds(&fit)?,
        };
        ids.sort_unstable();
        let mut letters = Vec::with_capacity(ids.len());
        let mut last: Option<(i64, Origin)> = None;
        for id in ids {
            let place = crate::index::place::place_of(id);
            let at = match &last {
                Some((known, at)) if *known == place => Some(at.clone()),
                _ => self.located(id)?,
            };
            let Some(at) = at else { continue };
            letters.push(Origin { offset: crate::index::place::offset_of(id), ..at.clone() });
            last = Some((place, at));
        }
        letters.sort_unstable();
        Ok(letters)
    }

    /// The kinds and times of letters that are found one by one; none if they are too many.
    pub(crate) fn times(&self, query: &Query, fit: &Fit) -> Result<Option<Vec<(i64, i64)>>, Error> {
        let Some(candidates) = self.candidates(query, fit, None)? else { return Ok(None) };
        let rows = self.fitting(&candidates, fit)?;
        Ok(Some(rows.into_iter().map(|row| (row.kind, row.time)).collect()))
    }

    /// The same for all letters of the kinds that fit.
    pub(crate) fn all_times(&self, fit: &Fit) -> Result<Vec<(i64, i64)>, Error> {
        let rows = self.fitting(&self.of_kinds(fit)?, fit)?;
        Ok(rows.into_iter().map(|row| (row.kind, row.time)).collect())
    }

    fn of_kinds(&self, fit: &Fit) -> Result<Vec<i64>, Error> {
        let mut ids: Vec<i64> = Vec::new();
        for kind in fit.kinds.keys() {
            self.ask(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT id FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time >= ?2 AND time <= ?3",
                )?;
                let rows = statement
                    .query_map([*kind, fit.times.0, fit.times.1.saturating_sub(1)], |row| row.get(0))?;
                for id in rows {
                    ids.push(id?);
                }
                Ok(())
            })?;
        }
        if fit.looks_at_letters() {
            ids = self.fitting(&ids, fit)?.into_iter().map(|row| row.id).collect();
        }
        Ok(ids)
    }
}

/// The same question without a header: where one is asked for it is looked for in Kafka, and the letters that have it
/// are named. None if there are none.
pub async fn without_header(
    index: &mut Index,
    settings: &Settings,
    query: &Query,
) -> Result<Option<Query>, Error> {
    if query.header.is_none() {
        return Ok(Some(query.clone()));
    }
    let (mut ids, mut next) = (Vec::new(), None);
    loop {
        let page = with_header(index, settings, query, 1_000, next).await?;
        ids.extend(page.letters.into_iter().map(|letter| letter.at));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok((!ids.is_empty()).then(|| Query { ids, header: None, ..query.clone() }))
}

/// A page of letters that have a header, which is looked for in Kafka. A question that leaves too many letters to
/// look at is refused.
pub async fn with_header(
    index: &mut Index,
    settings: &Settings,
    query: &Query,
    most: usize,
    from: Option<Cursor>,
) -> Result<Page, Error> {
    let Some((name, wanted)) = &query.header else { return index.page(query, most, from) };
    let picker = Picker::new(settings)?;
    let mut page = Page { letters: Vec::new(), next: from, total: None };
    let mut looked = 0;
    loop {
        let more = index.page(query, 1_000, page.next)?;
        looked += more.letters.len() as u64;
        if more.total.is_some_and(|total| total > MOST) || looked > MOST {
            return Err(Error::TooBroad(format!(
                "a header is looked for in Kafka, letter by letter, and this asks about more than {MOST}; \
                 narrow it down with --topic, --group, --failure, --since or --key"
            )));
        }
        page.next = more.next;
        for letter in more.letters {
            let picked = picker.pick(letter.at.clone(), letter.at.offset).await?;
            let Some(record) = picked.into_iter().find(|record| record.at == letter.at) else { continue };
            let mut values = record.headers.all(name);
            let has = match wanted.as_slice() {
                [] => values.next().is_some(),
                some => values.any(|found| found.is_some_and(|found| some.iter().any(|one| found == one))),
            };
            drop(values);
            if !has {
                continue;
            }
            let here = Cursor::after(&letter, query.sort);
            page.letters.push(letter);
            if page.letters.len() >= most {
                page.next = Some(here);
                return Ok(page);
            }
        }
        if page.next.is_none() {
            return Ok(page);
        }
    }
}
