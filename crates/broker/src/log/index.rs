//! The sparse index of one segment, in memory: offsets and times to positions. Fed with every batch
//! in order, it keeps one entry for some kilobytes; whoever asks walks the headers from there.

use super::batch::BatchHeader;

/// Bytes of the segment for one entry: a gigabyte costs three megabytes of memory.
pub(crate) const INTERVAL: u64 = 8 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The base offset of the batch at `position`.
    offset: i64,
    position: u64,
    /// The largest timestamp before this batch.
    max_timestamp: i64,
}

/// What is known of a segment without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// Bytes indexed so far.
    pub(crate) size: u64,
    /// One past the last offset; the segment's base while it is empty.
    pub(crate) next_offset: i64,
    /// The largest timestamp and the base offset of the first batch that has it.
    pub(crate) max_timestamp: i64,
    pub(crate) max_timestamp_position: u64,
    /// When the first batch was stamped; a segment's age counts from it.
    pub(crate) first_timestamp: Option<i64>,
}

impl Index {
    pub(crate) fn new(base: i64) -> Index {
        Index {
            entries: Vec::new(),
            size: 0,
            next_offset: base,
            max_timestamp: -1,
            max_timestamp_position: 0,
            first_timestamp: None,
        }
    }

    /// Takes note of the batch that was appended at the end.
    pub(crate) fn push(&mut self, header: &BatchHeader) {
        if self.entries.last().is_none_or(|last| self.size - last.position >= INTERVAL) {
            let entry =
                Entry { offset: header.base_offset, position: self.size, max_timestamp: self.max_timestamp };
            self.entries.push(entry);
        }
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.max_timestamp_position = self.size;
        }
        self.first_timestamp.get_or_insert(header.max_timestamp);
        self.size += header.size() as u64;
        self.next_offset = header.last_offset() + 1;
    }

    /// A position at or before the batch that holds `offset`, less than an interval and a batch before it.
    pub(crate) fn seek(&self, offset: i64) -> u64 {
        let after = self.entries.partition_point(|entry| entry.offset <= offset);
        after.checked_sub(1).map_or(0, |i| self.entries[i].position)
    }

    /// An offset that no batch before `position` reaches, less than an interval and a batch beyond it.
    pub(crate) fn bound(&self, position: u64) -> i64 {
        let at = self.entries.partition_point(|entry| entry.position < position);
        self.entries.get(at).map_or(self.next_offset, |entry| entry.offset)
    }

    /// A position at or before the first batch that reaches `timestamp`.
    pub(crate) fn seek_time(&self, timestamp: i64) -> u64 {
        let after = self.entries.partition_point(|entry| entry.max_timestamp < timestamp);
        after.checked_sub(1).map_or(0, |i| self.entries[i].position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{batch, testing};
    use proptest::prelude::*;

    fn header(base: i64, n: i32, timestamp: i64, size: i32) -> BatchHeader {
        let mut header = batch::check(&testing::batch(n).at(timestamp).build()).unwrap();
        header.base_offset = base;
        header.length = size.max(49);
        header
    }

    proptest! {
        #[test]
        fn lookups_never_pass_what_they_look_for(
            batches in proptest::collection::vec((1..5i32, 0..100i64, 49..9_000i32), 1..60),
            wanted in 0..200i64, time in 0..110i64,
        ) {
            let mut index = Index::new(0);
            let mut all = Vec::new();
            for (n, timestamp, size) in batches {
                let header = header(index.next_offset, n, timestamp, size);
                all.push((index.size, header.clone()));
                index.push(&header);
            }
            if let Some((position, _)) = all.iter().find(|(_, h)| h.last_offset() >= wanted) {
                prop_assert!(index.seek(wanted) <= *position);
            }
            for (position, header) in &all {
                prop_assert!(index.bound(position + 1) > header.last_offset());
                prop_assert!(index.bound(position + header.size() as u64) > header.last_offset());
            }
            if let Some((position, _)) = all.iter().find(|(_, h)| h.max_timestamp >= time) {
                prop_assert!(index.seek_time(time) <= *position);
            }
        }
    }
}
