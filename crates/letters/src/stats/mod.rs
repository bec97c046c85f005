//! Letters in numbers: over time, by error, topic or group.

mod tally;

use std::collections::BTreeMap;

use redrive_core::Timestamp;

use crate::error::Error;
use crate::groups::HOUR;
use crate::index::Index;
use crate::index::kinds::Kind;
use crate::query::{Fit, Query};
use crate::state::State;

pub(crate) use tally::Tally;

/// What letters are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The hour in which they became letters.
    Hour,
    /// The day, in UTC.
    Day,
    /// The type of the error.
    Error,
    /// The topic that was consumed.
    Topic,
    /// The consumer group.
    Group,
}

impl std::str::FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            "error" => Ok(Self::Error),
            "topic" => Ok(Self::Topic),
            "group" => Ok(Self::Group),
            _ => Err(format!("`{text}` cannot be counted by; there are hour, day, error, topic, group")),
        }
    }
}

/// How many letters have something in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// What they have in common, unless it is the time.
    pub name: String,
    /// When that time begins.
    pub from: Option<Timestamp>,
    /// How many.
    pub count: u64,
    /// How many of them are open.
    pub open: u64,
    /// How many there were, by the hour since 1970, in order.
    pub hours: Vec<(i64, u64)>,
}

impl Index {
    /// How many letters there are of those that are meant. Times are in order and without gaps, everything else by
    /// the number of letters.
    pub fn stats(&mut self, query: &Query, by: By) -> Result<Vec<Bar>, Error> {
        let fit = Fit::of(query, &self.kinds()?)?;
        let mut bars: BTreeMap<(i64, String), Bar> = BTreeMap::new();
        for tally in self.tallies(query, &fit)? {
            let Some(kind) = fit.kinds.get(&tally.kind) else { continue };
            for (hour, count) in tally.hours {
                let key = key(by, kind, hour);
                let bar = bars.entry(key.clone()).or_insert_with(|| Bar::of(by, key));
                bar.count += count;
                bar.open += if kind.state == State::Open { count } else { 0 };
                bar.hours.push((hour, count));
            }
        }
        bars.values_mut().for_each(|bar| join_hours(&mut bar.hours));
        let mut bars: Vec<Bar> = match by {
            By::Hour | By::Day => without_gaps(by, bars),
            By::Error | By::Topic | By::Group => bars.into_values().collect(),
        };
        if !matches!(by, By::Hour | By::Day) {
            bars.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
        }
        Ok(bars)
    }
}

/// Puts hours in order, each once.
pub(crate) fn join_hours(hours: &mut Vec<(i64, u64)>) {
    hours.sort_unstable_by_key(|(hour, _)| *hour);
    hours.dedup_by(|next, last| {
        let is_same = next.0 == last.0;
        last.1 += if is_same { next.1 } else { 0 };
        is_same
    });
}

/// The most steps of time between which there are no gaps: a letter with a time of long ago must not make millions.
const STEPS: i64 = 10_000;

fn without_gaps(by: By, mut bars: BTreeMap<(i64, String), Bar>) -> Vec<Bar> {
    let step = step(by);
    let ends = bars.keys().next().zip(bars.keys().next_back()).map(|(first, last)| (first.0, last.0));
    if let Some((first, last)) = ends.filter(|(first, last)| last.saturating_sub(*first) / step <= STEPS) {
        for time in (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let key = (time, String::new());
            bars.entry(key.clone()).or_insert_with(|| Bar::of(by, key));
        }
    }
    bars.into_values().collect()
}

fn step(by: By) -> i64 {
    match by {
        By::Day => 24 * HOUR,
        By::Hour | By::Error | By::Topic | By::Group => HOUR,
    }
}

fn key(by: By, kind: &Kind, hour: i64) -> (i64, String) {
    let time = hour.saturating_mul(HOUR);
    match by {
        By::Hour | By::Day => (time.div_euclid(step(by)).saturating_mul(step(by)), String::new()),
        By::Error => (0, kind.failure.error_type.clone().unwrap_or_else(|| "-".to_owned())),
        By::Topic => (0, kind.failure.source.clone()),
        By::Group => (0, kind.failure.consumer.clone().unwrap_or_else(|| "-".to_owned())),
    }
}

impl Bar {
    fn of(by: By, (time, name): (i64, String)) -> Self {
        let from = matches!(by, By::Hour | By::Day).then(|| Timestamp::from_millis(time));
        Self { name, from, count: 0, open: 0, hours: Vec::new() }
    }
}
