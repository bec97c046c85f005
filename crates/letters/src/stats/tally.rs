//! How many letters of each kind are meant, and when they became letters. What is counted as letters come in answers
//! most questions; only the hours at the ends of a time that is asked for are counted letter by letter.

use hashbrown::{HashMap, HashSet};
use rusqlite::Connection;

use crate::error::Error;
use crate::groups::HOUR;
use crate::index::Index;
use crate::index::kinds::{Hour, Kind};
use crate::query::{Fit, Query};

/// How many letters are looked at one by one, where it must be.
const MOST: u64 = 50_000;

/// Letters that are meant, of kinds that differ in their attempts alone.
pub(crate) struct Tally {
    /// One of those kinds.
    pub(crate) kind: i64,
    pub(crate) count: u64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// By the hour, in order.
    pub(crate) hours: Vec<(i64, u64)>,
}

impl Index {
    pub(crate) fn tallies(&mut self, query: &Query, fit: &Fit) -> Result<Vec<Tally>, Error> {
        if query.header.is_some() {
            return Err(Error::TooBroad(
                "letters are not counted by header; list them with --header".to_owned(),
            ));
        }
        if !query.ids.is_empty() || fit.looks_at_letters() {
            return self.one_by_one(query, fit);
        }
        let (all, hours) = (self.kinds()?, self.hours()?);
        self.ask(|connection| by_base(connection, fit, &all, &hours))
    }

    fn one_by_one(&self, query: &Query, fit: &Fit) -> Result<Vec<Tally>, Error> {
        let times = match self.times(query, fit)? {
            Some(times) => times,
            None if fit.count <= MOST => self.all_times(fit)?,
            None => {
                return Err(Error::TooBroad(format!(
                    "this asks about each of {} letters, and at most {MOST} are counted so; \
                     narrow it down with --topic, --group, --failure or --since",
                    fit.count
                )));
            }
        };
        let mut kinds: HashMap<i64, Vec<i64>> = HashMap::new();
        for (kind, time) in times {
            kinds.entry(kind).or_default().push(time);
        }
        Ok(kinds.into_iter().map(|(kind, times)| Tally::of(kind, times)).collect())
    }
}

impl Tally {
    fn of(kind: i64, mut times: Vec<i64>) -> Self {
        times.sort_unstable();
        let hours = times.chunk_by(|a, b| a.div_euclid(HOUR) == b.div_euclid(HOUR));
        Self {
            kind,
            count: times.len() as u64,
            first: times.first().copied().unwrap_or(i64::MAX),
            last: times.last().copied().unwrap_or(i64::MIN),
            hours: hours.map(|hour| (hour[0].div_euclid(HOUR), hour.len() as u64)).collect(),
        }
    }
}

fn by_base(connection: &Connection, fit: &Fit, all: &[Kind], hours: &[Hour]) -> rusqlite::Result<Vec<Tally>> {
    let mut bases: HashMap<i64, Vec<i64>> = HashMap::new();
    for kind in fit.kinds.values() {
        bases.entry(kind.base).or_default().push(kind.id);
    }
    // What was counted counts where all kinds of a base are meant.
    let partly: HashSet<i64> =
        all.iter().filter(|kind| !fit.kinds.contains_key(&kind.id)).map(|kind| kind.base).collect();
    let mut tallies = Vec::with_capacity(bases.len());
    for (base, kinds) in bases {
        if partly.contains(&base) {
            let mut times = Vec::new();
            for kind in kinds.iter().copied() {
                times.extend(of_kind(connection, kind, fit.times)?);
            }
            tallies.push(Tally::of(kinds[0], times));
            continue;
        }
        let from = hours.partition_point(|hour| hour.base < base);
        let to = hours.partition_point(|hour| hour.base <= base);
        tallies.push(whole(connection, &kinds, &hours[from..to], fit.times)?);
    }
    tallies.retain(|tally| tally.count > 0);
    Ok(tallies)
}

/// What was counted of a base; only the hours at the ends of the time are counted letter by letter.
fn whole(
    connection: &Connection,
    kinds: &[i64],
    hours: &[Hour],
    (from, before): (i64, i64),
) -> rusqlite::Result<Tally> {
    let mut tally = Tally { kind: kinds[0], count: 0, first: i64::MAX, last: i64::MIN, hours: Vec::new() };
    for hour in hours {
        let (begin, end) = (hour.hour.saturating_mul(HOUR), (hour.hour + 1).saturating_mul(HOUR));
        if end <= from || begin >= before {
            continue;
        }
        let mut count = hour.count;
        if begin < from || end > before {
            count = 0;
            for kind in kinds {
                let times = of_kind(connection, *kind, (begin.max(from), end.min(before)))?;
                count += times.len() as u64;
            }
        }
        if count > 0 {
            tally.count += count;
            tally.hours.push((hour.hour, count));
        }
    }
    if tally.count > 0 {
        let mut first = connection.prepare_cached(include_str!("first.sql"))?;
        let mut last = connection.prepare_cached(include_str!("last.sql"))?;
        for kind in kinds {
            let one: Option<i64> = first.query_row([*kind, from], |row| row.get(0))?;
            tally.first = tally.first.min(one.unwrap_or(i64::MAX));
            let one: Option<i64> = last.query_row([*kind, before], |row| row.get(0))?;
            tally.last = tally.last.max(one.unwrap_or(i64::MIN));
        }
    }
    Ok(tally)
}

fn of_kind(connection: &Connection, kind: i64, (from, before): (i64, i64)) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(include_str!("times.sql"))?;
    let rows = statement.query_map([kind, from, before], |row| row.get(0))?;
    rows.collect()
}
