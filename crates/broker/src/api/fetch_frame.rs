//! The frame of a Fetch response, written by hand: the codec would copy every record into its buffer,
//! this one lays the bytes that were read from the log between the pieces of the frame.

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use crate::log::Aborted;
use crate::server::reply::{self, Piece, Reply};

/// The first version with compact lengths and tags.
const FLEXIBLE: i16 = 12;
/// The first version that names topics by id.
pub(super) const BY_ID: i16 = 13;

/// A Fetch response.
pub(super) struct Fetched {
    pub(super) error_code: i16,
    pub(super) topics: Vec<FetchedTopic>,
}

pub(super) struct FetchedTopic {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) partitions: Vec<FetchedPartition>,
}

pub(super) struct FetchedPartition {
    pub(super) index: i32,
    pub(super) error_code: i16,
    pub(super) high_watermark: i64,
    pub(super) stable_offset: i64,
    pub(super) log_start: i64,
    /// None where the reader does not ask for committed records alone.
    pub(super) aborted: Option<Vec<Aborted>>,
    pub(super) records: Piece,
}

/// Lays out the frame. Record data larger than this is not copied.
const REFERENCE_FROM: usize = 1024;

impl Fetched {
    pub(super) fn frame(self, correlation_id: i32, version: i16) -> Reply {
        let flexible = version >= FLEXIBLE;
        let mut out = Out {
            head: None,
            pieces: Vec::new(),
            buffer: reply::begin(correlation_id, i16::from(flexible)),
            flexible,
        };
        out.buffer.put_i32(0);
        if version >= 7 {
            out.buffer.put_i16(self.error_code);
            out.buffer.put_i32(0);
        }
        out.length(self.topics.len());
        for topic in self.topics {
            out.topic(topic, version);
        }
        out.tags();
        out.finish()
    }
}

struct Out {
    /// The first piece, once record data has been laid behind it.
    head: Option<BytesMut>,
    pieces: Vec<Piece>,
    buffer: BytesMut,
    flexible: bool,
}

impl Out {
    fn topic(&mut self, topic: FetchedTopic, version: i16) {
        if version >= BY_ID {
            self.buffer.put_slice(topic.id.as_bytes());
        } else {
            self.name(&topic.name);
        }
        self.length(topic.partitions.len());
        for partition in topic.partitions {
            self.partition(partition, version);
        }
        self.tags();
    }

    fn partition(&mut self, partition: FetchedPartition, version: i16) {
        self.buffer.put_i32(partition.index);
        self.buffer.put_i16(partition.error_code);
        self.buffer.put_i64(partition.high_watermark);
        self.buffer.put_i64(partition.stable_offset);
        if version >= 5 {
            self.buffer.put_i64(partition.log_start);
        }
        self.aborted(partition.aborted.as_deref());
        if version >= 11 {
            self.buffer.put_i32(-1);
        }
        self.records(partition.records);
        self.tags();
    }

    fn aborted(&mut self, aborted: Option<&[Aborted]>) {
        let Some(aborted) = aborted else {
            return if self.flexible {
                self.buffer.put_u8(0);
            } else {
                self.buffer.put_i32(-1);
            };
        };
        self.length(aborted.len());
        for one in aborted {
            self.buffer.put_i64(one.producer_id);
            self.buffer.put_i64(one.first_offset);
            self.tags();
        }
    }

    fn records(&mut self, records: Piece) {
        self.length(records.len());
        match &records {
            Piece::Bytes(bytes) if bytes.len() < REFERENCE_FROM => return self.buffer.put_slice(bytes),
            Piece::Bytes(_) | Piece::Log(_) => {}
        }
        let so_far = std::mem::take(&mut self.buffer);
        match self.head {
            None => self.head = Some(so_far),
            Some(_) => self.pieces.push(Piece::Bytes(so_far.freeze())),
        }
        self.pieces.push(records);
    }

    fn name(&mut self, name: &str) {
        if self.flexible {
            self.varint(name.len() + 1);
        } else {
            self.buffer.put_i16(name.len() as i16);
        }
        self.buffer.put_slice(name.as_bytes());
    }

    /// The length of an array or of bytes.
    fn length(&mut self, n: usize) {
        if self.flexible {
            self.varint(n + 1);
        } else {
            self.buffer.put_i32(n as i32);
        }
    }

    fn varint(&mut self, mut n: usize) {
        while n >= 0x80 {
            self.buffer.put_u8(n as u8 | 0x80);
            n >>= 7;
        }
        self.buffer.put_u8(n as u8);
    }

    fn tags(&mut self) {
        if self.flexible {
            self.buffer.put_u8(0);
        }
    }

    fn finish(mut self) -> Reply {
        match self.head {
            None => Reply::finish(self.buffer, Vec::new()),
            Some(head) => {
                self.pieces.push(Piece::Bytes(self.buffer.freeze()));
                Reply::finish(head, self.pieces)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::fetch_response::{
        AbortedTransaction, FetchableTopicResponse, PartitionData,
    };
    use kafka_protocol::messages::{FetchResponse, ProducerId, TopicName};
    use kafka_protocol::protocol::StrBytes;

    fn partition(index: i32, size: usize, aborted: Option<Vec<Aborted>>) -> FetchedPartition {
        let records = Piece::Bytes(Bytes::from(vec![index as u8; size]));
        FetchedPartition {
            index,
            error_code: 3,
            high_watermark: 9,
            stable_offset: 8,
            log_start: 1,
            aborted,
            records,
        }
    }

    fn ours() -> Fetched {
        let aborted = vec![Aborted { producer_id: 4, first_offset: 5, last_offset: 6, stable_offset: 7 }];
        let partitions = vec![
            partition(0, 0, None),
            partition(1, 5_000, Some(aborted)),
            partition(2, 300, Some(vec![])),
            partition(3, 2_000, None),
        ];
        Fetched {
            error_code: 0,
            topics: vec![FetchedTopic { name: "a-topic".into(), id: Uuid::from_u128(77), partitions }],
        }
    }

    fn theirs(version: i16) -> FetchResponse {
        let topic = ours().topics.remove(0);
        let partition = |p: FetchedPartition| {
            let aborted = p.aborted.map(|all| {
                let one = |a: Aborted| {
                    AbortedTransaction::default()
                        .with_producer_id(ProducerId(a.producer_id))
                        .with_first_offset(a.first_offset)
                };
                all.into_iter().map(one).collect()
            });
            let Piece::Bytes(records) = p.records else { panic!("made of bytes") };
            PartitionData::default()
                .with_partition_index(p.index)
                .with_error_code(p.error_code)
                .with_high_watermark(p.high_watermark)
                .with_last_stable_offset(p.stable_offset)
                .with_log_start_offset(p.log_start)
                .with_aborted_transactions(aborted)
                .with_records(Some(records))
        };
        let partitions = topic.partitions.into_iter().map(partition).collect();
        let mut response = FetchableTopicResponse::default().with_partitions(partitions);
        if version >= BY_ID {
            response.topic_id = topic.id;
        } else {
            response.topic = TopicName(StrBytes::from_string(topic.name));
        }
        FetchResponse::default().with_responses(vec![response])
    }

    #[test]
    fn the_frame_is_the_codecs_in_every_version() {
        for version in 4..=17 {
            let expected = Reply::encode(42, &theirs(version), version).unwrap().concat();
            let got = ours().frame(42, version);
            assert_eq!(got.concat(), expected, "version {version}");
        }
    }
}
