//! Reading a log: an offset and limits come in, a slice of a segment goes out, to be read from its
//! file when the log is no longer held. A reader never gets more than what was acknowledged.

use std::fs::File;
use std::io;

use bytes::Bytes;

use super::segment::Found;
use super::store::Reader;
use super::{Aborted, Log};

/// Which transactions a reader wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    Uncommitted,
    Committed,
}

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the offset is out of range")]
    OutOfRange,
    #[error("cannot read the log")]
    Io(#[from] io::Error),
}

/// Bytes of a segment, found but not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    reader: Reader,
    position: u64,
    pub(crate) len: usize,
}

impl Slice {
    /// Reads the bytes; the log need not be held.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        self.reader.read(self.position, self.len)
    }

    /// The file it lies in and where, if it lies in one.
    pub(crate) fn file(&self) -> Option<(&File, u64)> {
        match &self.reader {
            Reader::File(file) => Some((file, self.position)),
            Reader::Memory(_) => None,
        }
    }

    /// Reads as many bytes as `out` has room for, from `at` on, counted from the slice's beginning.
    pub(crate) fn read_part(&self, at: usize, out: &mut [u8]) -> io::Result<()> {
        self.reader.read_into(self.position + at as u64, out)
    }
}

/// What a reader sees of a log from an offset on.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) next_offset: i64,
    pub(crate) stable_offset: i64,
    pub(crate) start: i64,
    pub(crate) slice: Option<Slice>,
    pub(crate) aborted: Vec<Aborted>,
}

impl Log {
    /// What is there from `offset` on, at most `max` bytes of one segment. With `whole_first` the first
    /// batch is given whole even if it is larger, or a reader with a small limit would never get past it.
    pub(crate) fn window(
        &self,
        offset: i64,
        max: usize,
        whole_first: bool,
        isolation: Isolation,
    ) -> Result<Window, ReadError> {
        if offset < self.start() || offset > self.next_offset() {
            return Err(ReadError::OutOfRange);
        }
        let bound = match isolation {
            Isolation::Uncommitted => self.next_offset(),
            Isolation::Committed => self.stable_offset(),
        };
        let mut window = Window {
            next_offset: self.next_offset(),
            stable_offset: self.stable_offset(),
            start: self.start(),
            slice: None,
            aborted: Vec::new(),
        };
        if offset >= bound {
            return Ok(window);
        }
        let Some((at, found)) = self.locate(offset)? else {
            return Ok(window);
        };
        let segment = &self.segments[at];
        let (mut end, mut upper) = {
            let mut index = segment.index()?;
            (index.get().size, index.get().next_offset)
        };
        if bound < upper {
            // The bound begins a batch: the first of an open transaction.
            end = segment.find(bound)?.map_or(end, |found| found.position);
            upper = bound;
        }
        if found.position >= end {
            return Ok(window);
        }
        let first = found.header.size();
        let mut len = usize::try_from(end - found.position).unwrap_or(usize::MAX).min(max);
        if len < first {
            len = if whole_first { first } else { 0 };
        }
        if len > 0 {
            window.slice = Some(Slice { reader: segment.store.reader()?, position: found.position, len });
        }
        if isolation == Isolation::Committed {
            // Only what concerns the bytes that are given; a batch cut off at their end counts as given.
            upper = upper.min(segment.index()?.get().bound(found.position + len as u64));
            window.aborted = self.transactions.aborted(offset, upper).copied().collect();
        }
        Ok(window)
    }

    /// The segment and the first batch in it that reach `offset`. Compaction leaves holes, so it may be
    /// in a later segment than the one the offset belongs to.
    pub(crate) fn locate(&self, offset: i64) -> io::Result<Option<(usize, Found)>> {
        let first = self.segments.partition_point(|segment| segment.base <= offset).saturating_sub(1);
        for (at, segment) in self.segments.iter().enumerate().skip(first) {
            if let Some(found) = segment.find(offset)? {
                return Ok(Some((at, found)));
            }
        }
        Ok(None)
    }
}
