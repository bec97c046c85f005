//! Where a source ends without a record: its last ones were removed, or are marks of transactions. The consumer
//! never tells that it has come past them, so what waits for that would wait for the next record.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::Now;
use redrive_kafka::{Error as KafkaError, Picker};
use tracing::debug;

use super::News;
use super::engine::{Engine, chain};
use super::shelves::Shelved;

/// How long the reader has to stand still before it is asked why.
const STILL: Duration = Duration::from_secs(1);

/// Where readers stood when they were last looked at.
#[derive(Default)]
pub(super) struct Ends {
    stood: BTreeMap<i32, i64>,
    next: Option<Duration>,
    is_asking: bool,
    /// Made when it is first needed, which is seldom.
    picker: Option<Picker>,
}

impl Ends {
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.next.filter(|_| !self.is_asking)
    }
}

impl Engine {
    /// Looks for an end behind a reader that stands still while something waits for it to come further.
    pub(super) fn look_for_ends(&mut self, now: Now) {
        if self.ends.is_asking || self.ends.next.is_some_and(|next| now.steady < next) {
            return;
        }
        let behind: BTreeMap<i32, i64> = self.flow.behind().collect();
        self.ends.next = (!behind.is_empty()).then(|| now.steady.saturating_add(STILL));
        let before = std::mem::replace(&mut self.ends.stood, behind);
        let still = self.ends.stood.iter().find(|(partition, at)| before.get(partition) == Some(at));
        let Some((partition, offset)) = still.map(|(partition, at)| (*partition, *at)) else { return };
        let Some(turn) = self.shelves.turn(partition) else { return };
        let picker = match &self.ends.picker {
            Some(picker) => Ok(picker.clone()),
            None => Picker::new(&self.kafka),
        };
        // The next time it is somebody else's turn.
        self.ends.stood.remove(&partition);
        self.ends.picker = picker.as_ref().ok().cloned();
        self.ends.is_asking = true;
        let from = Origin { topic: self.spec.settled.settled.topic.clone(), partition, offset };
        let news = self.news.clone();
        tokio::spawn(async move {
            let result = match picker {
                Ok(picker) => picker.end_if_empty(from).await,
                Err(error) => Err(error),
            };
            let _ = news.send(News::Shelved(Shelved::Ended { partition, turn, result }));
        });
    }

    /// A partition ends there, or has a record that is yet to come, or could not be asked.
    pub(super) fn found_end(&mut self, partition: i32, turn: u64, result: Result<Option<i64>, KafkaError>) {
        self.ends.is_asking = false;
        match result {
            Ok(Some(end)) if self.shelves.turn(partition) == Some(turn) => {
                debug!(partition, end, "the source has no record before its end");
                self.flow.reached(partition, end);
            }
            Ok(_) => {}
            Err(error) => debug!(partition, error = chain(&error), "its end is not known"),
        }
    }
}
