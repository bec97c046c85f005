//! Letters that a finite retention deletes though nobody has dealt with them.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::{Timestamp, Topic};
use redrive_kafka::TopicState;

use crate::stats::By;
use crate::{Error, Index, Query, Sort, State};

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
        /// When the first goes, at the earliest.
        first: Timestamp,
        /// How many go within a day.
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
            let query = Query {
                topics: vec![state.name.to_string()],
                states: vec![State::Open],
                sort: Sort::Oldest,
                ..Query::default()
            };
            let Some(oldest) = self.page(&query, 1, None)?.letters.into_iter().next().filter(|_| deletes)
            else {
                continue;
            };
            let open = self.how_many(&query)?;
            let risk = |limit| AtRisk { topic: state.name.clone(), open, limit };
            if let Some(millis) = limit(state, "retention.ms") {
                let kept = Duration::from_millis(millis);
                let before = Some(earlier(now.plus(SOON), kept));
                let soon = self.how_many(&Query { before, ..query.clone() })?;
                all.push(risk(Limit::Time { kept, first: oldest.time.plus(kept), soon }));
            }
            if let Some(bytes) = limit(state, "retention.bytes") {
                all.push(risk(Limit::Size { bytes }));
            }
        }
        Ok(all)
    }

    fn how_many(&mut self, query: &Query) -> Result<u64, Error> {
        Ok(self.stats(query, By::Topic)?.iter().map(|bar| bar.count).sum())
    }
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
