//! Offsets for times. A timestamp comes in, the first record at or after it goes out, found by the
//! index and then by reading one batch. Only that batch is decompressed.

use std::io;

use super::Log;
use super::records;
use super::segment::{Found, Segment};

/// A record and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
}

impl Log {
    /// The first record stamped at or after `timestamp`, below `bound`.
    pub(crate) fn first_at(&self, timestamp: i64, bound: i64) -> io::Result<Option<At>> {
        for segment in &self.segments {
            let Some(found) = segment.find_time(timestamp, self.start())? else {
                continue;
            };
            let wanted = |at: &At| at.timestamp >= timestamp && at.offset >= self.start();
            let at = record_in(segment, &found, wanted)?;
            if at.is_some() {
                return Ok(at.filter(|at| at.offset < bound));
            }
        }
        Ok(None)
    }

    /// The record with the largest timestamp; the first of them if several have it.
    pub(crate) fn latest_stamped(&self) -> io::Result<Option<At>> {
        let mut best: Option<(i64, &Segment, u64)> = None;
        for segment in &self.segments {
            let mut index = segment.index()?;
            let index = index.get();
            let better = best.is_none_or(|(timestamp, ..)| index.max_timestamp > timestamp);
            if index.size > 0 && index.next_offset > self.start() && better {
                best = Some((index.max_timestamp, segment, index.max_timestamp_position));
            }
        }
        let Some((timestamp, segment, position)) = best else {
            return Ok(None);
        };
        let Some(found) = segment.at(position)? else {
            return Ok(None);
        };
        record_in(segment, &found, |at| at.timestamp >= timestamp)
    }
}

fn record_in(segment: &Segment, found: &Found, wanted: impl Fn(&At) -> bool) -> io::Result<Option<At>> {
    let header = &found.header;
    let batch = segment.store.reader()?.read(found.position, header.size())?;
    let plain = records::payload(header, &batch).map_err(io::Error::other)?;
    let stamped = records::iterate(&plain).map(|record| At {
        offset: header.base_offset + i64::from(record.offset_delta),
        timestamp: match header.is_log_append_time() {
            true => header.max_timestamp,
            false => header.base_timestamp + record.timestamp_delta,
        },
    });
    Ok(stamped.into_iter().find(wanted))
}
