//! Reads partitions of any topics, each from an offset on, without a group and never past an open transaction:
//! many records at a time, and a word where a partition has no more for now.
//!
//! All of it waits on the calling thread, which must be one that may, and always the same.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::{Origin, Record, Topic};

use crate::native::{Message, Queue, Room};
use crate::tail::record;
use crate::wake::Wake;
use crate::{Error, Settings};

/// The most records that are taken at once.
const BATCH: usize = 2_000;
/// How long a broker may take to say where partitions begin and end.
const PATIENCE: Duration = Duration::from_secs(15);

/// What came of a partition.
#[derive(Debug)]
pub enum Scanned {
    /// Records of one partition, in order.
    Records(Vec<Record>),
    /// There is nothing more for now; this is what comes next.
    End(Origin),
    /// What was to come next is not there.
    OutOfRange {
        /// Of this topic.
        topic: Topic,
        /// Of this partition.
        partition: i32,
    },
    /// It cannot be read for now; librdkafka goes on trying.
    Failed(Error),
}

/// Where partitions begin, or where they end.
pub type Bounds = BTreeMap<(Topic, i32), i64>;

/// Reads partitions.
pub struct Scan {
    /// Dropped before its client.
    queue: Queue,
    wake: Arc<Wake>,
    room: Room,
    topics: HashMap<String, Topic>,
    consumer: BaseConsumer,
}

impl Scan {
    /// Reads nothing yet.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let mut config = settings.client();
        // librdkafka wants a group even where none is joined.
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
        config.set("enable.partition.eof", "true").set("queued.max.messages.kbytes", "32768");
        // The end shows only in an answer that has nothing more.
        config.set("fetch.wait.max.ms", "50").set("fetch.error.backoff.ms", "100");
        config.set("fetch.queue.backoff.ms", "10");
        let consumer: BaseConsumer =
            config.create().map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
        let wake = Arc::new(Wake::default());
        let queue = Queue::new(consumer.client().native_client(), wake.clone());
        Ok(Self { queue, wake, room: Room::of(BATCH), topics: HashMap::new(), consumer })
    }

    /// Reads a partition from here on; if it is being read, from here on anew.
    pub fn add(&mut self, from: &Origin) -> Result<(), Error> {
        self.topics.insert(from.topic.as_str().to_owned(), from.topic.clone());
        let added = (|| {
            let mut list = TopicPartitionList::with_capacity(1);
            list.add_partition_offset(from.topic.as_str(), from.partition, Offset::Offset(from.offset))?;
            let is_there = self.consumer.assignment()?;
            if is_there.find_partition(from.topic.as_str(), from.partition).is_some() {
                self.consumer.incremental_unassign(&list)?;
            }
            let name = CString::new(from.topic.as_str()).expect("a topic's name has no zero in it");
            // Before it is fetched and after: a partition that was stopped ends its lead, maybe only now.
            let native = self.consumer.client().native_client();
            self.queue.lead(native, &name, from.partition);
            self.consumer.incremental_assign(&list)?;
            self.queue.lead(native, &name, from.partition);
            Ok(())
        })();
        added.map_err(|source| Error::Read { at: from.clone(), source })
    }

    /// Reads a partition no more. What was fetched of it may still come.
    pub fn remove(&mut self, topic: &Topic, partition: i32) {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition(topic.as_str(), partition);
        let _ = self.consumer.incremental_unassign(&list);
    }

    /// What came, waiting for it at most so long; nothing, if nothing did.
    pub fn next(&mut self, longest: Duration) -> Vec<Scanned> {
        self.wake.me();
        let came = self.take();
        if !came.is_empty() {
            return came;
        }
        self.wake.sleep(longest);
        self.take()
    }

    fn take(&mut self) -> Vec<Scanned> {
        let mut came: Vec<Scanned> = Vec::new();
        // Errors of the whole client; that no group may be used is none, as none is.
        while let Some(told) = self.consumer.poll(Duration::ZERO) {
            match told {
                Ok(_) | Err(KafkaError::MessageConsumption(Code::GroupAuthorizationFailed)) => {}
                Err(source) => {
                    came.push(Scanned::Failed(Error::Trouble { words: source.to_string(), source }));
                }
            }
        }
        let (topics, room) = (&self.topics, &mut self.room);
        self.queue.take(room, |message| {
            let Some(topic) = topics.get(&*message.topic()) else { return };
            if let Some(told) = told(topic, &message) {
                came.push(told);
                return;
            }
            let record = record(topic, &message);
            match came.last_mut() {
                Some(Scanned::Records(records)) if is_beside(records.last(), &record) => records.push(record),
                _ => came.push(Scanned::Records(vec![record])),
            }
        });
        came
    }

    /// Where partitions begin: what is below is gone.
    pub fn begins(&self, partitions: &[(Topic, i32)]) -> Result<Bounds, Error> {
        self.bounds(partitions, Offset::Beginning)
    }

    /// Where partitions end.
    pub fn ends(&self, partitions: &[(Topic, i32)]) -> Result<Bounds, Error> {
        self.bounds(partitions, Offset::End)
    }

    /// One request for each broker: asked for the offset at "the beginning" or "the end" of time, it names that of
    /// the log.
    fn bounds(&self, partitions: &[(Topic, i32)], at: Offset) -> Result<Bounds, Error> {
        let Some((first, partition)) = partitions.first() else { return Ok(Bounds::new()) };
        let failed = |source| {
            let at = Origin { topic: first.clone(), partition: *partition, offset: 0 };
            Error::Read { at, source }
        };
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for (topic, partition) in partitions {
            list.add_partition_offset(topic.as_str(), *partition, at).map_err(failed)?;
        }
        let found = self.consumer.offsets_for_times(list, PATIENCE).map_err(failed)?;
        let mut bounds = Bounds::new();
        for (topic, partition) in partitions {
            let element = found.find_partition(topic.as_str(), *partition);
            let Some(element) = element else { continue };
            element.error().map_err(|source| {
                let at = Origin { topic: topic.clone(), partition: *partition, offset: 0 };
                Error::Read { at, source }
            })?;
            if let Offset::Offset(offset) = element.offset() {
                bounds.insert((topic.clone(), *partition), offset);
            }
        }
        Ok(bounds)
    }
}

fn is_beside(last: Option<&Record>, record: &Record) -> bool {
    last.is_some_and(|last| last.at.partition == record.at.partition && last.at.topic == record.at.topic)
}

/// What a message tells that is no record.
fn told(topic: &Topic, message: &Message<'_>) -> Option<Scanned> {
    let (code, words) = message.error()?;
    let (topic, partition) = (topic.clone(), message.partition());
    Some(match code {
        Code::PartitionEOF => Scanned::End(Origin { topic, partition, offset: message.offset() }),
        Code::AutoOffsetReset | Code::OffsetOutOfRange => Scanned::OutOfRange { topic, partition },
        code => Scanned::Failed(Error::Trouble { words, source: KafkaError::MessageConsumption(code) }),
    })
}
