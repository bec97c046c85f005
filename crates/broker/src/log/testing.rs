//! Batches for the tests of this crate, built byte by byte so that no other code vouches for them.

use bytes::Bytes;

use super::batch::BatchHeader;
use super::records::{self, put_varint as varint};

/// Timestamp delta, key and value.
type Plain = (i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// A batch to be: what is not said is plain.
pub(crate) struct Draft {
    header: BatchHeader,
    records: Vec<Plain>,
}

/// `n` records `key-i` = `value-i`, a millisecond apart from 1000 on.
pub(crate) fn batch(n: i32) -> Draft {
    let records = (0..n).map(|i| {
        (
            i64::from(i),
            Some(format!("key-{i}").into()),
            Some(format!("value-{i}").into()),
        )
    });
    Draft::of(records.collect())
}

/// One record with this key and value.
pub(crate) fn record(key: &str, value: Option<&str>) -> Draft {
    Draft::of(vec![(0, Some(key.into()), value.map(Into::into))])
}

impl Draft {
    fn of(records: Vec<Plain>) -> Draft {
        let n = records.len() as i32;
        let header = BatchHeader {
            base_offset: 0,
            length: 0,
            leader_epoch: -1,
            crc: 0,
            attributes: 0,
            last_offset_delta: n - 1,
            base_timestamp: 1_000,
            max_timestamp: 1_000 + i64::from(n) - 1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: n,
        };
        Draft { header, records }
    }

    pub(crate) fn codec(mut self, codec: i16) -> Draft {
        self.header.attributes |= codec;
        self
    }

    pub(crate) fn sequence(mut self, producer: i64, epoch: i16, sequence: i32) -> Draft {
        self.header.producer_id = producer;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = sequence;
        self
    }

    pub(crate) fn transactional(mut self) -> Draft {
        self.header.attributes |= 0b1_0000;
        self
    }

    pub(crate) fn tombstones(mut self) -> Draft {
        for record in &mut self.records {
            record.2 = None;
        }
        self
    }

    pub(crate) fn at(mut self, timestamp: i64) -> Draft {
        self.header.max_timestamp += timestamp - self.header.base_timestamp;
        self.header.base_timestamp = timestamp;
        self
    }

    pub(crate) fn build_size(self) -> u64 {
        self.build().len() as u64
    }

    pub(crate) fn build(mut self) -> Bytes {
        let mut plain = Vec::new();
        for (i, (delta, key, value)) in self.records.iter().enumerate() {
            let mut body = vec![0u8];
            varint(&mut body, *delta);
            varint(&mut body, i as i64);
            field(&mut body, key.as_deref());
            field(&mut body, value.as_deref());
            varint(&mut body, 0);
            varint(&mut plain, body.len() as i64);
            plain.extend(body);
        }
        let payload = records::compress(self.header.codec(), &plain).unwrap();
        self.header.seal(&payload);
        Bytes::from([&self.header.encode()[..], &payload].concat())
    }
}

fn field(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint(out, -1),
        Some(bytes) => {
            varint(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
