//! The thread that polls, always: events first, then records as long as the receiver has room. It sleeps
//! when there is neither, and is woken by whoever brings one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use redrive_core::headers::Headers;
use redrive_core::{Origin, Record, Timestamp, Topic};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::Link;
use super::event::{Batch, Event};
use super::holding::Holding;
use crate::Error;
use crate::native::{Message, Room};

/// The longest sleep: to poll this often is what keeps the membership while nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The size of one allocation for many records.
const PAGE: usize = 32 * 1_024;

/// About how many records of one partition come in a row.
const AT_ONCE: usize = 128;

/// How long one wait for the end of the membership is.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn run(link: &Link, data: &Sender<Vec<Event>>, stop: &Arc<AtomicBool>, batch: usize) {
    link.wake.me();
    let (mut room, mut pages) = (Room::of(batch), Pages::default());
    while !stop.load(Ordering::SeqCst) {
        serve(link);
        if !records(link, data, &mut room, &mut pages) && link.main.len() == 0 {
            link.wake.sleep(HEARTBEAT);
        }
    }
    leave(link);
}

/// Serves rebalances and errors. What it returns besides was told by the callbacks.
fn serve(link: &Link) {
    loop {
        let _ = link.consumer.poll(Duration::ZERO);
        // No answer does not mean that the queue is empty: what was served counts as none, too.
        if link.main.len() == 0 {
            return;
        }
    }
}

/// Hands over one batch of what was fetched. Whether there may be more.
fn records(link: &Link, data: &Sender<Vec<Event>>, room: &mut Room, pages: &mut Pages) -> bool {
    let permit = data.try_reserve().or_else(|refused| match refused {
        TrySendError::Full(()) => {
            link.wake.want_room();
            data.try_reserve()
        }
        TrySendError::Closed(()) => Err(refused),
    });
    let Ok(permit) = permit else { return false };
    let (taken, events) = take(link, room, pages);
    if !events.is_empty() {
        permit.send(events);
    }
    taken == room.len()
}

fn take(link: &Link, room: &mut Room, pages: &mut Pages) -> (usize, Vec<Event>) {
    let mut holding = link.consumer.context().holding();
    let mut sorting = Sorting { topic: &link.topic, holding: &mut holding, pages, events: Vec::new() };
    let taken = link.queue.take(room, |message| sorting.sort(&message));
    (taken, sorting.events)
}

/// Makes batches of messages as they come.
struct Sorting<'a> {
    topic: &'a Topic,
    holding: &'a mut Holding,
    pages: &'a mut Pages,
    events: Vec<Event>,
}

impl Sorting<'_> {
    fn sort(&mut self, message: &Message<'_>) {
        if let Some((code, words)) = message.error() {
            return self.error(message.partition(), code, words);
        }
        let Some(turn) = self.holding.accept(message.partition(), message.offset()) else { return };
        let record = record(self.topic, message, self.pages);
        match self.events.last_mut() {
            Some(Event::Records(batch)) if batch.partition == message.partition() => {
                batch.records.push(record);
            }
            _ => self.events.push(Event::Records(Batch {
                partition: message.partition(),
                turn,
                records: {
                    let mut records = Vec::with_capacity(AT_ONCE);
                    records.push(record);
                    records
                },
            })),
        }
    }

    fn error(&mut self, partition: i32, code: Code, words: String) {
        if code == Code::PartitionEOF {
            return;
        }
        if code == Code::AutoOffsetReset {
            let turn = self.holding.stopped(partition);
            self.events.extend(turn.map(|turn| Event::OutOfRange { partition, turn }));
            return;
        }
        let error = Error::Trouble { words, source: KafkaError::MessageConsumption(code) };
        if self.holding.reads(partition) {
            self.events.push(Event::PartitionFailed { partition, error });
        }
    }
}

/// Copies many small things into few allocations: they are made here and freed on another thread, which
/// costs more than the copying. What waits for long is copied once more by whoever keeps it, so that it
/// does not keep its page.
#[derive(Default)]
struct Pages(BytesMut);

impl Pages {
    fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > PAGE / 4 {
            return Bytes::copy_from_slice(bytes);
        }
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(PAGE);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

fn record(topic: &Topic, message: &Message<'_>, pages: &mut Pages) -> Record {
    let mut headers = Headers::default();
    message.headers(|name, value| headers.push(name, value.map(Bytes::copy_from_slice)));
    Record {
        at: Origin { topic: topic.clone(), partition: message.partition(), offset: message.offset() },
        timestamp: message.timestamp().map(Timestamp::from_millis),
        key: message.key().map(|key| pages.copy(key)),
        value: message.value().map(|value| pages.copy(value)),
        headers,
    }
}

/// Gives everything up and waits until the group has been told.
fn leave(link: &Link) {
    let context = link.consumer.context();
    context.leave();
    if link.consumer.close_queue().is_err() {
        return;
    }
    // A revocation that nobody answered would be waited for. Where there is none, it does no harm.
    let everything = context.holding().everything();
    let _ = link.consumer.incremental_unassign(&context.list(&everything));
    while !link.consumer.closed() {
        let _ = link.consumer.poll(PATIENCE);
    }
}
