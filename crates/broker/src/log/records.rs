//! The records inside a batch, for the few who must look: compaction, offsets for times, key checks.
//! A batch comes in, decompressed records go out as slices. The produce path must never come here
//! unless the topic's settings demand it.

use bytes::{Bytes, BytesMut};
use kafka_protocol::compression::{Compressor, Decompressor, Gzip, Lz4, Snappy, Zstd};

use super::batch::{BatchHeader, HEADER};

/// A record as it lies in the payload; `raw` holds it whole, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRecord<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) has_value: bool,
}

impl RawRecord<'_> {
    /// Appends the record to `out` with its time counted from a base that is `shift` later.
    pub(crate) fn shifted(&self, shift: i64, out: &mut Vec<u8>) {
        if shift == 0 {
            return out.extend_from_slice(self.raw);
        }
        let mut b = self.raw;
        // Both were read when the record was taken apart: they are there.
        let (_, attributes, _) = (varint(&mut b), take(&mut b, 1), varint(&mut b));
        let mut body = attributes.unwrap_or(&[0]).to_vec();
        put_varint(&mut body, self.timestamp_delta + shift);
        body.extend_from_slice(b);
        put_varint(out, body.len() as i64);
        out.extend(body);
    }
}

/// Why the records of a batch cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the records of a batch: {0}")]
pub(crate) struct Unreadable(String);

/// The records of `batch` (header included), decompressed.
pub(crate) fn payload(header: &BatchHeader, batch: &Bytes) -> Result<Bytes, Unreadable> {
    if batch.len() < HEADER {
        return Err(Unreadable("cut off".into()));
    }
    let mut records = batch.slice(HEADER..);
    let whole = |b: &mut Bytes| Ok(b.clone());
    let plain = match header.codec() {
        0 => return Ok(records),
        1 => Gzip::decompress(&mut records, |b| whole(b)),
        2 => Snappy::decompress(&mut records, |b| whole(b)),
        3 => Lz4::decompress(&mut records, |b| whole(b)),
        4 => Zstd::decompress(&mut records, |b| whole(b)),
        other => return Err(Unreadable(format!("compression {other} is not known"))),
    };
    plain.map_err(|e| Unreadable(format!("{e:#}")))
}

/// Compresses records with the codec of that number.
pub(crate) fn compress(codec: i16, plain: &[u8]) -> Result<Bytes, Unreadable> {
    let mut out = BytesMut::new();
    let fill = |b: &mut BytesMut| {
        b.extend_from_slice(plain);
        Ok(())
    };
    let done = match codec {
        0 => fill(&mut out),
        1 => Gzip::compress(&mut out, fill),
        2 => Snappy::compress(&mut out, fill),
        3 => Lz4::compress(&mut out, fill),
        4 => Zstd::compress(&mut out, fill),
        other => return Err(Unreadable(format!("compression {other} is not known"))),
    };
    done.map_err(|e| Unreadable(format!("{e:#}")))?;
    Ok(out.freeze())
}

/// The records of a decompressed payload, one after the other; ends at the first that is not whole.
pub(crate) fn iterate(plain: &[u8]) -> impl Iterator<Item = RawRecord<'_>> {
    let mut rest = plain;
    std::iter::from_fn(move || {
        let record = one(rest)?;
        rest = &rest[record.raw.len()..];
        Some(record)
    })
}

fn one(bytes: &[u8]) -> Option<RawRecord<'_>> {
    let mut b = bytes;
    let length = usize::try_from(varint(&mut b)?).ok()?;
    let head = bytes.len() - b.len();
    let raw = bytes.get(..head.checked_add(length)?)?;
    let mut b = &raw[head..];
    let _attributes = take(&mut b, 1)?;
    let timestamp_delta = varint(&mut b)?;
    let offset_delta = i32::try_from(varint(&mut b)?).ok()?;
    let key = field(&mut b)?;
    let has_value = field(&mut b)?.is_some();
    Some(RawRecord {
        raw,
        timestamp_delta,
        offset_delta,
        key,
        has_value,
    })
}

/// A nullable field: a length of minus one means null.
fn field<'a>(b: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match varint(b)? {
        -1 => Some(None),
        n => Some(Some(take(b, usize::try_from(n).ok()?)?)),
    }
}

fn take<'a>(b: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = b.split_at_checked(n)?;
    *b = rest;
    Some(head)
}

fn varint(b: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(b, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

pub(crate) fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{batch, testing};
    use proptest::prelude::*;

    #[test]
    fn every_compression_gives_the_records_back() {
        for codec in 0..=4 {
            let bytes = testing::batch(5).codec(codec).build();
            let header = batch::check_produced(&bytes).unwrap();
            let plain = payload(&header, &bytes).unwrap();
            let keys: Vec<_> = iterate(&plain).map(|r| r.key.unwrap().to_vec()).collect();
            assert_eq!(
                keys,
                (0..5)
                    .map(|i| format!("key-{i}").into_bytes())
                    .collect::<Vec<_>>(),
                "codec {codec}"
            );
        }
    }

    #[test]
    fn a_record_without_a_value_is_a_tombstone() {
        let bytes = testing::batch(1).tombstones().build();
        let plain = payload(&batch::check(&bytes).unwrap(), &bytes).unwrap();
        assert!(!iterate(&plain).next().unwrap().has_value);
    }

    proptest! {
        #[test]
        fn arbitrary_records_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = iterate(&bytes).count();
        }
    }
}
