//! Which kinds, and which letters of them, a question means.

use hashbrown::HashMap;
use regex::bytes::Regex;

use super::Query;
use super::row::Row;
use super::words::Words;
use crate::error::Error;
use crate::index::codes;
use crate::index::entry::{ATTEMPTS, KEY, hash};
use crate::index::kinds::Kind;

/// A question, made ready.
pub(crate) struct Fit {
    /// The kinds that can have such letters, by their numbers.
    pub(crate) kinds: HashMap<i64, Kind>,
    /// How many letters those kinds have.
    pub(crate) count: u64,
    /// How many letters there are at all.
    pub(crate) all: u64,
    /// The times that are meant: from, and before.
    pub(crate) times: (i64, i64),
    keys: Vec<(i64, Vec<u8>)>,
    pattern: Option<Regex>,
    lanes: Vec<(i64, Vec<u8>)>,
    leader: Option<(i32, i64)>,
    attempts: Option<(u32, u32)>,
    pub(super) words: Option<Words>,
}

impl Fit {
    pub(crate) fn of(query: &Query, kinds: &[Kind]) -> Result<Self, Error> {
        let fitting = kinds.iter().filter(|kind| fits(query, kind));
        let fitting: HashMap<i64, Kind> = fitting.map(|kind| (kind.id, kind.clone())).collect();
        let pattern = query.key_pattern.as_deref().map(pattern);
        let hashed = |values: &[Vec<u8>]| {
            let kept = |value: &Vec<u8>| (hash(value), value[..value.len().min(KEY)].to_vec());
            values.iter().map(kept).collect()
        };
        let (least, most) = (query.least_attempts.unwrap_or(0), query.most_attempts.unwrap_or(u32::MAX));
        // Below that, kinds tell.
        let is_beyond = |limit: u32| i64::from(limit) > ATTEMPTS;
        let by_row = is_beyond(least) || (query.most_attempts.is_some() && i64::from(most) >= ATTEMPTS);
        Ok(Self {
            count: fitting.values().map(|kind| kind.count).sum(),
            all: kinds.iter().map(|kind| kind.count).sum(),
            kinds: fitting,
            times: (
                query.after.map_or(i64::MIN, redrive_core::Timestamp::millis),
                query.before.map_or(i64::MAX, redrive_core::Timestamp::millis),
            ),
            keys: hashed(&query.keys),
            pattern: pattern.transpose()?,
            lanes: hashed(&query.lanes),
            leader: query.leader.as_ref().map(|leader| (leader.partition, leader.offset)),
            attempts: by_row.then_some((least, most)),
            words: query.text.as_deref().map(Words::of),
        })
    }

    /// Whether letters have to be looked at one by one.
    pub(crate) fn looks_at_letters(&self) -> bool {
        !self.keys.is_empty()
            || self.pattern.is_some()
            || !self.lanes.is_empty()
            || self.leader.is_some()
            || self.attempts.is_some()
            || self.words.is_some()
    }

    /// Whether a letter with this key can be meant: what is found out without the rest of its row.
    pub(super) fn may_take(&self, key: Option<&[u8]>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| key.is_some_and(|key| pattern.is_match(key)))
    }

    pub(super) fn keys(&self) -> &[(i64, Vec<u8>)] {
        &self.keys
    }

    pub(super) fn lanes(&self) -> &[(i64, Vec<u8>)] {
        &self.lanes
    }

    pub(super) fn leader(&self) -> Option<i64> {
        self.leader.map(|(_, offset)| offset)
    }

    /// Whether a letter is meant, as far as its row tells: not what its error says.
    pub(super) fn takes(&self, row: &Row) -> bool {
        let Some(kind) = self.kinds.get(&row.kind) else { return false };
        let is_one_of = |values: &[(i64, Vec<u8>)], hash: Option<i64>, value: Option<&Vec<u8>>| {
            values.is_empty() || values.iter().any(|(h, v)| hash == Some(*h) && value == Some(v))
        };
        let lane = if row.flags & codes::LANE_IS_KEY == 0 {
            (row.lane_hash, row.lane.as_ref())
        } else {
            (row.hash, row.key.as_ref())
        };
        let attempts = row.attempts(kind);
        row.time >= self.times.0
            && row.time < self.times.1
            && is_one_of(&self.keys, row.hash, row.key.as_ref())
            && is_one_of(&self.lanes, lane.0, lane.1)
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| row.key.as_ref().is_some_and(|key| pattern.is_match(key)))
            && self.leader.is_none_or(|(partition, offset)| {
                row.leader == Some(offset) && row.partition == Some(partition)
            })
            && self.attempts.is_none_or(|(least, most)| (least..=most).contains(&attempts))
    }
}

/// A regular expression for keys.
pub fn pattern(pattern: &str) -> Result<Regex, Error> {
    Regex::new(pattern)
        .map_err(|source| Error::Pattern { pattern: pattern.to_owned(), source: Box::new(source) })
}

fn fits(query: &Query, kind: &Kind) -> bool {
    let failure = &kind.failure;
    let any = |values: &[String], of: &[Option<&str>]| {
        values.is_empty() || values.iter().any(|value| of.contains(&Some(value.as_str())))
    };
    let leader = query.leader.as_ref();
    any(&query.topics, &[Some(&kind.topic), Some(&failure.source)])
        && any(&query.groups, &[failure.consumer.as_deref()])
        && (query.failures.is_empty() || query.failures.contains(&failure.fingerprint))
        && (query.classes.is_empty() || kind.class.is_some_and(|class| query.classes.contains(&class)))
        && (query.reasons.is_empty() || kind.reason.is_some_and(|reason| query.reasons.contains(&reason)))
        && (query.dialects.is_empty() || query.dialects.contains(&kind.dialect))
        && (query.states.is_empty() || query.states.contains(&kind.state))
        && leader.is_none_or(|leader| failure.source == leader.topic.as_str())
        && query.least_attempts.is_none_or(|least| kind.attempts >= i64::from(least).min(ATTEMPTS))
        && query.most_attempts.is_none_or(|most| kind.attempts <= i64::from(most))
}
