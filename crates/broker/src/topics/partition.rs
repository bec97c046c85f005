//! A partition: its log, opened when first needed, and who waits for it to grow. Batches come in
//! checked and leave with their offsets; readers that wait are woken, never polled.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tokio::sync::Notify;
use tracing::error;

use crate::log::batch::{self, BadBatch, BatchHeader};
use crate::log::{AppendError, Appended, Log, Marker, Place, Settings, TimestampType, records};
use crate::sync::lock;

/// One partition of a topic.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) index: i32,
    place: Place,
    log: Mutex<State>,
    waiting: Mutex<Vec<Arc<Notify>>>,
    /// How many wait: an append without waiters takes no second lock.
    waiters: AtomicUsize,
    /// Held by whoever tidies up, so that retention and compaction take turns.
    pub(crate) tidying: Mutex<()>,
}

#[derive(Debug)]
enum State {
    Closed,
    Open(Box<Log>),
    Deleted,
}

/// The log, held alone.
pub(crate) struct Held<'a>(MutexGuard<'a, State>);

impl std::ops::Deref for Held<'_> {
    type Target = Log;

    fn deref(&self) -> &Log {
        match &*self.0 {
            State::Open(log) => log,
            State::Closed | State::Deleted => unreachable!("held only when open"),
        }
    }
}

impl std::ops::DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Log {
        match &mut *self.0 {
            State::Open(log) => log,
            State::Closed | State::Deleted => unreachable!("held only when open"),
        }
    }
}

impl Partition {
    pub(crate) fn new(index: i32, place: Place) -> Partition {
        Partition {
            index,
            place,
            log: Mutex::new(State::Closed),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
            tidying: Mutex::default(),
        }
    }

    /// The log, opened now if it was not. The error is the one that clients are told.
    pub(crate) fn log(&self) -> Result<Held<'_>, ResponseError> {
        let mut state = lock(&self.log);
        match &*state {
            State::Open(_) => {}
            State::Deleted => return Err(ResponseError::UnknownTopicOrPartition),
            State::Closed => match Log::open(self.place.clone()) {
                Ok(log) => *state = State::Open(Box::new(log)),
                Err(e) => return Err(storage_error(&e)),
            },
        }
        Ok(Held(state))
    }

    /// The log if anyone has used it since the start: what was not opened needs no closing.
    pub(crate) fn close(&self) -> io::Result<()> {
        match &mut *lock(&self.log) {
            State::Open(log) => log.close(),
            State::Closed | State::Deleted => Ok(()),
        }
    }

    /// Appends what a client sent and wakes who waits.
    pub(crate) fn produce(
        &self,
        batch: &Bytes,
        settings: &Settings,
        now: i64,
    ) -> Result<Appended, ResponseError> {
        let header = batch::check_produced(batch).map_err(refusal)?;
        check(&header, batch, settings, now)?;
        let (header, batch) = recompressed(header, batch, settings)?;
        let appended = self
            .log()?
            .append(header, &batch, settings, now)
            .map_err(append_refusal)?;
        self.wake();
        Ok(appended)
    }

    /// Ends a producer's transaction here. An epoch that is out of date was ended by its successor.
    pub(crate) fn mark(&self, marker: Marker, settings: &Settings, now: i64) -> Result<(), ResponseError> {
        match self.log()?.append_marker(marker, settings, now) {
            Ok(_) | Err(AppendError::Refused(_)) => {}
            Err(AppendError::Io(e)) => return Err(storage_error(&e)),
        }
        self.wake();
        Ok(())
    }

    /// Forgets the log: its files are about to go. Who waits is told.
    pub(crate) fn delete(&self) {
        *lock(&self.log) = State::Deleted;
        self.wake();
    }

    pub(crate) fn watch(&self, notify: &Arc<Notify>) {
        lock(&self.waiting).push(notify.clone());
        self.waiters.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn unwatch(&self, notify: &Arc<Notify>) {
        let mut waiting = lock(&self.waiting);
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, notify)) {
            waiting.swap_remove(at);
            self.waiters.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn wake(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            lock(&self.waiting).iter().for_each(|notify| notify.notify_one());
        }
    }
}

/// Says what broke where an operator sees it, and gives the code that clients understand.
pub(crate) fn storage_error(cause: &io::Error) -> ResponseError {
    error!(%cause, "cannot use a partition's log");
    ResponseError::KafkaStorageError
}

fn append_refusal(cause: AppendError) -> ResponseError {
    match cause {
        AppendError::Refused(code) => code,
        AppendError::Io(e) => storage_error(&e),
    }
}

fn refusal(bad: BadBatch) -> ResponseError {
    match bad {
        BadBatch::Truncated | BadBatch::Checksum => ResponseError::CorruptMessage,
        BadBatch::Magic(_) | BadBatch::Malformed(_) => ResponseError::InvalidRecord,
    }
}

fn check(header: &BatchHeader, batch: &Bytes, settings: &Settings, now: i64) -> Result<(), ResponseError> {
    if batch.len() > settings.max_message_bytes {
        return Err(ResponseError::MessageTooLarge);
    }
    if batch.len() as u64 > settings.segment_bytes {
        return Err(ResponseError::RecordListTooLarge);
    }
    let late = now.saturating_sub(header.base_timestamp.min(header.max_timestamp))
        > settings.timestamp_before_max_ms;
    let early = header.max_timestamp.saturating_sub(now) > settings.timestamp_after_max_ms;
    if settings.timestamp_type == TimestampType::Create && (late || early) {
        return Err(ResponseError::InvalidTimestamp);
    }
    // Compaction goes by the key; Kafka refuses records without one here, too.
    if settings.cleanup.compacts() {
        let plain = records::payload(header, batch).map_err(|_| ResponseError::CorruptMessage)?;
        if records::iterate(&plain).any(|record| record.key.is_none()) {
            return Err(ResponseError::InvalidRecord);
        }
    }
    Ok(())
}

/// The batch in the codec that the topic demands.
fn recompressed(
    mut header: BatchHeader,
    batch: &Bytes,
    settings: &Settings,
) -> Result<(BatchHeader, Bytes), ResponseError> {
    match settings.compression {
        Some(codec) if codec != header.codec() => {
            let plain = records::payload(&header, batch).map_err(|_| ResponseError::CorruptMessage)?;
            let packed = records::compress(codec, &plain).map_err(|_| ResponseError::CorruptMessage)?;
            header.attributes = (header.attributes & !0b111) | codec;
            header.seal(&packed);
            Ok((
                header.clone(),
                Bytes::from([&header.encode()[..], &packed].concat()),
            ))
        }
        Some(_) | None => Ok((header, batch.clone())),
    }
}
