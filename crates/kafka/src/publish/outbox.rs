//! A producer, the thread that hears its confirmations, and the records that it has no room for yet. A producer
//! that has had nothing to do for a while is given up: the next record makes another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use redrive_core::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot};
use tracing::warn;

use super::{Outgoing, native};
use crate::native::Queue;
use crate::wake::Wake;

/// Partition and offset, or why not.
pub(crate) type Answer = Result<(i32, i64), KafkaError>;

/// How soon the thread notices that nobody publishes any more.
const NOTICE: Duration = Duration::from_millis(500);

/// After so many looks with nothing to do the producer is given up. Its threads and connections cost something
/// all the time, and most subscriptions publish for moments only.
const QUIET: u32 = 10;

/// Where a publisher has its outbox, while it needs one.
#[derive(Default)]
pub(crate) struct Place(Mutex<Option<Arc<Outbox>>>);

impl Place {
    /// Puts records into the outbox, which is made if there is none. Under the lock: one that is given up has
    /// nothing under way, so its records and those of the next are never out of order.
    pub(crate) fn put(
        self: &Arc<Self>,
        config: &ClientConfig,
        records: impl Iterator<Item = (Outgoing, Whom)>,
    ) -> Result<Arc<Outbox>, KafkaError> {
        let mut place = self.lock();
        let outbox = match &*place {
            Some(outbox) => outbox.clone(),
            None => place.insert(Outbox::start(config, Arc::downgrade(self))?).clone(),
        };
        outbox.put(records);
        Ok(outbox)
    }

    /// The outbox, if there is one.
    pub(crate) fn get(&self) -> Option<Arc<Outbox>> {
        self.lock().clone()
    }

    /// Gives the outbox up if only this place and its own thread know it: then it ends on that thread.
    fn give_up(&self, outbox: &Arc<Outbox>) {
        let mut place = self.lock();
        let is_here = place.as_ref().is_some_and(|here| Arc::ptr_eq(here, outbox));
        if is_here && Arc::strong_count(outbox) == 2 {
            *place = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Outbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue is dropped before its client.
pub(crate) struct Outbox {
    /// First come, first served: records that librdkafka had no room for.
    waiting: Mutex<VecDeque<Waiting>>,
    under_way: Arc<UnderWay>,
    reports: Queue,
    producer: BaseProducer<Context>,
}

struct Waiting {
    record: Outgoing,
    ticket: Ticket,
}

/// How many records have no answer yet.
#[derive(Default)]
struct UnderWay {
    records: AtomicUsize,
    /// How many there ever were.
    ever: AtomicUsize,
    none: Notify,
}

/// Who wants to know what became of a record.
pub(crate) enum Whom {
    /// Somebody who waits for this one.
    One(oneshot::Sender<Answer>),
    /// Somebody who waits for several and hears of each that was refused, by its number; of the others only that there is
    /// nothing more to hear.
    Many(usize, mpsc::UnboundedSender<(usize, KafkaError)>),
}

impl Whom {
    /// Nobody may be waiting for it.
    fn hear(self, answer: Answer) {
        match (self, answer) {
            (Self::One(confirm), answer) => drop(confirm.send(answer)),
            (Self::Many(number, refused), Err(error)) => drop(refused.send((number, error))),
            (Self::Many(..), Ok(_)) => {}
        }
    }
}

/// Of each record that is under way: whom to tell.
pub(crate) struct Ticket {
    whom: Option<Whom>,
    under_way: Arc<UnderWay>,
}

impl Ticket {
    fn answer(mut self, answer: Answer) {
        if let Some(whom) = self.whom.take() {
            whom.hear(answer);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(whom) = self.whom.take() {
            whom.hear(Err(cut_off()));
        }
        if self.under_way.records.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.under_way.none.notify_waiters();
        }
    }
}

pub(crate) struct Context;

impl ClientContext for Context {
    fn error(&self, error: KafkaError, words: &str) {
        // Each record hears its own end; this is why it may take long.
        warn!(%error, "{words}");
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Self::DeliveryOpaque) {
        ticket.answer(match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        });
    }
}

impl Outbox {
    fn start(config: &ClientConfig, place: Weak<Place>) -> Result<Arc<Self>, KafkaError> {
        let producer = BaseProducer::from_config_and_context(config, Context)?;
        let wake = Arc::new(Wake::default());
        let reports = Queue::reports(producer.client().native_client(), wake.clone());
        let outbox =
            Arc::new(Self { waiting: Mutex::default(), under_way: Arc::default(), reports, producer });
        let weak = Arc::downgrade(&outbox);
        thread::Builder::new()
            .name("publish".to_owned())
            .spawn(move || {
                wake.me();
                let (mut ever, mut quiet) = (0, 0);
                while let Some(outbox) = weak.upgrade() {
                    outbox.hear();
                    let before = std::mem::replace(&mut ever, outbox.under_way.ever.load(Ordering::SeqCst));
                    let rests = ever == before && outbox.under_way.records.load(Ordering::SeqCst) == 0;
                    quiet = if rests { quiet + 1 } else { 0 };
                    if quiet >= QUIET
                        && let Some(place) = place.upgrade()
                    {
                        place.give_up(&outbox);
                    }
                    drop(outbox);
                    wake.sleep(NOTICE);
                }
            })
            .expect("a thread can be started");
        Ok(outbox)
    }

    /// One event at a time: its records make room only when all of them have been heard.
    fn hear(&self) {
        while self.reports.len() > 0 {
            self.producer.poll(Duration::ZERO);
            self.send_waiting(&mut self.waiting());
        }
    }

    fn put(&self, records: impl Iterator<Item = (Outgoing, Whom)>) {
        let mut waiting = self.waiting();
        for (record, whom) in records {
            self.under_way.records.fetch_add(1, Ordering::SeqCst);
            self.under_way.ever.fetch_add(1, Ordering::SeqCst);
            let ticket = Ticket { whom: Some(whom), under_way: self.under_way.clone() };
            waiting.push_back(Waiting { record, ticket });
            self.send_waiting(&mut waiting);
        }
    }

    /// Under the lock, so that the order of the calls is the order in librdkafka.
    fn send_waiting(&self, waiting: &mut VecDeque<Waiting>) {
        while let Some(first) = waiting.pop_front() {
            if let Some(first) = self.send(first) {
                waiting.push_front(first);
                return;
            }
        }
    }

    /// Back it comes if there is no room.
    fn send(&self, Waiting { record, ticket }: Waiting) -> Option<Waiting> {
        let mut native_record: BaseRecord<'_, [u8], [u8], _> =
            BaseRecord::with_opaque_to(record.topic.as_str(), Box::new(ticket));
        native_record.partition = record.partition;
        native_record.timestamp = record.timestamp.map(Timestamp::millis);
        native_record.key = record.key.as_deref();
        native_record.payload = record.value.as_deref();
        native_record.headers = native(&record.headers);
        let (error, back) = self.producer.send(native_record).err()?;
        let ticket = *back.delivery_opaque;
        if error.rdkafka_error_code() == Some(Code::QueueFull) {
            return Some(Waiting { record, ticket });
        }
        ticket.answer(Err(error));
        None
    }

    /// Waits until every record has its answer. Not by librdkafka's own flush, which would hear reports
    /// in a place that sends nothing on.
    pub(crate) async fn flushed(&self) {
        loop {
            let mut none = std::pin::pin!(self.under_way.none.notified());
            // Before the look: what ends in between is not missed.
            none.as_mut().enable();
            if self.under_way.records.load(Ordering::SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a record whose producer is gone.
pub(crate) fn cut_off() -> KafkaError {
    KafkaError::MessageProduction(Code::PurgeQueue)
}
