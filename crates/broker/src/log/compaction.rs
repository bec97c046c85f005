//! Compaction: of the records of a key only the last stays. Closed segments come in, new files with
//! the same offsets and fewer records go out, put in place when whole. Never touches the active segment,
//! what an open transaction may still change, or what is younger than the settings allow.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::batch::BatchHeader;
use super::marker;
use super::open_transactions::OpenTransactions;
use super::place::{self, Marks, Place};
use super::records::{self, RawRecord};
use super::scan;
use super::segment::Segment;
use super::store::Store;
use super::{Log, Settings};

const WALK: usize = 256 * 1024;
/// Attribute bit: the base timestamp says until when the batch's tombstones stay.
const DELETE_HORIZON: i16 = 0b100_0000;

/// Everything that a compaction needs of the log, so that the log is not held while it works.
pub(crate) struct Plan {
    place: Place,
    segments: Vec<Arc<Segment>>,
    /// The offset that the last of `segments` ends before.
    end: i64,
    start: i64,
    /// Up to here the log was compacted before: keys are collected from here on.
    dirty_from: i64,
    transactions: OpenTransactions,
    delete_retention_ms: i64,
    segment_bytes: u64,
}

/// New segments for a run of old ones.
pub(crate) struct Compacted {
    plan: Plan,
    made: Vec<Made>,
}

struct Made {
    base: i64,
    end: i64,
    store: Store,
}

impl Log {
    /// What can be compacted now, if there is enough of it.
    pub(crate) fn plan_compaction(
        &self,
        settings: &Settings,
        now: i64,
        demanded: bool,
    ) -> io::Result<Option<Plan>> {
        if !settings.cleanup.compacts() {
            return Ok(None);
        }
        let (mut clean, mut dirty, mut segments, mut oldest) = (0, 0, Vec::new(), i64::MAX);
        for segment in &self.segments[..self.segments.len() - 1] {
            let mut index = segment.index()?;
            let index = index.get();
            let young = now.saturating_sub(index.max_timestamp) < settings.min_compaction_lag_ms;
            let is_dirty = index.next_offset > self.marks.cleaned && index.size > 0;
            if is_dirty && (index.next_offset > self.stable_offset() || young) {
                break;
            }
            if is_dirty {
                dirty += index.size;
                oldest = oldest.min(index.first_timestamp.unwrap_or(i64::MAX));
            } else {
                clean += index.size;
            }
            segments.push(segment.clone());
        }
        let ratio = dirty as f64 / (clean + dirty).max(1) as f64;
        let overdue = now.saturating_sub(oldest) > settings.max_compaction_lag_ms && oldest != i64::MAX;
        if segments.is_empty() || !(demanded || dirty > 0 && (ratio >= settings.min_dirty_ratio || overdue)) {
            return Ok(None);
        }
        Ok(Some(Plan {
            place: self.place.clone(),
            end: self.segments[segments.len()].base,
            segments,
            start: self.start(),
            dirty_from: self.marks.cleaned,
            transactions: self.transactions.clone(),
            delete_retention_ms: settings.delete_retention_ms,
            segment_bytes: settings.segment_bytes,
        }))
    }

    /// Puts the new segments in the place of the old. Gives how many bytes that saved; nothing happens
    /// if the old ones left meanwhile. After an error the files are as a crash leaves them, every record
    /// that counts in one of them, and the log must be opened anew: it may name files that are gone.
    pub(crate) fn swap(&mut self, compacted: Compacted) -> io::Result<u64> {
        let here = compacted.plan.segments.iter().zip(&self.segments).all(|(old, now)| Arc::ptr_eq(old, now));
        if !here || self.segments.len() <= compacted.plan.segments.len() {
            return compacted.discard().map(|()| 0);
        }
        let Compacted { plan, made } = compacted;
        let before = self.size()?;
        let bases: Vec<i64> = plan.segments.iter().map(|segment| segment.base).collect();
        let mut segments = Vec::new();
        for made in made {
            segments.push(Arc::new(made.put_in_place(&plan.place, &bases)?));
        }
        self.segments.splice(..plan.segments.len(), segments);
        let marks = Marks { cleaned: plan.end, ..self.marks };
        self.place.save_marks(marks)?;
        self.marks = marks;
        Ok(before.saturating_sub(self.size()?))
    }
}

impl Compacted {
    /// The offsets that each new file stands for.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> Vec<(i64, i64)> {
        self.made.iter().map(|made| (made.base, made.end)).collect()
    }

    /// Removes what was written: the old segments stay.
    pub(crate) fn discard(self) -> io::Result<()> {
        self.made.iter().try_for_each(|made| made.store.remove())
    }
}

impl Made {
    /// In three steps: on the disk, decided, done. Until the decision a crash leaves the old segments; after
    /// it the next start goes on where this ended.
    fn put_in_place(self, place: &Place, bases: &[i64]) -> io::Result<Segment> {
        let Some(dir) = &place.dir else {
            return Ok(Segment::new(self.base, self.store));
        };
        self.store.sync()?;
        let swap = dir.join(place::swap_name(self.base, self.end));
        std::fs::rename(dir.join(place::cleaned_name(self.base)), &swap)?;
        // The decision is on the disk before the first old segment goes.
        place.sync()?;
        place.swap_in(&swap, self.base, self.end, bases)?;
        Ok(Segment::new(self.base, place.store(self.base)))
    }
}

impl Plan {
    /// Writes the new segments beside the old ones. The log need not be held.
    pub(crate) fn carry_out(self, now: i64) -> io::Result<Compacted> {
        let latest = self.latest_offsets()?;
        let mut writer = Writer::new(&self)?;
        let mut with_data = HashSet::new();
        for segment in &self.segments {
            writer.begin(segment.base, segment.store.len()?)?;
            self.each_batch(segment, |header, batch| {
                if let Some((header, records)) =
                    self.rewritten(header, batch, &latest, &mut with_data, now)?
                {
                    writer.write(&header, &records)?;
                }
                Ok(())
            })?;
        }
        let made = writer.finish(self.end);
        Ok(Compacted { plan: self, made })
    }

    fn each_batch(
        &self,
        segment: &Segment,
        mut visit: impl FnMut(&BatchHeader, &Bytes) -> io::Result<()>,
    ) -> io::Result<()> {
        let size = segment.index()?.get().size;
        scan::headers(&segment.store.reader()?, 0..size, WALK, |met| {
            visit(met.header, &met.bytes()?)?;
            Ok(ControlFlow::<()>::Continue(()))
        })?;
        Ok(())
    }

    /// The last offset of each key that counts, in the part that was not compacted before.
    fn latest_offsets(&self) -> io::Result<HashMap<Vec<u8>, i64>> {
        let mut latest = HashMap::new();
        for segment in &self.segments {
            if segment.index()?.get().next_offset <= self.dirty_from {
                continue;
            }
            self.each_batch(segment, |header, batch| {
                if header.is_control() || self.is_aborted(header) {
                    return Ok(());
                }
                let plain = records::payload(header, batch).map_err(io::Error::other)?;
                for record in records::iterate(&plain) {
                    let Some(key) = record.key else { continue };
                    latest.insert(key.to_vec(), header.base_offset + i64::from(record.offset_delta));
                }
                Ok(())
            })?;
        }
        Ok(latest)
    }

    fn is_aborted(&self, header: &BatchHeader) -> bool {
        let mut touching = self.transactions.aborted(header.base_offset, header.last_offset() + 1);
        header.is_transactional() && touching.any(|aborted| aborted.producer_id == header.producer_id)
    }

    /// The batch as it stays, or nothing of it.
    fn rewritten(
        &self,
        header: &BatchHeader,
        batch: &Bytes,
        latest: &HashMap<Vec<u8>, i64>,
        with_data: &mut HashSet<i64>,
        now: i64,
    ) -> io::Result<Option<(BatchHeader, Bytes)>> {
        if header.last_offset() < self.start || (!header.is_control() && self.is_aborted(header)) {
            return Ok(None);
        }
        let whole = || Some((header.clone(), batch.slice(super::batch::HEADER..)));
        if header.is_control() {
            // A marker is needed while records of its transaction are there, and for late readers.
            let needed = with_data.remove(&header.producer_id) || marker::commits(batch).is_none();
            let recent = now.saturating_sub(header.max_timestamp) <= self.delete_retention_ms;
            return Ok((needed || recent).then(whole).flatten());
        }
        let plain = records::payload(header, batch).map_err(io::Error::other)?;
        let horizon = (header.attributes & DELETE_HORIZON != 0).then_some(header.base_timestamp);
        let stays = |record: &RawRecord<'_>| {
            let offset = header.base_offset + i64::from(record.offset_delta);
            let newest = record.key.is_some_and(|key| latest.get(key).is_none_or(|last| offset >= *last));
            newest && (record.has_value || horizon.is_none_or(|horizon| now < horizon))
        };
        let kept: Vec<RawRecord<'_>> = records::iterate(&plain).filter(stays).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        if header.is_transactional() {
            with_data.insert(header.producer_id);
        }
        let starts_horizon = horizon.is_none() && kept.iter().any(|record| !record.has_value);
        if kept.len() == header.count as usize && !starts_horizon {
            return Ok(whole());
        }
        let horizon = starts_horizon.then(|| now.saturating_add(self.delete_retention_ms));
        rebuild(header, &kept, horizon).map(Some)
    }
}

/// A batch of the records that stay. Offsets, sequence and length in offsets are the old ones; a
/// horizon takes the place of the base timestamp, and the records' times are counted from it.
fn rebuild(
    old: &BatchHeader,
    kept: &[RawRecord<'_>],
    horizon: Option<i64>,
) -> io::Result<(BatchHeader, Bytes)> {
    let mut header = old.clone();
    let mut plain = Vec::new();
    let stamps = kept.iter().map(|record| old.base_timestamp + record.timestamp_delta);
    if !old.is_log_append_time() {
        header.max_timestamp = stamps.max().unwrap_or(old.max_timestamp);
    }
    if let Some(horizon) = horizon {
        header.attributes |= DELETE_HORIZON;
        header.base_timestamp = horizon;
    }
    for record in kept {
        record.shifted(old.base_timestamp - header.base_timestamp, &mut plain);
    }
    header.count = kept.len() as i32;
    let payload = records::compress(header.codec(), &plain).map_err(io::Error::other)?;
    header.seal(&payload);
    Ok((header, payload))
}

/// Writes the kept batches into new files, several small segments into one.
struct Writer<'a> {
    plan: &'a Plan,
    made: Vec<Made>,
    size: u64,
    room_needed: u64,
}

impl<'a> Writer<'a> {
    fn new(plan: &'a Plan) -> io::Result<Writer<'a>> {
        Ok(Writer { plan, made: Vec::new(), size: 0, room_needed: 0 })
    }

    /// The next old segment begins: it joins the current file or opens one at its own base.
    fn begin(&mut self, base: i64, size: u64) -> io::Result<()> {
        self.room_needed += size;
        if !self.made.is_empty() && self.room_needed <= self.plan.segment_bytes {
            return Ok(());
        }
        if let Some(last) = self.made.last_mut() {
            last.end = base;
        }
        let store = match &self.plan.place.dir {
            Some(dir) => {
                let path = dir.join(place::cleaned_name(base));
                super::store::remove_if_there(&path)?;
                Store::file(path, &self.plan.place.handles)
            }
            None => Store::memory(),
        };
        store.append(0, &[])?;
        self.made.push(Made { base, end: base, store });
        (self.size, self.room_needed) = (0, size);
        Ok(())
    }

    fn write(&mut self, header: &BatchHeader, records: &[u8]) -> io::Result<()> {
        let current = self.made.last().expect("begun before written");
        current.store.append(self.size, &[&header.encode(), records])?;
        self.size += header.size() as u64;
        Ok(())
    }

    fn finish(mut self, end: i64) -> Vec<Made> {
        if let Some(last) = self.made.last_mut() {
            last.end = end;
        }
        self.made
    }
}
