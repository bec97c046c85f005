//! The thread that polls, always: events first, then records as long as the receiver has room. It sleeps
//! when there is neither, and is woken by whoever brings one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
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

/// How long one wait for the end of the membership is.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn run(link: &Link, data: &Sender<Vec<Event>>, stop: &Arc<AtomicBool>, batch: usize) {
    link.wake.me();
    let mut room = Room::of(batch);
    while !stop.load(Ordering::SeqCst) {
        serve(link);
        if !records(link, data, &mut room) && link.main.len() == 0 {
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
fn records(link: &Link, data: &Sender<Vec<Event>>, room: &mut Room) -> bool {
    let permit = data.try_reserve().or_else(|refused| match refused {
        TrySendError::Full(()) => {
            link.wake.want_room();
            data.try_reserve()
        }
        TrySendError::Closed(()) => Err(refused),
    });
    let Ok(permit) = permit else { return false };
    let (taken, events) = take(link, room);
    if !events.is_empty() {
        permit.send(events);
    }
    taken == room.len()
}

fn take(link: &Link, room: &mut Room) -> (usize, Vec<Event>) {
    let mut holding = link.consumer.context().holding();
    let mut sorting = Sorting { topic: &link.topic, holding: &mut holding, events: Vec::new() };
    let taken = link.queue.take(room, |message| sorting.sort(&message));
    (taken, sorting.events)
}

/// Makes batches of messages as they come.
struct Sorting<'a> {
    topic: &'a Topic,
    holding: &'a mut Holding,
    events: Vec<Event>,
}

impl Sorting<'_> {
    fn sort(&mut self, message: &Message<'_>) {
        if let Some((code, words)) = message.error() {
            return self.error(message.partition(), code, words);
        }
        let Some(turn) = self.holding.accept(message.partition(), message.offset()) else { return };
        let record = record(self.topic, message);
        match self.events.last_mut() {
            Some(Event::Records(batch)) if batch.partition == message.partition() => {
                batch.records.push(record);
            }
            _ => self.events.push(Event::Records(Batch {
                partition: message.partition(),
                turn,
                records: vec![record],
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

fn record(topic: &Topic, message: &Message<'_>) -> Record {
    let mut headers = Headers::default();
    message.headers(|name, value| headers.push(name, value.map(Bytes::copy_from_slice)));
    Record {
        at: Origin { topic: topic.clone(), partition: message.partition(), offset: message.offset() },
        timestamp: message.timestamp().map(Timestamp::from_millis),
        key: message.key().map(Bytes::copy_from_slice),
        value: message.value().map(Bytes::copy_from_slice),
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
