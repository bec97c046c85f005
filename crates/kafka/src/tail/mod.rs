//! Follows partitions of one topic from their first record on, without a group and never past an open
//! transaction. What comes goes to [`Tailed`]s. It never goes anywhere by itself. The tails of a process share
//! few clients, and each has a queue of its own: one that nobody empties does not hold up the others.

mod clients;

use std::collections::HashMap;
use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::headers::{ENTRY, Headers, known};
use redrive_core::shelf::stands_for_itself;
use redrive_core::{Origin, Record, Timestamp, Topic};
use tokio::sync::mpsc;

use crate::Error;
use crate::native::{Message, Queue, Room};
use crate::wake::Wake;
use clients::Seat;
pub use clients::Tails;

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

/// A record as it is followed.
#[derive(Debug)]
pub struct Line {
    /// The record; without its payload if it is an entry of a shelf whose payload waits there: most of what is followed
    /// are such, and what they say of themselves stands in their headers.
    pub record: Record,
    /// How many bytes it has, payload included.
    pub size: usize,
}

/// What came.
#[derive(Debug)]
pub enum What {
    /// Records, in order.
    Records(Vec<Line>),
    /// What comes next was cut off.
    OutOfRange,
    /// It cannot be read for now.
    Failed(Error),
}

/// Follows partitions of one topic; it ends when it is dropped.
pub struct Tail {
    link: Arc<Link>,
}

/// What a tail and the task that reads for it share. The queue is dropped before its client.
struct Link {
    topic: Topic,
    name: CString,
    queue: Queue,
    wake: Arc<Wake>,
    turns: Mutex<HashMap<i32, u64>>,
    is_over: AtomicBool,
    seat: Seat,
}

impl Tails {
    /// Follows nothing yet; so many partitions of this topic will be, about. Needs a tokio runtime.
    pub fn follow(
        &self,
        topic: Topic,
        partitions: i32,
    ) -> Result<(Tail, mpsc::Receiver<Vec<Tailed>>), Error> {
        let seat = self.seat(&topic, partitions)?;
        let wake = Arc::new(Wake::default());
        let queue = Queue::new(seat.consumer().client().native_client(), wake.clone());
        let name = CString::new(topic.as_str()).expect("a topic's name has no zero in it");
        let (turns, is_over) = (Mutex::default(), AtomicBool::new(false));
        let link = Arc::new(Link { topic, name, queue, wake, turns, is_over, seat });
        let (data, records) = mpsc::channel(HANDFULS);
        tokio::spawn(run(link.clone(), data));
        Ok((Tail { link }, records))
    }
}

impl Tail {
    /// Reads a partition from its first record on; what comes bears this number.
    pub fn add(&self, partition: i32, turn: u64) -> Result<(), Error> {
        let link = &self.link;
        let mut turns = link.turns();
        let was = turns.insert(partition, turn);
        let consumer = link.seat.consumer();
        let added = (|| {
            let list = link.list([partition])?;
            if was.is_some() {
                consumer.incremental_unassign(&list)?;
            }
            // Before it is fetched and after: a partition that was stopped ends its lead, maybe only now.
            let native = consumer.client().native_client();
            link.queue.lead(native, &link.name, partition);
            consumer.incremental_assign(&list)?;
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
            self.link.stop([partition]);
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let all: Vec<i32> = self.link.turns().drain().map(|(partition, _)| partition).collect();
        // The client goes on for others.
        self.link.stop(all);
        self.link.is_over.store(true, Ordering::SeqCst);
        self.link.wake.wake();
    }
}

/// Hands over what comes, as long as there is room for it.
async fn run(link: Arc<Link>, data: mpsc::Sender<Vec<Tailed>>) {
    let mut room = Room::of(BATCH);
    while !link.is_over.load(Ordering::SeqCst) {
        let (taken, came) = link.take(&mut room);
        if !came.is_empty() && data.send(came).await.is_err() {
            return;
        }
        if taken == 0 {
            link.wake.woken().await;
        }
    }
}

impl Link {
    fn turns(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self, partitions: impl IntoIterator<Item = i32>) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition_offset(self.topic.as_str(), partition, Offset::Beginning)?;
        }
        Ok(list)
    }

    fn stop(&self, partitions: impl IntoIterator<Item = i32>) {
        let list = self.list(partitions);
        let _ = list.and_then(|list| self.seat.consumer().incremental_unassign(&list));
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
            let line = line(&self.topic, &message);
            match came.last_mut() {
                Some(Tailed { partition: last, what: What::Records(lines), .. }) if *last == partition => {
                    lines.push(line);
                }
                _ => came.push(Tailed { partition, turn, what: What::Records(vec![line]) }),
            }
        });
        (taken, came)
    }
}

fn line(topic: &Topic, message: &Message<'_>) -> Line {
    let (mut is_aside, mut size) = (false, length(message.key()) + length(message.value()));
    message.headers(|name, value| {
        size += name.len() + length(value);
        if name == ENTRY {
            is_aside = value.is_some_and(stands_for_itself);
        }
    });
    let payload = if is_aside { (None, None) } else { (message.key(), message.value()) };
    Line { record: copied(topic, message, payload), size }
}

pub(crate) fn record(topic: &Topic, message: &Message<'_>) -> Record {
    copied(topic, message, (message.key(), message.value()))
}

fn length(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

/// The message with this key and this value, all of it in one piece of memory.
fn copied(topic: &Topic, message: &Message<'_>, (key, value): (Option<&[u8]>, Option<&[u8]>)) -> Record {
    let mut size = length(key) + length(value);
    message.headers(|_, value| size += length(value));
    let (mut page, mut names) = (Vec::with_capacity(size), Vec::with_capacity(4));
    let mut copy = |bytes: Option<&[u8]>| {
        let from = page.len();
        page.extend_from_slice(bytes?);
        Some(from..page.len())
    };
    let (key, value) = (copy(key), copy(value));
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
