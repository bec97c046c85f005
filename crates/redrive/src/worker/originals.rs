//! Originals of records that wait as pointers, read back from the source.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::Now;
use redrive_kafka::{Error as KafkaError, Picked, Picker};
use tracing::warn;

use super::News;
use super::engine::{Engine, chain};
use super::shelves::Shelved;
use super::troubles::About;

/// The most that is asked for at once.
const FAR: i64 = 1_000;
/// How long nothing is asked for after something could not be read.
const REST: Duration = Duration::from_secs(1);

/// What has to be read back from the source.
#[derive(Default)]
pub(super) struct Originals {
    /// Made when it is first needed: most sources are never asked.
    picker: Option<Picker>,
    wanted: BTreeMap<i32, BTreeSet<i64>>,
    is_picking: bool,
    /// The partition that was asked last: the others come first.
    last: i32,
    rests_until: Option<Duration>,
}

impl Originals {
    pub(super) fn forget(&mut self, partition: i32) {
        self.wanted.remove(&partition);
    }

    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.rests_until.filter(|_| !self.is_picking && !self.wanted.is_empty())
    }

    /// What is asked for next: all that is wanted of a partition and not far from the first.
    fn next(&mut self) -> Option<(i32, BTreeSet<i64>)> {
        let next = self.wanted.range(self.last + 1..).next().or_else(|| self.wanted.iter().next());
        let (partition, first) = next.and_then(|(partition, wanted)| Some((*partition, *wanted.first()?)))?;
        let mut asked = self.wanted.remove(&partition)?;
        let later = asked.split_off(&first.saturating_add(FAR));
        if !later.is_empty() {
            self.wanted.insert(partition, later);
        }
        self.last = partition;
        Some((partition, asked))
    }
}

impl Engine {
    /// An original has to be read back.
    pub(super) fn recall(&mut self, partition: i32, offset: i64) {
        self.originals.wanted.entry(partition).or_default().insert(offset);
    }

    /// Reads back what is wanted, a run at a time.
    pub(super) fn pick_originals(&mut self, now: Now) {
        if self.originals.is_picking || self.originals.rests_until.is_some_and(|until| now.steady < until) {
            return;
        }
        self.originals.rests_until = None;
        let Some((partition, asked)) = self.originals.next() else { return };
        let (Some(first), Some(last), Some(turn)) =
            (asked.first().copied(), asked.last().copied(), self.shelves.turn(partition))
        else {
            return;
        };
        let picker = match &self.originals.picker {
            Some(picker) => Ok(picker.clone()),
            None => Picker::of_consumed(&self.kafka),
        };
        let topic = self.spec.settled.settled.topic.clone();
        let (from, news) = (Origin { topic, partition, offset: first }, self.news.clone());
        self.originals.is_picking = true;
        self.originals.picker = picker.as_ref().ok().cloned();
        tokio::spawn(async move {
            let result = match picker {
                Ok(picker) => picker.pick_or_miss(from, last).await,
                Err(error) => Err(error),
            };
            let _ = news.send(News::Shelved(Shelved::Recalled { partition, turn, asked, result }));
        });
    }

    /// Originals were read, or could not be.
    pub(super) fn recalled(
        &mut self,
        partition: i32,
        turn: u64,
        mut asked: BTreeSet<i64>,
        result: Result<Picked, KafkaError>,
        now: Now,
    ) {
        self.originals.is_picking = false;
        if self.shelves.turn(partition) != Some(turn) {
            return;
        }
        let (later, trouble) = match result {
            Ok(Picked { records, known_to }) => {
                let later = asked.split_off(&known_to);
                let is_stuck = asked.is_empty();
                for record in
                    records.iter().filter(|record| asked.remove(&record.at.offset)).collect::<Vec<_>>()
                {
                    self.flow.recalled(partition, record.at.offset, Some(record));
                }
                for gone in asked {
                    warn!(partition, offset = gone, "the original of a record that waits is gone");
                    self.flow.recalled(partition, gone, None);
                }
                (later, is_stuck.then(|| "it ends before them".to_owned()))
            }
            Err(error) => (asked, Some(chain(&error))),
        };
        if !later.is_empty() {
            self.originals.wanted.entry(partition).or_default().extend(later);
        }
        match trouble {
            Some(why) => {
                let topic = &self.spec.settled.settled.topic;
                let what = format!("records of partition {partition} wait as pointers to {topic}, and {why}");
                self.troubles.raise(About::Originals(partition), what, "it is tried again by itself");
                self.originals.rests_until = Some(now.steady.saturating_add(REST));
            }
            None => self.troubles.clear(About::Originals(partition)),
        }
    }
}
