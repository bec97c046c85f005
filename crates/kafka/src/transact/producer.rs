//! The producer of transactions: blocking, one transaction at a time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use redrive_core::Timestamp;
use tracing::warn;

use super::failed::{TransactionFailed, fatal, fenced, retriable};
use crate::publish::native;
use crate::{Outgoing, Refusal};

/// How often a call is made again that timed out or met a coordinator on the move.
const TRIES: u32 = 3;

/// How long the others may take when one record was refused.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Producer {
    /// With a thread of its own for confirmations: an abort waits for them and does not fetch them.
    producer: ThreadedProducer<Context>,
    timeout: Duration,
}

/// What became of the records of the transaction.
#[derive(Default)]
struct Context {
    reports: Mutex<Reports>,
    came: Condvar,
}

#[derive(Default)]
struct Reports {
    sent: usize,
    heard: usize,
    /// Where the broker put each record that it confirmed.
    offsets: Vec<Option<i64>>,
    /// The first refusal, and of which record.
    refused: Option<(usize, KafkaError)>,
}

impl Reports {
    /// A record that is only purged with the others is not the one at fault.
    fn refuse(&mut self, index: usize, error: KafkaError) {
        let purged = matches!(error.rdkafka_error_code(), Some(Code::PurgeQueue | Code::PurgeInflight));
        if self.refused.is_none() && !purged {
            self.refused = Some((index, error));
        }
    }
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, words: &str) {
        // Whoever runs a transaction hears its end; this is why it may take long.
        warn!(%error, "{words}");
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.heard += 1;
        match result {
            // A batch that the broker had already is confirmed without its place.
            Ok(message) => {
                if let Some(offset) = reports.offsets.get_mut(index) {
                    *offset = Some(message.offset()).filter(|offset| *offset >= 0);
                }
            }
            Err((error, _)) => reports.refuse(index, error.clone()),
        }
        self.came.notify_all();
    }
}

impl Producer {
    pub(super) fn start(config: &ClientConfig, timeout: Duration) -> Result<Self, KafkaError> {
        let producer = ThreadedProducer::from_config_and_context(config, Context::default())?;
        let producer = Self { producer, timeout };
        producer.again(|| producer.producer.init_transactions(timeout))?;
        Ok(producer)
    }

    pub(super) fn run(
        &self,
        outgoing: &[Outgoing],
        consumed: Option<(&TopicPartitionList, &ConsumerGroupMetadata)>,
    ) -> Result<(), TransactionFailed> {
        self.begin()?;
        self.put(outgoing)?;
        self.commit(consumed)
    }

    /// The same with records that tell where the others are.
    pub(super) fn run_and_tell(
        &self,
        outgoing: &[Outgoing],
        tell: impl FnOnce(&[i64]) -> Vec<Outgoing>,
    ) -> Result<(), TransactionFailed> {
        self.begin()?;
        self.put(outgoing)?;
        let offsets: Option<Vec<i64>> = self.reports().offsets.iter().copied().collect();
        let Some(offsets) = offsets else {
            // Nobody can tell: it is undone, and can be done again.
            let error = KafkaError::MessageProduction(Code::DuplicateSequenceNumber);
            return Err(self.undo(error, TransactionFailed::Aborted));
        };
        self.put(&tell(&offsets))?;
        self.commit(None)
    }

    fn begin(&self) -> Result<(), TransactionFailed> {
        // Nothing has begun: there is nothing to undo.
        self.producer.begin_transaction().map_err(|error| match fenced(&error) {
            true => TransactionFailed::Fenced(error),
            false => TransactionFailed::Broken(error),
        })
    }

    /// Publishes records and waits until all are confirmed; where one is refused, all is undone.
    fn put(&self, outgoing: &[Outgoing]) -> Result<(), TransactionFailed> {
        *self.reports() = Reports { offsets: vec![None; outgoing.len()], ..Reports::default() };
        self.publish(outgoing);
        self.wait();
        let refused = self.reports().refused.take();
        match refused {
            Some((index, error)) => Err(self.refused(index, &outgoing[index], error)),
            None => Ok(()),
        }
    }

    fn commit(
        &self,
        consumed: Option<(&TopicPartitionList, &ConsumerGroupMetadata)>,
    ) -> Result<(), TransactionFailed> {
        let marked = match consumed {
            Some((offsets, group)) => {
                self.again(|| self.producer.send_offsets_to_transaction(offsets, group, self.timeout))
            }
            None => Ok(()),
        };
        let done = marked.and_then(|()| self.again(|| self.producer.commit_transaction(self.timeout)));
        done.map_err(|error| match fenced(&error) {
            true => self.undo(error, TransactionFailed::Fenced),
            false => self.undo(error, TransactionFailed::Aborted),
        })
    }

    fn publish(&self, outgoing: &[Outgoing]) {
        for (index, record) in outgoing.iter().enumerate() {
            let mut native_record: BaseRecord<'_, [u8], [u8], _> =
                BaseRecord::with_opaque_to(record.topic.as_str(), index);
            native_record.partition = record.partition;
            native_record.timestamp = record.timestamp.map(Timestamp::millis);
            native_record.key = record.key.as_deref();
            native_record.payload = record.value.as_deref();
            native_record.headers = native(&record.headers);
            if let Err(error) = self.send(native_record) {
                let error = self.cause(error);
                return self.reports().refuse(index, error);
            }
            self.reports().sent += 1;
        }
    }

    /// After a fatal error librdkafka refuses records with no word about which: whoever was fenced off while it
    /// sent must know that from what is broken.
    fn cause(&self, error: KafkaError) -> KafkaError {
        match (error.rdkafka_error_code(), self.producer.client().fatal_error()) {
            (Some(Code::Fatal), Some((code, _))) => KafkaError::MessageProduction(code),
            _ => error,
        }
    }

    /// Waits for room if there is none: every confirmation makes some.
    fn send(&self, mut record: BaseRecord<'_, [u8], [u8], usize>) -> Result<(), KafkaError> {
        loop {
            let heard = self.reports().heard;
            let Err((error, back)) = self.producer.send(record) else { return Ok(()) };
            if error.rdkafka_error_code() != Some(Code::QueueFull) {
                return Err(error);
            }
            record = back;
            let _more = self.context().came.wait_while(self.reports(), |reports| reports.heard == heard);
        }
    }

    /// Waits until each record is confirmed or refused, even if one is at once: to abort with others under
    /// way would cost the producer's sequence. But not for long then: those behind a record that the broker
    /// refused have no place in the sequence any more, and are neither until they time out, the transaction
    /// with them. librdkafka sees to it that none takes longer than the timeout. Not by its `flush`, which is
    /// late by up to 100 ms.
    fn wait(&self) {
        let came = &self.context().came;
        let is_open = |reports: &mut Reports| reports.heard < reports.sent;
        let reports =
            came.wait_while(self.reports(), |reports| is_open(reports) && reports.refused.is_none());
        let reports = reports.unwrap_or_else(PoisonError::into_inner);
        let (reports, _) =
            came.wait_timeout_while(reports, GRACE, is_open).unwrap_or_else(PoisonError::into_inner);
        if reports.heard < reports.sent {
            return;
        }
        drop(reports);
        // The last is counted out just after it was reported; a commit would otherwise flush after all.
        while self.producer.in_flight_count() > 0 {
            std::thread::yield_now();
        }
    }

    fn refused(&self, index: usize, record: &Outgoing, error: KafkaError) -> TransactionFailed {
        let kind = Refusal::of(&error);
        match kind {
            _ if fenced(&error) => self.undo(error, TransactionFailed::Fenced),
            // No fault of the record.
            Refusal::Timeout | Refusal::Other => self.undo(error, TransactionFailed::Aborted),
            Refusal::MissingTopic | Refusal::MissingPartition | Refusal::TooLarge | Refusal::NotAllowed => {
                let topic = record.topic.clone();
                self.undo(error, |source| TransactionFailed::Refused { index, topic, kind, source })
            }
        }
    }

    /// Undoes what was begun; what to report.
    fn undo(
        &self,
        error: KafkaError,
        report: impl FnOnce(KafkaError) -> TransactionFailed,
    ) -> TransactionFailed {
        // Fenced by another producer is fatal, too, but to renew would be to fence that one off in turn.
        if fatal(&error) {
            return if fenced(&error) { report(error) } else { TransactionFailed::Broken(error) };
        }
        match self.again(|| self.producer.abort_transaction(self.timeout)) {
            Ok(()) => report(error),
            Err(error) if fenced(&error) => TransactionFailed::Fenced(error),
            Err(error) => TransactionFailed::Broken(error),
        }
    }

    fn again(&self, mut call: impl FnMut() -> Result<(), KafkaError>) -> Result<(), KafkaError> {
        let mut result = call();
        for _ in 1..TRIES {
            match &result {
                Err(error) if retriable(error) => result = call(),
                _ => break,
            }
        }
        result
    }

    fn context(&self) -> &Context {
        self.producer.context()
    }

    fn reports(&self) -> std::sync::MutexGuard<'_, Reports> {
        self.context().reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
