//! Picks records of a topic by their offsets, with those beside them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use redrive_core::{Origin, Record};
use tokio::task::spawn_blocking;

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

impl Picker {
    /// A picker.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let mut config = settings.client();
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
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
        self.run(from, Run { last, next: NEXT, records: MOST, bytes: MOST_BYTES }).await
    }

    /// The same for one who wants all of them: more at a time.
    pub async fn pick_many(&self, from: Origin, last: i64) -> Result<Vec<Record>, Error> {
        self.run(from, Run { last, next: NEXT_OF_MANY, records: MANY, bytes: MANY_BYTES }).await
    }

    async fn run(&self, from: Origin, run: Run) -> Result<Vec<Record>, Error> {
        let Self { config, brokers, consumer } = self.clone();
        let read = spawn_blocking(move || {
            let mut consumer = consumer.lock().unwrap_or_else(PoisonError::into_inner);
            let consumer = match &mut *consumer {
                Some(consumer) => consumer,
                none => none.insert(config.create().map_err(|source| Error::Client { brokers, source })?),
            };
            let picked = pick(consumer, &from, &run);
            let _ = consumer.unassign();
            picked.map_err(|source| Error::Read { at: from, source })
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

fn pick(consumer: &BaseConsumer, from: &Origin, run: &Run) -> Result<Vec<Record>, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(from.topic.as_str(), from.partition, Offset::Offset(from.offset))?;
    consumer.assign(&list)?;
    let (mut records, mut bytes) = (Vec::new(), 0);
    loop {
        let wait = if records.is_empty() { FIRST } else { run.next };
        match consumer.poll(wait) {
            Some(Ok(message)) => {
                let Ok(record) = record(&message) else { continue };
                if record.at.partition != from.partition || record.at.offset < from.offset {
                    continue;
                }
                if record.at.offset > run.last {
                    return Ok(records);
                }
                bytes += record.size();
                let record_is_last = record.at.offset == run.last;
                records.push(record);
                if record_is_last || records.len() >= run.records || bytes >= run.bytes {
                    return Ok(records);
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(records),
            // What was asked for is cut off.
            Some(Err(KafkaError::MessageConsumption(Code::AutoOffsetReset | Code::OffsetOutOfRange))) => {
                return Ok(records);
            }
            Some(Err(KafkaError::MessageConsumption(Code::GroupAuthorizationFailed))) => {}
            Some(Err(error)) => return Err(error),
            None if records.is_empty() => {
                return Err(KafkaError::MessageConsumption(Code::OperationTimedOut));
            }
            None => return Ok(records),
        }
    }
}
