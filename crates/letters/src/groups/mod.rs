//! Failure groups: letters of one cause, counted.

mod say;
mod standing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use redrive_core::Timestamp;

use crate::Fingerprint;
use crate::error::Error;
use crate::index::Index;
use crate::index::kinds::FailureRow;
use crate::query::{Fit, Query};
use crate::state::{GroupWish, State};
use crate::stats::{self, Tally};

pub use say::{Said, Unsaid, say};
pub use standing::{Seen, Standing};

/// Letters of one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub failure: Fingerprint,
    /// The topic that was consumed, or the letter topic where that is not known.
    pub source: String,
    /// The consumer group.
    pub group: Option<String>,
    /// The type of the error.
    pub error_type: Option<String>,
    /// What it says, with values replaced.
    pub message: String,
    /// The letter topics.
    pub topics: BTreeSet<Arc<str>>,
    /// How many letters it has.
    pub count: u64,
    /// How many of them are open.
    pub open: u64,
    /// How many different keys they have; those outside of a time that was asked for included.
    pub keys: u64,
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many there were, by the hour since 1970, in order.
    pub hours: Vec<(i64, u64)>,
    /// What is the matter with it.
    pub standing: Standing,
    /// What somebody said of it.
    pub said: Option<GroupWish>,
}

/// Of more groups than this all letters are looked at.
const FEW: usize = 50;

/// One hour, in milliseconds.
pub const HOUR: i64 = crate::index::write::HOUR;

impl Index {
    /// The failure groups that have letters which are meant, those with the most open letters first.
    pub fn groups(&mut self, query: &Query, now: Timestamp) -> Result<Vec<Group>, Error> {
        let fit = Fit::of(query, &self.kinds()?)?;
        let tallies = self.tallies(query, &fit)?;
        let mut seen = query.is_everything().then(|| seen(&fit, &tallies));
        let mut groups: BTreeMap<Fingerprint, Group> = BTreeMap::new();
        for tally in tallies {
            let Some(kind) = fit.kinds.get(&tally.kind).filter(|_| tally.count > 0) else { continue };
            let group = groups.entry(kind.failure.fingerprint).or_insert_with(|| Group::of(&kind.failure));
            group.topics.insert(kind.topic.clone());
            group.count += tally.count;
            group.open += if kind.state == State::Open { tally.count } else { 0 };
            group.first = group.first.min(Timestamp::from_millis(tally.first));
            group.last = group.last.max(Timestamp::from_millis(tally.last));
            group.hours.extend(tally.hours);
        }
        for said in self.group_wishes()? {
            if let Some(group) = groups.get_mut(&said.failure) {
                group.said = Some(said);
            }
        }
        let seen = match seen.take() {
            Some(seen) => seen,
            None => self.seen(groups.keys().copied().collect())?,
        };
        let dealt = self.dealings()?;
        let mut groups: Vec<Group> = groups.into_values().collect();
        for group in &mut groups {
            stats::join_hours(&mut group.hours);
            if let Some(seen) = seen.get(&group.failure) {
                let seen = Seen { dealt: dealt.get(&group.failure).copied(), ..*seen };
                group.standing = Standing::of(group.said.as_ref(), &seen, now);
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse((group.open, group.count, group.last, group.failure)));
        Ok(groups)
    }
}

impl Index {
    /// What was seen of failure groups, whichever of their letters are asked for.
    fn seen(&mut self, failures: Vec<Fingerprint>) -> Result<HashMap<Fingerprint, Seen>, Error> {
        // Few are looked for by name; of many, all are looked at.
        let failures = if failures.len() > FEW { Vec::new() } else { failures };
        let query = Query { failures, ..Query::default() };
        let fit = Fit::of(&query, &self.kinds()?)?;
        let tallies = self.tallies(&query, &fit)?;
        Ok(seen(&fit, &tallies))
    }
}

/// What was seen of failure groups, all of whose letters are counted here; not when they were dealt with.
fn seen(fit: &Fit, tallies: &[Tally]) -> HashMap<Fingerprint, Seen> {
    let mut all: HashMap<Fingerprint, Seen> = HashMap::new();
    for tally in tallies.iter().filter(|tally| tally.count > 0) {
        let Some(kind) = fit.kinds.get(&tally.kind) else { continue };
        let (first, last) = (Timestamp::from_millis(tally.first), Timestamp::from_millis(tally.last));
        let new = Seen { first, left: None, dealt: None };
        let seen = all.entry(kind.failure.fingerprint).or_insert(new);
        seen.first = seen.first.min(first);
        if !kind.is_dealt_with {
            let (from, to) = seen.left.unwrap_or((first, last));
            seen.left = Some((from.min(first), to.max(last)));
        }
    }
    all
}

impl Group {
    fn of(failure: &FailureRow) -> Self {
        Self {
            failure: failure.fingerprint,
            source: failure.source.clone(),
            group: failure.consumer.clone(),
            error_type: failure.error_type.clone(),
            message: failure.message.clone(),
            topics: BTreeSet::new(),
            count: 0,
            open: 0,
            keys: failure.keys,
            first: Timestamp::from_millis(i64::MAX),
            last: Timestamp::from_millis(i64::MIN),
            hours: Vec::new(),
            standing: Standing::Ongoing,
            said: None,
        }
    }
}
