//! Picks records of a topic by their offsets, with those beside them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use redrive_core::{Origin, Record};
use tokio::task::spawn_blocking;

use crate::breaks::Breaks;
use crate::read::record;
use crate::{Error, Settings};

/// How long the first record may take.
const FIRST: Duration = Duration::from_secs(10);
/// How long one more may take, once there is one.
const NEXT: Duration = Duration::from_millis(2);
/// The same for one of many: a fetch may be under way.
const NEXT_OF_MANY: Duration = Duration::from_millis(100);
/// Where a run ends.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 1 << 20;
/// Where a run of many ends.
const MANY: usize = 2_500;
const MANY_BYTES: usize = 2 << 20;

/// Reads back records that were read before. Never past an open transaction.
#[derive(Clone)]
pub struct Picker {
    config: Arc<ClientConfig>,
    brokers: String,
    /// Made when it is first needed: most subscriptions never are in want of one.
    consumer: Arc<Mutex<Option<BaseConsumer>>>,
}

/// What was picked.
#[derive(Debug)]
pub struct Picked {
    /// The records, in order.
    pub records: Vec<Record>,
    /// What is below this and not among them is not there.
    pub known_to: i64,
}

impl Picker {
    /// A picker.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::reading(settings, "read_committed")
    }

    /// A picker of what was consumed, in whichever way that was.
    pub fn of_consumed(settings: &Settings) -> Result<Self, Error> {
        Self::reading(settings, "read_uncommitted")
    }

    fn reading(settings: &Settings, isolation: &str) -> Result<Self, Error> {
        let mut config = settings.client();
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", isolation);
        config.set("enable.partition.eof", "true").set("fetch.message.max.bytes", MOST_BYTES.to_string());
        config.set("queued.max.messages.kbytes", "4096").set("fetch.error.backoff.ms", "100");
        // What is asked for is there: a fetch that waits for more would only hold up the next.
        config.set("fetch.wait.max.ms", "5");
        let brokers = settings.brokers.clone();
        match config.create_native_config() {
            Ok(_) => Ok(Self { config: Arc::new(config), brokers, consumer: Arc::default() }),
            Err(source) => Err(Error::Client { brokers, source }),
        }
    }

    /// The records from here on, in order: some, and none beyond `last`. Empty if there are none.
    pub async fn pick(&self, from: Origin, last: i64) -> Result<Vec<Record>, Error> {
        Ok(self.pick_or_miss(from, last).await?.records)
    }

    /// The same, with what is known not to be there.
    pub async fn pick_or_miss(&self, from: Origin, last: i64) -> Result<Picked, Error> {
        self.run(from, Run { last, next: NEXT, records: MOST, bytes: MOST_BYTES }).await
    }

    /// The same for one who wants all of them: more at a time.
    pub async fn pick_many(&self, from: Origin, last: i64) -> Result<Vec<Record>, Error> {
        let run = Run { last, next: NEXT_OF_MANY, records: MANY, bytes: MANY_BYTES };
        Ok(self.run(from, run).await?.records)
    }

    /// The end of a partition, if no record lies from here on: what is left there are marks of transactions, or
    /// holes.
    pub async fn end_if_empty(&self, from: Origin) -> Result<Option<i64>, Error> {
        self.ask(from, |consumer, from| {
            // Asked before anything is read: what comes later lies beyond it.
            let (_, end) = consumer.fetch_watermarks(from.topic.as_str(), from.partition, FIRST)?;
            let run = Run { last: end - 1, next: NEXT, records: 1, bytes: MOST_BYTES };
            if end <= from.offset {
                return Ok(None);
            }
            let picked = pick(consumer, from, &run)?;
            // Where this was cut off meanwhile, records may lie behind the cut.
            let is_cut = picked.known_to > from.offset && picked.known_to < end;
            Ok((picked.records.is_empty() && !is_cut).then_some(end))
        })
        .await
    }

    async fn run(&self, from: Origin, run: Run) -> Result<Picked, Error> {
        self.ask(from, move |consumer, from| pick(consumer, from, &run)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        from: Origin,
        ask: impl FnOnce(&BaseConsumer, &Origin) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, Error> {
        let Self { config, brokers, consumer } = self.clone();
        let read = spawn_blocking(move || {
            let mut consumer = consumer.lock().unwrap_or_else(PoisonError::into_inner);
            let consumer = match &mut *consumer {
                Some(consumer) => consumer,
                none => none.insert(config.create().map_err(|source| Error::Client { brokers, source })?),
            };
            let answer = ask(consumer, &from);
            let _ = consumer.unassign();
            answer.map_err(|source| Error::Read { at: from, source })
        });
        read.await?
    }
}

/// Where a run ends, and how long it waits for one more.
struct Run {
    last: i64,
    next: Duration,
    records: usize,
    bytes: usize,
}

fn pick(consumer: &BaseConsumer, from: &Origin, run: &Run) -> Result<Picked, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(from.topic.as_str(), from.partition, Offset::Offset(from.offset))?;
    consumer.assign(&list)?;
    let (mut records, mut bytes): (Vec<Record>, usize) = (Vec::new(), 0);
    let all = |records: Vec<Record>| {
        let known_to = records.last().map_or(from.offset, |record| record.at.offset + 1);
        Ok(Picked { records, known_to })
    };
    let breaks = Breaks::default();
    loop {
        let wait = if records.is_empty() { FIRST } else { run.next };
        match consumer.poll(wait) {
            Some(Ok(message)) => {
                let Ok(record) = record(&message) else { continue };
                if record.at.partition != from.partition || record.at.offset < from.offset {
                    continue;
                }
                if record.at.offset > run.last {
                    return Ok(Picked { records, known_to: record.at.offset });
                }
                bytes += record.size();
                let record_is_last = record.at.offset == run.last;
                records.push(record);
                if record_is_last || records.len() >= run.records || bytes >= run.bytes {
                    return all(records);
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return all(records),
            // What was asked for is cut off.
            Some(Err(KafkaError::MessageConsumption(Code::AutoOffsetReset | Code::OffsetOutOfRange))) => {
                let (first, _) = consumer.fetch_watermarks(from.topic.as_str(), from.partition, FIRST)?;
                return Ok(Picked { known_to: first.max(from.offset), records });
            }
            Some(Err(KafkaError::MessageConsumption(Code::GroupAuthorizationFailed))) => {}
            Some(Err(error)) if breaks.bear(&error) => {}
            Some(Err(error)) => return Err(error),
            None if records.is_empty() => {
                return Err(KafkaError::MessageConsumption(Code::OperationTimedOut));
            }
            None => return all(records),
        }
    }
}
