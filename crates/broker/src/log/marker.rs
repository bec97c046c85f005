//! Transaction markers: the control batches that end a producer's transaction in a partition, written
//! and read back byte for byte as Kafka lays them out.

use bytes::Bytes;

use super::LEADER_EPOCH;
use super::batch::{BatchHeader, HEADER};
use super::records;

/// The end of one producer's transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) commit: bool,
}

const TRANSACTIONAL_CONTROL: i16 = 0b11_0000;
const ABORT: u8 = 0;
const COMMIT: u8 = 1;

/// The control batch of a marker, its offset still to be set.
pub(crate) fn control_batch(marker: Marker, now: i64) -> (BatchHeader, Vec<u8>) {
    let kind = if marker.commit { COMMIT } else { ABORT };
    #[rustfmt::skip]
    let records = vec![
        32,                // the record's length, sixteen, in zigzag
        0, 0, 0,           // attributes, timestamp delta, offset delta
        8, 0, 0, 0, kind,  // key: four bytes, version 0, the kind
        12, 0, 0, 0, 0, 0, 0, // value: six bytes, version 0, the coordinator's epoch
        0,                 // no headers
    ];
    let mut header = BatchHeader {
        base_offset: 0,
        length: 0,
        leader_epoch: LEADER_EPOCH,
        crc: 0,
        attributes: TRANSACTIONAL_CONTROL,
        last_offset_delta: 0,
        base_timestamp: now,
        max_timestamp: now,
        producer_id: marker.producer_id,
        producer_epoch: marker.epoch,
        base_sequence: -1,
        count: 1,
    };
    header.seal(&records);
    (header, records)
}

/// Whether a control batch commits; nothing if it is another kind of control batch.
pub(crate) fn commits(batch: &Bytes) -> Option<bool> {
    let record = records::iterate(batch.get(HEADER..)?).next()?;
    match record.key? {
        [_, _, 0, ABORT] => Some(false),
        [_, _, 0, COMMIT] => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::batch;

    #[test]
    fn a_marker_is_a_whole_control_batch_that_says_how_it_ended() {
        for commit in [true, false] {
            let (header, records) = control_batch(
                Marker {
                    producer_id: 5,
                    epoch: 2,
                    commit,
                },
                77,
            );
            let bytes = Bytes::from([&header.encode()[..], &records].concat());
            let read = batch::check(&bytes).unwrap();
            assert!(read.is_control() && read.is_transactional());
            assert_eq!(commits(&bytes), Some(commit));
        }
    }
}
