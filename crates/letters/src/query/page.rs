//! A page of letters, and where the next one begins.

use std::fmt;
use std::str::FromStr;

use super::fit::Fit;
use super::row::{Row, message, row};
use super::walk::{BUDGET, Mark, stretch};
use super::{Query, Sort, Summary};
use crate::error::Error;
use crate::index::Index;
use crate::index::entry::ATTEMPTS;

/// Some of the letters that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In the order that was asked for. They may be fewer than asked for though there are more: where few letters
    /// of many fit, an answer says how far it came rather than take its time.
    pub letters: Vec<Summary>,
    /// Where the next page begins, unless there is nothing more.
    pub next: Option<Cursor>,
    /// How many letters fit in all, where that is known without counting.
    pub total: Option<u64>,
}

/// A place in a list: what comes next is beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    attempts: i64,
    mark: Mark,
}

impl Cursor {
    /// Right behind a letter of a list in this order.
    pub(super) fn after(letter: &Summary, sort: Sort) -> Self {
        let attempts = match sort {
            Sort::Attempts => i64::from(letter.attempts).min(ATTEMPTS),
            Sort::Newest | Sort::Oldest => 0,
        };
        Self { attempts, mark: Mark { time: letter.time.millis(), id: letter.id } }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.attempts, self.mark.time, self.mark.id)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadCursor(text.to_owned());
        let parts: Option<Vec<i64>> = text.split('.').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some([attempts, time, id]) => {
                Ok(Self { attempts: *attempts, mark: Mark { time: *time, id: *id } })
            }
            _ => Err(bad()),
        }
    }
}

impl Index {
    /// At most so many letters, beyond a place in the list. A header that is asked for is not looked at:
    /// [`with_header`](super::with_header) does.
    pub fn page(&mut self, query: &Query, most: usize, from: Option<Cursor>) -> Result<Page, Error> {
        let fit = Fit::of(query, &self.kinds()?)?;
        if fit.kinds.is_empty() || most == 0 {
            return Ok(Page { letters: Vec::new(), next: None, total: Some(0) });
        }
        let found = match self.candidates(query, &fit, None)? {
            Some(candidates) => self.among(&candidates, &fit, query.sort, from, most)?,
            None => self.walk(&fit, query.sort, from, most)?,
        };
        let is_counted = !fit.looks_at_letters() && query.ids.is_empty() && fit.times == (i64::MIN, i64::MAX);
        let total = found.total.or(is_counted.then_some(fit.count));
        let mut letters = Vec::with_capacity(found.rows.len());
        for row in found.rows {
            let Some(kind) = fit.kinds.get(&row.kind) else { continue };
            letters.extend(self.summary(row, kind)?);
        }
        Ok(Page { letters, next: found.next, total })
    }

    /// Those of some letters that fit.
    pub(super) fn fitting(&self, candidates: &[i64], fit: &Fit) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for id in candidates {
            let found = self.ask(|connection| row(connection, *id))?;
            let Some(row) = found.filter(|row| fit.takes(row)) else { continue };
            if self.says(&row, fit)? {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn among(
        &self,
        candidates: &[i64],
        fit: &Fit,
        sort: Sort,
        from: Option<Cursor>,
        most: usize,
    ) -> Result<Found, Error> {
        let mut rows = self.fitting(candidates, fit)?;
        let total = rows.len() as u64;
        let place = |row: &Row| {
            let attempts = match sort {
                Sort::Attempts => fit.kinds.get(&row.kind).map_or(0, |kind| kind.attempts),
                Sort::Newest | Sort::Oldest => 0,
            };
            (attempts, row.time, row.id)
        };
        rows.sort_unstable_by_key(place);
        if sort != Sort::Oldest {
            rows.reverse();
        }
        if let Some(Cursor { attempts, mark }) = from {
            let mark = (attempts, mark.time, mark.id);
            rows.retain(|row| if sort == Sort::Oldest { place(row) > mark } else { place(row) < mark });
        }
        let more = rows.len() > most;
        rows.truncate(most);
        let next = rows.last().filter(|_| more).map(|row| {
            let (attempts, time, id) = place(row);
            Cursor { attempts, mark: Mark { time, id } }
        });
        Ok(Found { rows, next, total: Some(total) })
    }

    /// Goes through letters in order, as far as need be.
    fn walk(&self, fit: &Fit, sort: Sort, from: Option<Cursor>, most: usize) -> Result<Found, Error> {
        let mut found = Found { rows: Vec::new(), next: None, total: None };
        let mut budget = BUDGET;
        for (attempts, kinds) in levels(fit, sort) {
            let mut mark = match from {
                Some(from) if attempts > from.attempts => continue,
                Some(from) if attempts == from.attempts => Some(from.mark),
                Some(_) | None => None,
            };
            loop {
                let left = most - found.rows.len();
                // Where many are looked at for one that fits, many at a time.
                let length = if fit.looks_at_letters() { (4 * left).clamp(200, 1_000) } else { left };
                let newest = sort != Sort::Oldest;
                let went = self.ask(|connection| stretch(connection, fit, &kinds, newest, mark, length))?;
                budget = budget.saturating_sub(went.looked);
                for row in went.rows {
                    if !fit.takes(&row) || !self.says(&row, fit)? {
                        continue;
                    }
                    let here = Cursor { attempts, mark: Mark { time: row.time, id: row.id } };
                    found.rows.push(row);
                    if found.rows.len() >= most {
                        found.next = Some(here);
                        return Ok(found);
                    }
                }
                mark = went.mark;
                let Some(mark) = mark else { break };
                if budget == 0 {
                    found.next = Some(Cursor { attempts, mark });
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Whether a letter's error says what is asked for.
    fn says(&self, row: &Row, fit: &Fit) -> Result<bool, Error> {
        let Some(words) = &fit.words else { return Ok(true) };
        let error_type = fit.kinds.get(&row.kind).and_then(|kind| kind.failure.error_type.as_deref());
        let message = self.ask(|connection| message(connection, row))?;
        Ok(words.are_in(error_type.unwrap_or_default(), message.as_deref().unwrap_or_default()))
    }
}

struct Found {
    rows: Vec<Row>,
    next: Option<Cursor>,
    total: Option<u64>,
}

/// The kinds that are walked through together, in the order of their walks.
fn levels(fit: &Fit, sort: Sort) -> Vec<(i64, Vec<i64>)> {
    let mut kinds: Vec<_> = fit.kinds.values().collect();
    if sort != Sort::Attempts {
        return vec![(0, kinds.iter().map(|kind| kind.id).collect())];
    }
    kinds.sort_unstable_by_key(|kind| std::cmp::Reverse(kind.attempts));
    let levels = kinds.chunk_by(|a, b| a.attempts == b.attempts);
    levels.map(|level| (level[0].attempts, level.iter().map(|kind| kind.id).collect())).collect()
}
