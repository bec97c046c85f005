//! What leaves the head of a log: records deleted on order, segments past their time, bytes past the
//! limit. Only whole segments are removed; the log's start moves on and never back.

use std::io;
use std::sync::Arc;

use super::place::Marks;
use super::segment::Segment;
use super::{Log, Settings};

/// Producers that wrote nothing for a day are forgotten, as Kafka does.
const PRODUCER_EXPIRY_MS: i64 = 86_400_000;

impl Log {
    /// Deletes the records before `offset`. Gives nothing if the log does not reach that far.
    pub(crate) fn delete_before(&mut self, offset: i64) -> io::Result<Option<i64>> {
        if offset > self.next_offset() {
            return Ok(None);
        }
        if offset > self.start() {
            self.start_at(offset)?;
            while self.segments.len() > 1 && self.segments[1].base <= offset {
                self.segments.remove(0).store.remove()?;
            }
        }
        Ok(Some(self.start()))
    }

    /// Removes the segments that the settings no longer keep. Gives how many.
    pub(crate) fn retain(&mut self, settings: &Settings, now: i64) -> io::Result<usize> {
        let transactions = &self.transactions;
        self.producers.expire(now - PRODUCER_EXPIRY_MS, |id| transactions.started(id).is_some());
        if !settings.cleanup.deletes() {
            return Ok(0);
        }
        let expired = self.expired(settings, now)?.max(self.surplus(settings)?);
        if expired == 0 {
            return Ok(0);
        }
        if expired == self.segments.len() {
            self.roll()?;
        }
        // First the mark, then the files: a start between the two must not find records again.
        self.start_at(self.segments[expired].base.max(self.start()))?;
        for segment in self.segments.drain(..expired).collect::<Vec<Arc<Segment>>>() {
            segment.store.remove()?;
        }
        Ok(expired)
    }

    fn start_at(&mut self, offset: i64) -> io::Result<()> {
        let marks = Marks { start: offset, cleaned: self.marks.cleaned.max(offset) };
        self.place.save_marks(marks)?;
        self.marks = marks;
        self.transactions.forget_before(offset);
        Ok(())
    }

    /// How many segments from the head on hold nothing young enough.
    fn expired(&self, settings: &Settings, now: i64) -> io::Result<usize> {
        let Some(keep) = settings.retention_ms else {
            return Ok(0);
        };
        let mut expired = 0;
        for segment in &self.segments {
            let mut index = segment.index()?;
            let index = index.get();
            if index.size == 0
                || now.saturating_sub(index.max_timestamp) <= keep
                || self.is_in_use(index.next_offset)
            {
                break;
            }
            expired += 1;
        }
        Ok(expired)
    }

    /// How many segments from the head on are more than the limit of bytes.
    fn surplus(&self, settings: &Settings) -> io::Result<usize> {
        let Some(keep) = settings.retention_bytes else {
            return Ok(0);
        };
        let mut over = self.size()?.saturating_sub(keep);
        let mut surplus = 0;
        for segment in &self.segments[..self.segments.len() - 1] {
            let size = segment.store.len()?;
            if size > over || self.is_in_use(segment.index()?.get().next_offset) {
                break;
            }
            over -= size;
            surplus += 1;
        }
        Ok(surplus)
    }

    /// An open transaction's records stay, whatever their age: its end is still to come.
    fn is_in_use(&self, next_offset: i64) -> bool {
        self.stable_offset() < next_offset
    }
}
