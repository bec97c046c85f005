//! The header of a record batch (magic 2): bytes in, a checked header out, and the few fields that a
//! broker may set. Records stay as they came; nothing here decompresses, allocates or panics.

use bytes::{Buf, BufMut};

/// Bytes before the first record.
pub(crate) const HEADER: usize = 61;
/// Bytes that the length field does not count: base offset and the length itself.
const PREAMBLE: usize = 12;
/// Where the bytes begin that the CRC covers: base offset and leader epoch stand before it.
const CRC_FROM: usize = 21;
/// The only magic byte that is kept.
pub(crate) const MAGIC: i8 = 2;

const LOG_APPEND_TIME: i16 = 0b1000;
const TRANSACTIONAL: i16 = 0b1_0000;
const CONTROL: i16 = 0b10_0000;

/// Why bytes are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBatch {
    #[error("the batch is cut off")]
    Truncated,
    #[error("message format {0} is not kept")]
    Magic(i8),
    #[error("the checksum does not match")]
    Checksum,
    #[error("{0}")]
    Malformed(&'static str),
}

/// A batch header, every field as it is on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) base_offset: i64,
    pub(crate) length: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) crc: u32,
    pub(crate) attributes: i16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`, which may hold more or less than the batch.
    pub(crate) fn parse(bytes: &[u8]) -> Result<BatchHeader, BadBatch> {
        let magic = *bytes.get(16).ok_or(BadBatch::Truncated)? as i8;
        if magic != MAGIC {
            return Err(BadBatch::Magic(magic));
        }
        let mut b = bytes.get(..HEADER).ok_or(BadBatch::Truncated)?;
        let (base_offset, length, leader_epoch) = (b.get_i64(), b.get_i32(), b.get_i32());
        b.advance(1);
        let header = BatchHeader {
            base_offset,
            length,
            leader_epoch,
            crc: b.get_u32(),
            attributes: b.get_i16(),
            last_offset_delta: b.get_i32(),
            base_timestamp: b.get_i64(),
            max_timestamp: b.get_i64(),
            producer_id: b.get_i64(),
            producer_epoch: b.get_i16(),
            base_sequence: b.get_i32(),
            count: b.get_i32(),
        };
        if header.length < (HEADER - PREAMBLE) as i32 {
            return Err(BadBatch::Malformed("the length is smaller than a header"));
        }
        if header.last_offset_delta < 0
            || header
                .base_offset
                .checked_add(header.last_offset_delta.into())
                .is_none()
        {
            return Err(BadBatch::Malformed("the last offset is out of range"));
        }
        Ok(header)
    }

    /// The whole batch in bytes.
    pub(crate) fn size(&self) -> usize {
        PREAMBLE + self.length as usize
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The sequence number of the last record; numbers start again at zero after the largest.
    pub(crate) fn last_sequence(&self) -> i32 {
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        if last > i64::from(i32::MAX) {
            (last - i64::from(i32::MAX) - 1) as i32
        } else {
            last as i32
        }
    }

    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub(crate) fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// The number of the compression codec.
    pub(crate) fn codec(&self) -> i16 {
        self.attributes & 0b111
    }

    /// The header as bytes, to write before the untouched records.
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut b = &mut out[..];
        b.put_i64(self.base_offset);
        b.put_i32(self.length);
        b.put_i32(self.leader_epoch);
        b.put_i8(MAGIC);
        b.put_u32(self.crc);
        b.put_i16(self.attributes);
        b.put_i32(self.last_offset_delta);
        b.put_i64(self.base_timestamp);
        b.put_i64(self.max_timestamp);
        b.put_i64(self.producer_id);
        b.put_i16(self.producer_epoch);
        b.put_i32(self.base_sequence);
        b.put_i32(self.count);
        out
    }

    /// Stamps the broker's time. Readers take it from the header, so no record changes.
    pub(crate) fn set_log_append_time(&mut self, now: i64) {
        self.attributes |= LOG_APPEND_TIME;
        self.max_timestamp = now;
    }

    /// Gives the header the length and the checksum that `records` after it make.
    pub(crate) fn seal(&mut self, records: &[u8]) {
        self.length = (HEADER - PREAMBLE + records.len()) as i32;
        let head = self.encode();
        self.crc = crc32c::crc32c_append(crc32c::crc32c(&head[CRC_FROM..]), records);
    }
}

/// Checks one whole batch: its length, its checksum. Bytes after it are not looked at.
pub(crate) fn check(bytes: &[u8]) -> Result<BatchHeader, BadBatch> {
    let header = BatchHeader::parse(bytes)?;
    let batch = bytes.get(..header.size()).ok_or(BadBatch::Truncated)?;
    if crc32c::crc32c(&batch[CRC_FROM..]) != header.crc {
        return Err(BadBatch::Checksum);
    }
    Ok(header)
}

/// What a client may append: one whole batch, not a control batch, its numbers in order.
pub(crate) fn check_produced(bytes: &[u8]) -> Result<BatchHeader, BadBatch> {
    let header = check(bytes)?;
    let fault = if header.size() != bytes.len() {
        "a request holds exactly one batch a partition"
    } else if header.is_control() {
        "clients do not write control batches"
    } else if header.count <= 0 || header.count - 1 != header.last_offset_delta {
        "the record count does not match the offsets"
    } else if header.codec() > 4 {
        "the compression is not known"
    } else if header.producer_id >= 0 && (header.base_sequence < 0 || header.producer_epoch < 0) {
        "an idempotent batch needs an epoch and a sequence number"
    } else if header.is_transactional() && header.producer_id < 0 {
        "a transactional batch needs a producer id"
    } else {
        return Ok(header);
    };
    Err(BadBatch::Malformed(fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing;
    use proptest::prelude::*;

    #[test]
    fn a_header_survives_the_way_out_and_in() {
        let bytes = testing::batch(3).build();
        let header = check_produced(&bytes).unwrap();
        assert_eq!(
            (header.count, header.last_offset(), header.size()),
            (3, 2, bytes.len())
        );
        assert_eq!(header.encode()[..], bytes[..HEADER]);
    }

    #[test]
    fn a_flipped_bit_after_the_checksum_is_found() {
        let mut bytes = testing::batch(3).build().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(check(&bytes), Err(BadBatch::Checksum));
    }

    #[test]
    fn old_formats_are_named() {
        let mut bytes = testing::batch(1).build().to_vec();
        bytes[16] = 1;
        assert_eq!(check(&bytes), Err(BadBatch::Magic(1)));
    }

    #[test]
    fn offset_and_leader_epoch_are_not_covered_by_the_checksum() {
        let bytes = testing::batch(2).build();
        let mut header = check(&bytes).unwrap();
        header.base_offset = 7_000_000_000;
        header.leader_epoch = 9;
        let moved = [&header.encode()[..], &bytes[HEADER..]].concat();
        assert_eq!(check(&moved), Ok(header));
    }

    #[test]
    fn the_last_sequence_starts_again_after_the_largest() {
        let header = check(&testing::batch(3).sequence(1, 0, i32::MAX - 1).build()).unwrap();
        assert_eq!(header.last_sequence(), 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = check_produced(&bytes);
        }

        #[test]
        fn a_damaged_batch_never_panics(at in 0usize..120, to in any::<u8>(), cut in 0usize..200) {
            let mut bytes = testing::batch(3).build().to_vec();
            let at = at % bytes.len();
            bytes[at] = to;
            bytes.truncate(cut);
            let _ = check_produced(&bytes);
        }
    }
}
