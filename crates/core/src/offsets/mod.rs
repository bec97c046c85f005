//! Which offsets of a partition are complete, when records finish in any order.
//!
//! Records start in the order of their offsets, so what lies below the reading position and is not
//! in flight is complete: finished records, control records and what compaction removed alike. The
//! state is therefore no larger than the records in flight.

pub mod leb128;
mod progress;
mod ranges;
pub(crate) mod sparse;
#[cfg(test)]
mod tests;

pub use progress::{BadProgress, Progress};
pub use ranges::Ranges;
use sparse::Sparse;

/// The offsets of one partition.
#[derive(Debug, Clone)]
pub struct Offsets {
    /// The next offset to be read: all below were started or are gaps.
    position: i64,
    in_flight: Sparse<()>,
    /// Complete before the reader gets there, as an earlier owner left it.
    known: Ranges,
}

/// What a record that was just read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// To be handled, and in flight from now on.
    New,
    /// Complete already: an earlier owner finished it.
    Complete,
    /// Below the reading position: it was delivered before.
    Again,
}

impl Offsets {
    /// A partition that is read from `mark` on, where only this was finished ahead of it.
    #[must_use]
    pub fn resume(progress: Progress) -> Self {
        let (mark, ahead) = progress.into_parts();
        Self { position: mark, in_flight: Sparse::default(), known: ahead }
    }

    /// A record was read.
    pub fn start(&mut self, offset: i64) -> Started {
        if offset < self.position {
            return Started::Again;
        }
        let complete = self.known.contains(offset);
        self.pass(offset.saturating_add(1));
        if complete {
            return Started::Complete;
        }
        self.in_flight.push(offset, ());
        Started::New
    }

    /// A record is complete. Says whether it was in flight.
    pub fn finish(&mut self, offset: i64) -> bool {
        self.in_flight.remove(offset).is_some()
    }

    /// The reader is now at `position`: what it did not deliver below was never a record.
    pub fn pass(&mut self, position: i64) {
        self.position = self.position.max(position);
        self.known.drop_below(self.position);
    }

    /// The next offset to be read.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Everything below was read, is a gap, or was complete before.
    #[must_use]
    pub fn passed(&self) -> i64 {
        self.known.end_of_run_at(self.position)
    }

    /// Whether this offset was read, is a gap, or was complete before.
    #[must_use]
    pub fn is_behind(&self, offset: i64) -> bool {
        offset < self.position || self.known.contains(offset)
    }

    /// How many records are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The low-water mark: everything below is complete, so this may be committed.
    #[must_use]
    pub fn mark(&self) -> i64 {
        match self.in_flight.first() {
            Some(lowest) => lowest,
            None => self.known.end_of_run_at(self.position),
        }
    }

    /// The mark and what is complete ahead of it: enough to go on elsewhere.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let mark = self.mark();
        let mut ahead = Ranges::default();
        for (flying, next) in self.in_flight.offsets().zip(self.in_flight.offsets().skip(1)) {
            ahead.insert(flying + 1..next);
        }
        if let Some(last) = self.in_flight.offsets().last() {
            ahead.insert(last + 1..self.position);
        }
        for range in self.known.iter() {
            ahead.insert(range.start.max(mark)..range.end);
        }
        Progress::new(mark, ahead)
    }
}
