//! Follows partitions of one topic from their first record on, without a group and never past an open
//! transaction. A thread of its own reads; what comes goes to [`Tailed`]s. It never goes anywhere by itself.

use std::collections::HashMap;
use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::headers::{Headers, known};
use redrive_core::{Origin, Record, Timestamp, Topic};
use tokio::sync::mpsc;

use crate::native::{Message, Queue, Room};
use crate::wake::Wake;
use crate::{Error, Settings};

/// The longest sleep while nothing comes.
const SLEEP: Duration = Duration::from_millis(500);
/// The most records that are taken at once.
const BATCH: usize = 500;
/// How many such handfuls may wait for the receiver.
const HANDFULS: usize = 8;

/// What came of a partition.
#[derive(Debug)]
pub struct Tailed {
    /// Which.
    pub partition: i32,
    /// The number that [`Tail::add`] was given for it.
    pub turn: u64,
    /// What.
    pub what: What,
}

/// What came.
#[derive(Debug)]
pub enum What {
    /// Records, in order.
    Records(Vec<Record>),
    /// What comes next was cut off.
    OutOfRange,
    /// It cannot be read for now.
    Failed(Error),
}

/// Follows partitions of one topic; it ends when it is dropped.
pub struct Tail {
    link: Arc<Link>,
    stop: Arc<AtomicBool>,
}

struct Link {
    topic: Topic,
    name: CString,
    /// Dropped before its client.
    queue: Queue,
    wake: Arc<Wake>,
    turns: Mutex<HashMap<i32, u64>>,
    consumer: BaseConsumer,
}

impl Tail {
    /// Follows nothing yet.
    pub fn new(settings: &Settings, topic: Topic) -> Result<(Self, mpsc::Receiver<Vec<Tailed>>), Error> {
        let mut config = settings.client();
        // librdkafka wants a group even where none is joined.
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
        config.set("queued.max.messages.kbytes", "16384").set("fetch.queue.backoff.ms", "10");
        config.set("fetch.error.backoff.ms", "100");
        // A partition that is added waits for the fetch of the others that is under way, so this should be short;
        // but each costs the broker and us something while nothing happens, so not very short. What is
        // written ends it at once.
        config.set("fetch.wait.max.ms", "500");
        let consumer: BaseConsumer =
            config.create().map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
        let wake = Arc::new(Wake::default());
        let queue = Queue::new(consumer.client().native_client(), wake.clone());
        let name = CString::new(topic.as_str()).expect("a topic's name has no zero in it");
        let link = Arc::new(Link { topic, name, queue, wake, turns: Mutex::default(), consumer });
        let (data, records) = mpsc::channel(HANDFULS);
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name(format!("tail {}", link.topic)).spawn({
            let (link, stop) = (link.clone(), stop.clone());
            move || link.run(&data, &stop)
        });
        thread.expect("a thread can be started");
        Ok((Self { link, stop }, records))
    }

    /// Reads a partition from its first record on; what comes bears this number.
    pub fn add(&self, partition: i32, turn: u64) -> Result<(), Error> {
        let link = &self.link;
        let mut turns = link.turns();
        let was = turns.insert(partition, turn);
        let added = (|| {
            let list = link.list(partition, Offset::Beginning)?;
            if was.is_some() {
                link.consumer.incremental_unassign(&list)?;
            }
            // Before it is fetched and after: a partition that was stopped ends its lead, maybe only now.
            let native = link.consumer.client().native_client();
            link.queue.lead(native, &link.name, partition);
            link.consumer.incremental_assign(&list)?;
            link.queue.lead(native, &link.name, partition);
            Ok(())
        })();
        added.map_err(|source| {
            turns.remove(&partition);
            let at = Origin { topic: link.topic.clone(), partition, offset: 0 };
            Error::Read { at, source }
        })
    }

    /// Reads a partition no more.
    pub fn remove(&self, partition: i32) {
        if self.link.turns().remove(&partition).is_some() {
            let list = self.link.list(partition, Offset::Beginning);
            let _ = list.and_then(|list| self.link.consumer.incremental_unassign(&list));
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.link.wake.wake();
    }
}

impl Link {
    fn turns(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self, partition: i32, offset: Offset) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(self.topic.as_str(), partition, offset)?;
        Ok(list)
    }

    fn run(&self, data: &mpsc::Sender<Vec<Tailed>>, stop: &AtomicBool) {
        self.wake.me();
        let mut room = Room::of(BATCH);
        while !stop.load(Ordering::SeqCst) {
            // Errors of the whole client: they are told partition by partition, or pass.
            while self.consumer.poll(Duration::ZERO).is_some() {}
            let (taken, came) = self.take(&mut room);
            if !came.is_empty() && data.blocking_send(came).is_err() {
                return;
            }
            if taken == 0 {
                self.wake.sleep(SLEEP);
            }
        }
    }

    fn take(&self, room: &mut Room) -> (usize, Vec<Tailed>) {
        let turns = self.turns();
        let mut came: Vec<Tailed> = Vec::new();
        let taken = self.queue.take(room, |message| {
            let partition = message.partition();
            let Some(turn) = turns.get(&partition).copied() else { return };
            if let Some((code, words)) = message.error() {
                let what = match code {
                    Code::PartitionEOF => return,
                    Code::AutoOffsetReset | Code::OffsetOutOfRange => What::OutOfRange,
                    code => {
                        What::Failed(Error::Trouble { words, source: KafkaError::MessageConsumption(code) })
                    }
                };
                came.push(Tailed { partition, turn, what });
                return;
            }
            let record = record(&self.topic, &message);
            match came.last_mut() {
                Some(Tailed { partition: last, what: What::Records(records), .. }) if *last == partition => {
                    records.push(record);
                }
                _ => came.push(Tailed { partition, turn, what: What::Records(vec![record]) }),
            }
        });
        (taken, came)
    }
}

fn record(topic: &Topic, message: &Message<'_>) -> Record {
    // All of it in one piece of memory.
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let mut size = length(message.key()) + length(message.value());
    message.headers(|_, value| size += length(value));
    let (mut page, mut names) = (Vec::with_capacity(size), Vec::with_capacity(16));
    let mut copy = |bytes: Option<&[u8]>| {
        let from = page.len();
        page.extend_from_slice(bytes?);
        Some(from..page.len())
    };
    let (key, value) = (copy(message.key()), copy(message.value()));
    message.headers(|name, value| names.push((known(name), copy(value))));
    let page = Bytes::from(page);
    let part = |range: Option<Range<usize>>| range.map(|range| page.slice(range));
    let headers: Headers = names.into_iter().map(|(name, value)| (name, part(value))).collect();
    Record {
        at: Origin { topic: topic.clone(), partition: message.partition(), offset: message.offset() },
        timestamp: message.timestamp().map(Timestamp::from_millis),
        key: part(key),
        value: part(value),
        headers,
    }
}
