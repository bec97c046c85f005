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
use crate::log::{AppendError, Appended, Compacted, Log, Marker, Place, Settings, TimestampType, records};
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

    /// Appends what a client sent and wakes who waits. `may_append` is asked while the log is held, as it
    /// is for a marker: a batch of a transaction that ends meanwhile comes before its end or not at all.
    pub(crate) fn produce(
        &self,
        batch: &Bytes,
        settings: &Settings,
        now: i64,
        may_append: impl FnOnce(&BatchHeader) -> Result<(), ResponseError>,
    ) -> Result<Appended, ResponseError> {
        let header = batch::check_produced(batch).map_err(refusal)?;
        check(&header, batch, settings, now)?;
        let (header, batch) = recompressed(header, batch, settings)?;
        let mut log = self.log()?;
        may_append(&header)?;
        let appended = log.append(header, &batch, settings, now).map_err(append_refusal)?;
        drop(log);
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

    /// Puts compacted segments in place; gives how many bytes that saved. After a failure the log is opened
    /// anew at its next use, which goes on where this ended.
    pub(crate) fn swap(&self, compacted: Compacted) -> io::Result<u64> {
        let mut state = lock(&self.log);
        let State::Open(log) = &mut *state else {
            return compacted.discard().map(|()| 0);
        };
        let swapped = log.swap(compacted);
        if swapped.is_err() && self.place.dir.is_some() {
            *state = State::Closed;
        }
        swapped
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
            Ok((header.clone(), Bytes::from([&header.encode()[..], &packed].concat())))
        }
        Some(_) | None => Ok((header, batch.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Cleanup, Handles, Isolation, testing};

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn a_swap_that_fails_is_finished_when_the_log_is_used_next() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { dir: Some(dir.path().to_owned()), handles: Handles::new(8) };
        let partition = Partition::new(0, place);
        let settings = Settings { cleanup: Cleanup::Compact, segment_bytes: 200, ..Settings::default() };
        for number in 0..20 {
            let batch = testing::record(&format!("k{number}"), Some("v")).build();
            partition.produce(&batch, &settings, NOW, |_| Ok(())).unwrap();
        }
        let plan = partition.log().unwrap().plan_compaction(&settings, NOW, true).unwrap().unwrap();
        let compacted = plan.carry_out(NOW).unwrap();
        let (from, to) = compacted.ranges()[1];
        let obstacle = dir.path().join(format!("{from:020}-{to:020}.swap"));
        std::fs::create_dir(&obstacle).unwrap();
        partition.swap(compacted).unwrap_err();
        std::fs::remove_dir(&obstacle).unwrap();
        let log = partition.log().unwrap();
        assert_eq!(log.next_offset(), 20);
        for offset in 0..20 {
            let window = log.window(offset, 1, true, Isolation::Uncommitted).unwrap();
            let header = batch::check(&window.slice.unwrap().read().unwrap()).unwrap();
            assert_eq!(header.base_offset, offset);
        }
    }
}
