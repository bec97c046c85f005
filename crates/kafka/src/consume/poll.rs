//! The thread that polls, always: events first, then records as long as the receiver has room. It sleeps
//! when there is neither, and is woken by whoever brings one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use redrive_core::headers::{Headers, known};
use redrive_core::{Origin, Record, Timestamp, Topic};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::Link;
use super::event::{Batch, Event, Turn};
use super::holding::Holding;
use crate::Error;
use crate::native::{Message, Room};

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
            link.wake.sleep(link.heartbeat);
        }
    }
    leave(link);
    link.consumer.context().committing.over();
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
    if link.waiting.is_full() {
        link.wake.want_room();
        if link.waiting.is_full() {
            return false;
        }
    }
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
        link.waiting.add(&events);
        permit.send(events);
    }
    taken == room.len()
}

fn take(link: &Link, room: &mut Room, pages: &mut Pages) -> (usize, Vec<Event>) {
    let mut holding = link.consumer.context().holding();
    let mut sorting = Sorting { topic: &link.topic, holding: &mut holding, pages, events: Vec::new() };
    let taken = link.queue.take(room, |message| sorting.sort(&message));
    sorting.pages.share_out(&mut sorting.events);
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
        let mut record = bare(self.topic, message);
        let (key, value) = (message.key(), message.value());
        let bytes = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
        let is_large = bytes > PAGE / 4;
        if is_large {
            record.key = key.map(Bytes::copy_from_slice);
            record.value = value.map(Bytes::copy_from_slice);
        }
        let (event, record) = self.put(message.partition(), turn, record, bytes);
        if is_large || bytes == 0 && key.is_none() && value.is_none() {
            return;
        }
        if !self.pages.has_room(bytes) {
            self.pages.share_out(&mut self.events);
        }
        let (key, value) = (key.map(|key| self.pages.copy(key)), value.map(|value| self.pages.copy(value)));
        self.pages.waiting.push(Waiting { event, record, key, value });
    }

    /// Adds a record to the batch of its partition. Says where it is.
    fn put(&mut self, partition: i32, turn: Turn, record: Record, bytes: usize) -> (usize, usize) {
        if let Some(Event::Records(batch)) = self.events.last_mut()
            && batch.partition == partition
        {
            batch.records.push(record);
            batch.bytes += bytes;
            let place = batch.records.len() - 1;
            return (self.events.len() - 1, place);
        }
        let mut records = Vec::with_capacity(AT_ONCE);
        records.push(record);
        self.events.push(Event::Records(Batch { partition, turn, records, bytes }));
        (self.events.len() - 1, 0)
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
///
/// A page is shared out only when it is full, at once: who counts the parts of a page while another thread
/// drops some waits for that thread at every step.
#[derive(Default)]
struct Pages {
    page: Vec<u8>,
    /// The records whose key and value are in this page.
    waiting: Vec<Waiting>,
}

struct Waiting {
    event: usize,
    record: usize,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

impl Pages {
    fn has_room(&self, bytes: usize) -> bool {
        self.page.len() + bytes <= PAGE
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.page.len();
        self.page.extend_from_slice(bytes);
        start..self.page.len()
    }

    /// Gives the records of the page what is theirs.
    fn share_out(&mut self, events: &mut [Event]) {
        if self.waiting.is_empty() {
            return;
        }
        let page = Bytes::from(std::mem::replace(&mut self.page, Vec::with_capacity(PAGE)));
        for waiting in self.waiting.drain(..) {
            let Event::Records(batch) = &mut events[waiting.event] else { continue };
            let record = &mut batch.records[waiting.record];
            record.key = waiting.key.map(|range| page.slice(range));
            record.value = waiting.value.map(|range| page.slice(range));
        }
    }
}

/// The record without its key and value.
fn bare(topic: &Topic, message: &Message<'_>) -> Record {
    let mut headers = Headers::default();
    message.headers(|name, value| headers.push(known(name), value.map(Bytes::copy_from_slice)));
    Record {
        at: Origin { topic: topic.clone(), partition: message.partition(), offset: message.offset() },
        timestamp: message.timestamp().map(Timestamp::from_millis),
        key: None,
        value: None,
        headers,
    }
}

/// Gives everything up and waits until the group has been told.
fn leave(link: &Link) {
    let context = link.consumer.context();
    context.leave();
    // A revocation that nobody answered would be waited for. Where there is none, it does no harm. Not once
    // the queue is being closed: a membership that has ended never answers, and the call waits for it.
    let everything = context.holding().everything();
    let _ = link.consumer.incremental_unassign(&context.list(&everything));
    if link.consumer.close_queue().is_err() {
        return;
    }
    while !link.consumer.closed() {
        let _ = link.consumer.poll(PATIENCE);
    }
}
