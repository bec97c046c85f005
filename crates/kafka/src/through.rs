//! Reads partitions of a topic from their first record to the end they have now, without a group and never
//! past an open transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::{Origin, Record, Topic};
use tokio::task::spawn_blocking;

use crate::breaks::Breaks;
use crate::read::record;
use crate::{Error, Settings};

/// How long the next record may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is read, in the order of each partition.
#[derive(Debug)]
pub enum Passage {
    /// A partition is read from its first offset on. Told again if its log was cut meanwhile: what was read
    /// of it before is to be forgotten.
    Begin {
        /// Which.
        partition: i32,
        /// Its first offset.
        from: i64,
        /// The offset at which reading ends.
        to: i64,
    },
    /// A record.
    Record(Record),
}

/// Reads these partitions through. `each` is called on a thread that may wait, with `state`, which comes back
/// at the end.
pub async fn read_through<S: Send + 'static>(
    settings: &Settings,
    topic: Topic,
    partitions: Vec<i32>,
    mut state: S,
    each: fn(&mut S, Passage),
) -> Result<S, Error> {
    let mut config = settings.client();
    // librdkafka wants a group even where none is joined.
    config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
    config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
    config.set("enable.partition.eof", "true").set("queued.max.messages.kbytes", "16384");
    // The end shows only in an answer that has nothing more.
    config.set("fetch.wait.max.ms", "20").set("fetch.error.backoff.ms", "100");
    config.set("fetch.queue.backoff.ms", "10");
    let consumer: BaseConsumer =
        config.create().map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
    let read = spawn_blocking(move || {
        let mut through = Through { consumer, topic, open: BTreeMap::new(), next: BTreeMap::new() };
        through.read(&partitions, &mut |passage| each(&mut state, passage))?;
        Ok(state)
    });
    read.await?
}

struct Through {
    consumer: BaseConsumer,
    topic: Topic,
    /// The partitions that are not through, with the offsets at which they are.
    open: BTreeMap<i32, i64>,
    next: BTreeMap<i32, i64>,
}

impl Through {
    fn read(&mut self, partitions: &[i32], each: &mut impl FnMut(Passage)) -> Result<(), Error> {
        let breaks = Breaks::default();
        self.begin(partitions, each)?;
        while !self.open.is_empty() {
            match self.consumer.poll(PATIENCE) {
                Some(Ok(message)) => {
                    let record = record(&message)?;
                    breaks.mended();
                    self.pass(record, each);
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(self.open.remove(&partition)),
                // It is not said which: all that are not through begin again.
                Some(Err(KafkaError::MessageConsumption(Code::AutoOffsetReset | Code::OffsetOutOfRange))) => {
                    let open: Vec<i32> = self.open.keys().copied().collect();
                    self.begin(&open, each)?;
                }
                // The group is never joined, so that nobody has to be allowed to use it.
                Some(Err(KafkaError::MessageConsumption(Code::GroupAuthorizationFailed))) => {}
                Some(Err(source)) if breaks.bear(&source) => {}
                Some(Err(source)) => return Err(self.failed(source)),
                None => return Err(self.failed(KafkaError::MessageConsumption(Code::OperationTimedOut))),
            }
        }
        Ok(())
    }

    fn begin(&mut self, partitions: &[i32], each: &mut impl FnMut(Passage)) -> Result<(), Error> {
        self.open.clear();
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions.iter().copied() {
            let ends = self.consumer.fetch_watermarks(self.topic.as_str(), partition, PATIENCE);
            let (from, to) = ends.map_err(|source| {
                let at = Origin { topic: self.topic.clone(), partition, offset: 0 };
                Error::Read { at, source }
            })?;
            each(Passage::Begin { partition, from, to });
            self.next.insert(partition, from);
            if from >= to {
                continue;
            }
            self.open.insert(partition, to);
            list.add_partition_offset(self.topic.as_str(), partition, Offset::Offset(from))
                .map_err(|source| self.failed(source))?;
        }
        // What was fetched before is forgotten with the assignment.
        let assigned = self.consumer.unassign().and_then(|()| self.consumer.assign(&list));
        assigned.map_err(|source| self.failed(source))
    }

    fn pass(&mut self, record: Record, each: &mut impl FnMut(Passage)) {
        let Origin { partition, offset, .. } = record.at;
        let Some(end) = self.open.get(&partition).copied() else { return };
        if offset < end {
            self.next.insert(partition, offset + 1);
            each(Passage::Record(record));
        }
        if offset + 1 >= end {
            self.open.remove(&partition);
        }
    }

    fn failed(&self, source: KafkaError) -> Error {
        let first = self.open.keys().next().copied().unwrap_or(0);
        let offset = self.next.get(&first).copied().unwrap_or(0);
        Error::Read { at: Origin { topic: self.topic.clone(), partition: first, offset }, source }
    }
}
