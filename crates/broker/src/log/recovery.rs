//! Opening a log: a directory comes in, the log as it was acknowledged goes out. A snapshot saves the
//! walk over what lies before it; behind it every batch is checked, and a torn tail is cut off.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use tracing::warn;

use super::Log;
use super::batch;
use super::marker;
use super::place::{Place, Snapshot};
use super::scan::{self, Met, Stop};
use super::segment::Segment;

/// Bytes read at a time on the walk.
const WALK: usize = 256 * 1024;

impl Log {
    /// Opens the log of a partition, or begins one.
    pub(crate) fn open(place: Place) -> io::Result<Log> {
        let listing = place.open()?;
        let mut marks = place.marks()?;
        let bases = if listing.segments.is_empty() { vec![marks.start] } else { listing.segments };
        let segments: Vec<_> =
            bases.iter().map(|base| Arc::new(Segment::new(*base, place.store(*base)))).collect();
        marks.start = marks.start.max(bases[0]);
        let state = usable(&place, &listing.snapshots, &segments)?;
        let mut log = Log {
            place,
            next_offset: state.next_offset.max(segments[segments.len() - 1].base).max(marks.start),
            segments,
            marks,
            producers: state.producers,
            transactions: state.transactions,
            written: false,
            unsynced: false,
        };
        log.replay(state.segment, state.position)?;
        log.transactions.forget_before(log.start());
        Ok(log)
    }

    /// Walks everything from that position on.
    fn replay(&mut self, base: i64, position: u64) -> io::Result<()> {
        let from = self.segments.partition_point(|segment| segment.base < base);
        for (at, segment) in self.segments.clone().iter().enumerate().skip(from) {
            let start = if segment.base == base { position } else { 0 };
            let size = segment.store.len()?;
            if start == size {
                continue;
            }
            (self.written, self.unsynced) = (true, true);
            let reader = segment.store.reader()?;
            let stop = scan::headers(&reader, start..size, WALK, |met| self.replay_batch(&met))?;
            let Some(Stop::Bad(end, _) | Stop::Broke(end)) = stop else {
                continue;
            };
            if at + 1 < self.segments.len() {
                let what = format!("segment {} is damaged at byte {end}", segment.base);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            warn!(segment = segment.base, kept = end, cut = size - end, "cut a torn tail");
            segment.store.truncate(end)?;
            segment.forget();
        }
        Ok(())
    }

    fn replay_batch(&mut self, met: &Met<'_>) -> io::Result<ControlFlow<u64>> {
        let bytes = met.bytes()?;
        if batch::check(&bytes).is_err() {
            return Ok(ControlFlow::Break(met.position));
        }
        self.producers.appended(met.header);
        self.transactions.appended(met.header);
        if met.header.is_control()
            && let Some(commit) = marker::commits(&bytes)
        {
            self.transactions.ended(met.header.producer_id, met.header.base_offset, commit);
        }
        self.next_offset = self.next_offset.max(met.header.last_offset() + 1);
        Ok(ControlFlow::Continue(()))
    }
}

/// The newest snapshot that fits the files that are there.
fn usable(place: &Place, offsets: &[i64], segments: &[Arc<Segment>]) -> io::Result<Snapshot> {
    for offset in offsets.iter().rev() {
        let Some(snapshot) = place.snapshot(*offset)? else {
            continue;
        };
        let Some(segment) = segments.iter().find(|segment| segment.base == snapshot.segment) else {
            continue;
        };
        if segment.store.len()? >= snapshot.position {
            return Ok(snapshot);
        }
    }
    Ok(Snapshot { segment: segments[0].base, next_offset: segments[0].base, ..Snapshot::default() })
}
