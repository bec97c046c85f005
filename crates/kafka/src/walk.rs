//! Walks through partitions and brings back the records of given offsets: what lies close together is fetched
//! in one go, however many are asked for and whatever lies between them.

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

/// How long the next record may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What lies further ahead is asked for anew; what is nearer comes sooner by reading on.
const LEAP: i64 = 20_000;

/// Walks through partitions. Never past an open transaction.
#[derive(Clone)]
pub struct Walk {
    config: Arc<ClientConfig>,
    brokers: String,
    walker: Arc<Mutex<Option<Walker>>>,
}

/// What was brought back.
#[derive(Debug)]
pub struct Walked {
    /// Those of the records that are there, in order.
    pub records: Vec<Record>,
    /// How many of the offsets are dealt with: their records are here, or are gone.
    pub asked: usize,
}

struct Walker {
    consumer: BaseConsumer,
    /// What comes next, if anything is being read.
    next: Option<Origin>,
}

impl Walk {
    /// A walk that has not begun.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let mut config = settings.client();
        // librdkafka wants a group even where none is joined.
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
        config.set("enable.partition.eof", "true").set("queued.max.messages.kbytes", "16384");
        config.set("fetch.wait.max.ms", "20").set("fetch.error.backoff.ms", "100");
        config.set("fetch.queue.backoff.ms", "5");
        let brokers = settings.brokers.clone();
        match config.create_native_config() {
            Ok(_) => Ok(Self { config: Arc::new(config), brokers, walker: Arc::default() }),
            Err(source) => Err(Error::Client { brokers, source }),
        }
    }

    /// The records of these offsets of a partition, which ascend and begin with that of `from`; not many more
    /// than `bytes` of them at a time.
    pub async fn bring(&self, from: Origin, offsets: Vec<i64>, bytes: usize) -> Result<Walked, Error> {
        let Self { config, brokers, walker } = self.clone();
        let read = spawn_blocking(move || {
            let mut walker = walker.lock().unwrap_or_else(PoisonError::into_inner);
            let walker = match &mut *walker {
                Some(walker) => walker,
                none => {
                    let consumer = config.create().map_err(|source| Error::Client { brokers, source })?;
                    none.insert(Walker { consumer, next: None })
                }
            };
            walker.bring(&from, &offsets, bytes).map_err(|source| {
                walker.next = None;
                Error::Read { at: from, source }
            })
        });
        read.await?
    }
}

impl Walker {
    fn bring(&mut self, from: &Origin, offsets: &[i64], most: usize) -> Result<Walked, KafkaError> {
        let (mut records, mut bytes, mut asked) = (Vec::with_capacity(offsets.len()), 0, 0);
        let breaks = Breaks::default();
        while let Some(wanted) = offsets.get(asked).copied() {
            if bytes >= most {
                break;
            }
            self.go_to(&Origin { offset: wanted, ..from.clone() })?;
            let came = match self.consumer.poll(PATIENCE) {
                Some(Ok(message)) => message,
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    // It is told once: what is asked for next must be told again.
                    self.next = None;
                    asked = offsets.len();
                    break;
                }
                // What was asked for is cut off.
                Some(Err(KafkaError::MessageConsumption(Code::AutoOffsetReset | Code::OffsetOutOfRange))) => {
                    self.next = None;
                    asked += self.gone(&Origin { offset: wanted, ..from.clone() }, &offsets[asked..])?;
                    continue;
                }
                // The group is never joined, so that nobody has to be allowed to use it.
                Some(Err(KafkaError::MessageConsumption(Code::GroupAuthorizationFailed))) => continue,
                Some(Err(error)) if breaks.bear(&error) => continue,
                Some(Err(error)) => return Err(error),
                None => return Err(KafkaError::MessageConsumption(Code::OperationTimedOut)),
            };
            breaks.mended();
            let Ok(record) = record(&came) else { continue };
            let offset = record.at.offset;
            self.next = Some(Origin { offset: offset + 1, ..from.clone() });
            while offsets.get(asked).is_some_and(|wanted| *wanted < offset) {
                asked += 1;
            }
            if offsets.get(asked) == Some(&offset) {
                bytes += record.size();
                records.push(record);
                asked += 1;
            }
        }
        Ok(Walked { records, asked })
    }

    /// Reads on, or from there.
    fn go_to(&mut self, wanted: &Origin) -> Result<(), KafkaError> {
        let is_ahead = |next: &Origin| {
            let same = next.partition == wanted.partition && next.topic == wanted.topic;
            same && (next.offset..next.offset.saturating_add(LEAP)).contains(&wanted.offset)
        };
        if self.next.as_ref().is_some_and(is_ahead) {
            return Ok(());
        }
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(wanted.topic.as_str(), wanted.partition, Offset::Offset(wanted.offset))?;
        self.consumer.assign(&list)?;
        self.next = Some(wanted.clone());
        Ok(())
    }

    /// How many of the offsets lie below the first that there is.
    fn gone(&self, wanted: &Origin, offsets: &[i64]) -> Result<usize, KafkaError> {
        let (first, end) =
            self.consumer.fetch_watermarks(wanted.topic.as_str(), wanted.partition, PATIENCE)?;
        // Out of range, and yet not below: then it is beyond the end, and so are those behind it.
        let below = offsets.iter().take_while(|offset| **offset < first || **offset >= end).count();
        if below == 0 { Err(KafkaError::MessageConsumption(Code::OffsetOutOfRange)) } else { Ok(below) }
    }
}
