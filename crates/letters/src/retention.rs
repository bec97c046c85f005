//! Letters that a finite retention deletes though nobody has dealt with them.
//!
//! Kafka goes by the timestamps of records, not by what a letter says of itself: a letter of Redrive has the timestamp
//! of the record that failed, which may be old. It deletes whole segments, when the newest record in one is too
//! old; so a letter may stay longer than is told here, and never goes earlier.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::{Timestamp, Topic};
use redrive_kafka::TopicState;
use rusqlite::params;

use crate::index::kinds::Kind;
use crate::{Error, Index, State};

/// It is told how many go within this time.
const SOON: Duration = Duration::from_secs(24 * 3_600);

/// Open letters of a topic that does not keep them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtRisk {
    /// The letter topic.
    pub topic: Topic,
    /// How many letters of it are open.
    pub open: u64,
    /// What deletes them.
    pub limit: Limit,
}

/// What deletes letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Their time.
    Time {
        /// How long they are kept.
        kept: Duration,
        /// When the first may be deleted: not before that.
        first: Timestamp,
        /// How many may be deleted within a day.
        soon: u64,
    },
    /// The size of their topic.
    Size {
        /// How many bytes are kept of a partition.
        bytes: u64,
    },
}

impl Limit {
    /// The setting of the topic.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Time { .. } => "retention.ms",
            Self::Size { .. } => "retention.bytes",
        }
    }
}

impl Index {
    /// The letter topics that there are letters of.
    pub fn letter_topics(&mut self) -> Result<Vec<Topic>, Error> {
        let kinds = self.kinds()?;
        let names: BTreeSet<&str> = kinds.iter().map(|kind| &*kind.topic).collect();
        Ok(names.into_iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The open letters that these topics do not keep.
    pub fn at_risk<'a>(
        &mut self,
        topics: impl IntoIterator<Item = &'a TopicState>,
        now: Timestamp,
    ) -> Result<Vec<AtRisk>, Error> {
        let mut all = Vec::new();
        for state in topics {
            let deletes = value(state, "cleanup.policy").is_none_or(|policy| policy.contains("delete"));
            if !deletes {
                continue;
            }
            let is_open = |kind: &&Kind| kind.state == State::Open && *kind.topic == *state.name.as_str();
            let kinds = self.kinds()?;
            let kinds: Vec<&Kind> = kinds.iter().filter(is_open).collect();
            let open: u64 = kinds.iter().map(|kind| kind.count).sum();
            let risk = |limit| AtRisk { topic: state.name.clone(), open, limit };
            if open == 0 {
                continue;
            }
            if let Some(millis) = limit(state, "retention.ms") {
                let kept = Duration::from_millis(millis);
                let stamps = self.stamps(&kinds, earlier(now.plus(SOON), kept))?;
                let first = stamps.oldest.plus(kept);
                all.push(risk(Limit::Time { kept, first, soon: stamps.before }));
            }
            if let Some(bytes) = limit(state, "retention.bytes") {
                all.push(risk(Limit::Size { bytes }));
            }
        }
        Ok(all)
    }

    /// The timestamps of the records of these kinds of letters.
    fn stamps(&self, kinds: &[&Kind], before: Timestamp) -> Result<Stamps, Error> {
        let mut stamps = Stamps { oldest: Timestamp::from_millis(i64::MAX), before: 0 };
        self.ask(|connection| {
            let mut read = connection.prepare_cached(include_str!("index/stamps.sql"))?;
            for kind in kinds {
                let (oldest, count): (Option<i64>, i64) =
                    read.query_row(params![kind.id, before.millis()], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let oldest = oldest.map_or(stamps.oldest, Timestamp::from_millis);
                stamps.oldest = stamps.oldest.min(oldest);
                stamps.before += u64::try_from(count).unwrap_or(0);
            }
            Ok(())
        })?;
        Ok(stamps)
    }
}

struct Stamps {
    oldest: Timestamp,
    /// How many are before a time.
    before: u64,
}

fn earlier(time: Timestamp, length: Duration) -> Timestamp {
    let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.millis().saturating_sub(millis))
}

fn value<'a>(state: &'a TopicState, setting: &str) -> Option<&'a str> {
    state.settings.get(setting).map(|setting| setting.value.as_str())
}

/// A limit that is one: Kafka's -1 is none.
fn limit(state: &TopicState, setting: &str) -> Option<u64> {
    value(state, setting)?.trim().parse().ok()
}
