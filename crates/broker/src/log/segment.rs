//! One segment: a run of batches from a base offset on. Appends come in at the end, positions for
//! offsets and times go out. Its index is made when first needed, so a segment nobody reads costs nothing.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard};

use super::batch::BatchHeader;
use super::index::{INTERVAL, Index};
use super::scan::{self, Stop};
use super::store::Store;
use crate::sync::lock;

/// Bytes read at a time when a whole segment is walked.
const WALK: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base: i64,
    pub(crate) store: Store,
    index: Mutex<Option<Index>>,
}

/// A batch found in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

impl Segment {
    /// A segment without a batch, or one that is read when first needed.
    pub(crate) fn new(base: i64, store: Store) -> Segment {
        Segment {
            base,
            store,
            index: Mutex::default(),
        }
    }

    /// The index, made by walking the headers if this is the first time.
    pub(crate) fn index(&self) -> io::Result<IndexGuard<'_>> {
        let mut guard = lock(&self.index);
        if guard.is_none() {
            *guard = Some(self.build()?);
        }
        Ok(IndexGuard(guard))
    }

    fn build(&self) -> io::Result<Index> {
        let mut index = Index::new(self.base);
        let size = self.store.len()?;
        if size == 0 {
            return Ok(index);
        }
        let stop = scan::headers(&self.store.reader()?, 0..size, WALK, |met| {
            index.push(met.header);
            Ok(ControlFlow::<()>::Continue(()))
        })?;
        match stop {
            None => Ok(index),
            Some(Stop::Broke(()) | Stop::Bad(..)) => {
                let what = format!("segment {} is damaged at byte {}", self.base, index.size);
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }

    /// Forgets the index: the bytes were cut.
    pub(crate) fn forget(&self) {
        *lock(&self.index) = None;
    }

    /// Appends a batch, given as the header to write and its records.
    pub(crate) fn append(&self, header: &BatchHeader, records: &[u8]) -> io::Result<()> {
        let mut index = self.index()?;
        let index = index.get();
        self.store.append(index.size, &[&header.encode(), records])?;
        index.push(header);
        Ok(())
    }

    /// The first batch whose last offset is at or after `offset`.
    pub(crate) fn find(&self, offset: i64) -> io::Result<Option<Found>> {
        let (from, to) = {
            let mut index = self.index()?;
            let index = index.get();
            if offset >= index.next_offset {
                return Ok(None);
            }
            (index.seek(offset), index.size)
        };
        self.first(from, to, |header| header.last_offset() >= offset)
    }

    /// The first batch that reaches `timestamp` and holds an offset at or after `start`.
    pub(crate) fn find_time(&self, timestamp: i64, start: i64) -> io::Result<Option<Found>> {
        let (from, to) = {
            let mut index = self.index()?;
            let index = index.get();
            if index.max_timestamp < timestamp {
                return Ok(None);
            }
            (index.seek_time(timestamp).max(index.seek(start)), index.size)
        };
        self.first(from, to, |header| {
            header.max_timestamp >= timestamp && header.last_offset() >= start
        })
    }

    /// The batch that begins at `position`.
    pub(crate) fn at(&self, position: u64) -> io::Result<Option<Found>> {
        let size = self.index()?.get().size;
        self.first(position, size, |_| true)
    }

    fn first(&self, from: u64, to: u64, wanted: impl Fn(&BatchHeader) -> bool) -> io::Result<Option<Found>> {
        let stop = scan::headers(&self.store.reader()?, from..to, INTERVAL as usize, |met| {
            Ok(match wanted(met.header) {
                true => ControlFlow::Break(Found {
                    position: met.position,
                    header: met.header.clone(),
                }),
                false => ControlFlow::Continue(()),
            })
        })?;
        match stop {
            Some(Stop::Broke(found)) => Ok(Some(found)),
            None => Ok(None),
            Some(Stop::Bad(at, bad)) => {
                let what = format!("segment {} is damaged at byte {at}: {bad}", self.base);
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }
}

/// The index of a segment, locked.
pub(crate) struct IndexGuard<'a>(MutexGuard<'a, Option<Index>>);

impl IndexGuard<'_> {
    pub(crate) fn get(&mut self) -> &mut Index {
        self.0.as_mut().expect("made before the guard is given")
    }
}
