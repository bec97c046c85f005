//! Records of a shelf that are no entries: each becomes a letter, and nothing waits for that.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::Now;
use redrive_core::letter::Letter;
use redrive_core::settings::LetterPartition;
use redrive_core::shelf::Entry;
use redrive_kafka::Error as KafkaError;
use tracing::info;

use super::engine::{Engine, chain};
use super::shelves::Shelved;
use super::troubles::About;
use super::{News, back_off};

/// The letters that could not be written, by partition: where the record stands, how often, and when again.
#[derive(Default)]
pub(super) struct Undecodable(BTreeMap<i32, (i64, u32, Option<Duration>)>);

impl Undecodable {
    pub(super) fn forget(&mut self, partition: i32) {
        self.0.remove(&partition);
    }

    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.0.values().filter_map(|(_, _, again)| *again).min()
    }
}

impl Engine {
    /// Reads a record of the shelf that is no entry, and writes its letter.
    pub(super) fn bury_entry(&mut self, partition: i32, at: i64, now: Now) {
        let Some(turn) = self.shelves.turn(partition) else { return };
        let picking = self.shelves.pick_one(partition, at);
        let (spec, publisher, news) = (self.spec.clone(), self.publisher.clone(), self.news.clone());
        let letters = self.spec.settled.settled.letters.clone();
        let to = match self.spec.settled.settled.letter_partition {
            LetterPartition::Same => Some(partition),
            LetterPartition::ByKey => None,
        };
        tokio::spawn(async move {
            let bury = async {
                // Cut off meanwhile, or an entry after all: then there is nothing to bury.
                let Some(record) = picking.await? else { return Ok(None) };
                let Err(error) = Entry::brief(&record) else { return Ok(None) };
                let letter = spec.writer.of_entry(&record, &error, now.wall);
                publisher.publish(outgoing(letter, letters, to)).await.map(Some)
            };
            let result = bury.await;
            let _ = news.send(News::Shelved(Shelved::EntryBuried { partition, turn, at, result }));
        });
    }

    /// The letter is there, or is not.
    pub(super) fn entry_buried(
        &mut self,
        partition: i32,
        turn: u64,
        at: i64,
        result: Result<Option<Origin>, KafkaError>,
        now: Now,
    ) {
        if self.shelves.turn(partition) != Some(turn) {
            return;
        }
        match result {
            Ok(letter) => {
                let letter = letter.map(|letter| letter.to_string());
                info!(partition, at, letter, "a record of the shelf that is no entry was buried");
                self.undecodable.forget(partition);
                self.troubles.clear(About::Undecodable(partition));
                self.flow.buried_undecodable(partition, at);
            }
            Err(error) => {
                let tries = self.undecodable.0.get(&partition).map_or(0, |(_, tries, _)| tries + 1);
                let again = now.steady.saturating_add(back_off(tries));
                self.undecodable.0.insert(partition, (at, tries, Some(again)));
                let what = format!(
                    "record {at} of the shelf of partition {partition} is no entry, and cannot be buried: {}",
                    chain(&error)
                );
                let letters = &self.spec.settled.settled.letters;
                let remedy =
                    format!("see to it that {letters} can be written: redrive topics apply, redrive acls");
                self.troubles.raise(About::Undecodable(partition), what, &remedy);
            }
        }
    }

    /// Tries again what could not be buried, when its time has come.
    pub(super) fn retry_undecodable(&mut self, now: Now) {
        let due = self
            .undecodable
            .0
            .iter_mut()
            .filter(|(_, (_, _, again))| again.is_some_and(|at| at <= now.steady));
        let due: Vec<_> = due
            .map(|(partition, (at, _, again))| {
                *again = None;
                (*partition, *at)
            })
            .collect();
        for (partition, at) in due {
            self.bury_entry(partition, at, now);
        }
    }
}

fn outgoing(letter: Letter, topic: redrive_core::Topic, partition: Option<i32>) -> redrive_kafka::Outgoing {
    redrive_kafka::Outgoing {
        topic,
        partition,
        timestamp: letter.timestamp,
        key: letter.key,
        value: letter.value,
        headers: letter.headers,
    }
}
