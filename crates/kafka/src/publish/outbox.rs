//! A producer, the thread that hears its confirmations, and the records that it has no room for yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use redrive_core::Timestamp;
use tokio::sync::oneshot;
use tracing::warn;

use super::{Outgoing, native};

/// Partition and offset, or why not.
pub(crate) type Answer = Result<(i32, i64), KafkaError>;

/// How soon the thread notices that nobody publishes any more.
const NOTICE: Duration = Duration::from_millis(500);

pub(crate) struct Outbox {
    /// First come, first served: records that librdkafka had no room for.
    waiting: Mutex<VecDeque<Waiting>>,
    producer: BaseProducer<Context>,
}

struct Waiting {
    record: Outgoing,
    confirm: oneshot::Sender<Answer>,
}

#[derive(Default)]
pub(crate) struct Context {
    outbox: OnceLock<Weak<Outbox>>,
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, words: &str) {
        // Each record hears its own end; this is why it may take long.
        warn!(%error, "{words}");
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<oneshot::Sender<Answer>>;

    fn delivery(&self, result: &DeliveryResult<'_>, confirm: Self::DeliveryOpaque) {
        let answer = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        // Nobody may be waiting for it.
        let _ = confirm.send(answer);
        // There is room for one more.
        if let Some(outbox) = self.outbox.get().and_then(Weak::upgrade) {
            outbox.send_waiting(&mut outbox.waiting());
        }
    }
}

impl Outbox {
    pub(crate) fn start(config: &ClientConfig) -> Result<Arc<Self>, KafkaError> {
        let producer = BaseProducer::from_config_and_context(config, Context::default())?;
        let outbox = Arc::new(Self { waiting: Mutex::default(), producer });
        let weak = Arc::downgrade(&outbox);
        let _ = outbox.producer.context().outbox.set(weak.clone());
        thread::Builder::new()
            .name("publish".to_owned())
            .spawn(move || {
                while let Some(outbox) = weak.upgrade() {
                    outbox.producer.poll(NOTICE);
                }
            })
            .expect("a thread can be started");
        Ok(outbox)
    }

    pub(crate) fn put(&self, record: Outgoing, confirm: oneshot::Sender<Answer>) {
        let mut waiting = self.waiting();
        waiting.push_back(Waiting { record, confirm });
        self.send_waiting(&mut waiting);
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
    fn send(&self, Waiting { record, confirm }: Waiting) -> Option<Waiting> {
        let mut native_record: BaseRecord<'_, [u8], [u8], _> =
            BaseRecord::with_opaque_to(record.topic.as_str(), Box::new(confirm));
        native_record.partition = record.partition;
        native_record.timestamp = record.timestamp.map(Timestamp::millis);
        native_record.key = record.key.as_deref();
        native_record.payload = record.value.as_deref();
        native_record.headers = native(&record.headers);
        let (error, back) = self.producer.send(native_record).err()?;
        let confirm = *back.delivery_opaque;
        if error.rdkafka_error_code() == Some(Code::QueueFull) {
            return Some(Waiting { record, confirm });
        }
        let _ = confirm.send(Err(error));
        None
    }

    pub(crate) fn flush(&self, timeout: Duration) -> Result<(), KafkaError> {
        self.producer.flush(timeout)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a record whose producer is gone.
pub(crate) fn cut_off() -> KafkaError {
    KafkaError::MessageProduction(Code::PurgeQueue)
}
