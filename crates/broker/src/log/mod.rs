//! The log of one partition: batches come in and get offsets, slices of bytes go out. It holds what
//! must be known to append and to read (segments, producers, transactions) and nothing of the wire.
//! What `append` has acknowledged is with the operating system and is found again after a crash.

pub(crate) mod batch;
mod compaction;
mod handles;
mod index;
mod marker;
mod open_transactions;
mod place;
mod producers;
mod read;
pub(crate) mod records;
mod recovery;
mod retention;
mod scan;
mod segment;
mod settings;
mod store;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod times;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use self::batch::{BatchHeader, HEADER};
use self::open_transactions::OpenTransactions;
use self::place::{Marks, Snapshot};
use self::producers::{Producers, Verdict};
use self::segment::Segment;

pub(crate) use self::compaction::Compacted;
pub(crate) use self::handles::Handles;
pub(crate) use self::open_transactions::Aborted;
pub(crate) use self::place::Place;
pub(crate) use self::producers::Producer;
pub(crate) use self::read::{Isolation, ReadError, Slice, Window};
pub(crate) use self::settings::{Cleanup, Settings, TimestampType};
pub(crate) use self::times::At;

/// One leader for ever: its epoch never changes.
pub(crate) const LEADER_EPOCH: i32 = 0;

/// Why a batch was not appended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    #[error("refused: {0}")]
    Refused(ResponseError),
    #[error("cannot write the log")]
    Io(#[from] io::Error),
}

/// Where a batch is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) base_offset: i64,
    /// The broker's time if the topic keeps it, else minus one.
    pub(crate) timestamp: i64,
    pub(crate) log_start: i64,
}

/// The log of one partition. Whoever holds it has it alone.
#[derive(Debug)]
pub(crate) struct Log {
    place: Place,
    /// By base offset, never empty; the last one is written to.
    segments: Vec<Arc<Segment>>,
    marks: Marks,
    next_offset: i64,
    producers: Producers,
    transactions: OpenTransactions,
    /// Whether anything was written since the last snapshot.
    written: bool,
    /// Whether anything was written that may not be on the disk.
    unsynced: bool,
}

impl Log {
    /// The first offset that can be read.
    pub(crate) fn start(&self) -> i64 {
        self.marks.start
    }

    /// One past the last record; with one replica it is the high watermark too.
    pub(crate) fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// How far a read-committed reader may read.
    pub(crate) fn stable_offset(&self) -> i64 {
        self.transactions.first_open().unwrap_or(self.next_offset)
    }

    pub(crate) fn size(&self) -> io::Result<u64> {
        self.segments.iter().map(|segment| segment.store.len()).sum()
    }

    pub(crate) fn producers(&self) -> &Producers {
        &self.producers
    }

    /// Where the open transaction of a producer began.
    pub(crate) fn open_transaction(&self, producer_id: i64) -> Option<i64> {
        self.transactions.started(producer_id)
    }

    /// Appends a batch that `check_produced` has passed. A batch that is here already is not appended
    /// again; its answer is the first one's.
    pub(crate) fn append(
        &mut self,
        mut header: BatchHeader,
        batch: &Bytes,
        settings: &Settings,
        now: i64,
    ) -> Result<Appended, AppendError> {
        if let Verdict::Repeats { base_offset, timestamp } =
            self.producers.check(&header).map_err(AppendError::Refused)?
        {
            return Ok(Appended { base_offset, timestamp, log_start: self.start() });
        }
        let records = &batch[HEADER..];
        header.base_offset = self.next_offset;
        header.leader_epoch = LEADER_EPOCH;
        let mut timestamp = -1;
        if settings.timestamp_type == TimestampType::LogAppend {
            header.set_log_append_time(now);
            header.seal(records);
            timestamp = now;
        }
        self.write(&header, records, settings)?;
        Ok(Appended { base_offset: header.base_offset, timestamp, log_start: self.start() })
    }

    /// Ends a producer's transaction here: a control batch, and the readers' bound moves on.
    pub(crate) fn append_marker(
        &mut self,
        marker: Marker,
        settings: &Settings,
        now: i64,
    ) -> Result<i64, AppendError> {
        self.producers.check_marker(marker.producer_id, marker.epoch).map_err(AppendError::Refused)?;
        let (mut header, records) = marker::control_batch(marker, now);
        header.base_offset = self.next_offset;
        self.write(&header, &records, settings)?;
        self.transactions.ended(marker.producer_id, header.base_offset, marker.commit);
        Ok(header.base_offset)
    }

    fn write(&mut self, header: &BatchHeader, records: &[u8], settings: &Settings) -> io::Result<()> {
        if self.is_full(header, settings)? {
            self.roll()?;
        }
        self.active().append(header, records)?;
        self.next_offset = header.last_offset() + 1;
        self.producers.appended(header);
        self.transactions.appended(header);
        (self.written, self.unsynced) = (true, true);
        Ok(())
    }

    fn active(&self) -> &Arc<Segment> {
        self.segments.last().expect("a log has a segment")
    }

    /// Age is counted in the records' own time, as Kafka does: records of a year ago written now would
    /// otherwise get a segment each.
    fn is_full(&self, next: &BatchHeader, settings: &Settings) -> io::Result<bool> {
        let mut index = self.active().index()?;
        let index = index.get();
        let age = |first: i64| next.max_timestamp.saturating_sub(first);
        let is_aged = index.first_timestamp.is_some_and(|first| age(first) > settings.segment_ms);
        Ok(index.size > 0 && (index.size + next.size() as u64 > settings.segment_bytes || is_aged))
    }

    /// Closes the active segment and begins one at the next offset; an empty one stays.
    pub(crate) fn roll(&mut self) -> io::Result<()> {
        if self.active().index()?.get().size == 0 {
            return Ok(());
        }
        self.segments.push(Arc::new(Segment::new(self.next_offset, self.place.store(self.next_offset))));
        self.save_snapshot()
    }

    fn save_snapshot(&mut self) -> io::Result<()> {
        let snapshot = Snapshot {
            segment: self.active().base,
            position: self.active().index()?.get().size,
            next_offset: self.next_offset,
            producers: self.producers.clone(),
            transactions: self.transactions.clone(),
        };
        self.place.save_snapshot(&snapshot)?;
        self.written = false;
        Ok(())
    }

    /// Leaves the log on the disk, and so that the next start need not walk it.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.segments.iter().try_for_each(|segment| segment.store.sync())?;
            self.unsynced = false;
        }
        if self.written {
            self.save_snapshot()?;
            self.place.sync()?;
        }
        Ok(())
    }
}

pub(crate) use self::marker::Marker;
