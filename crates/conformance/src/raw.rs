//! Requests by hand, for what librdkafka does not ask: a frame goes out, its answer comes back.

use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::{GroupId, RequestHeader, ResponseHeader, TopicName, TransactionalId};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use crate::clock::{PATIENCE, now_ms};

/// A connection to a broker.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    sent: i32,
}

impl Connection {
    pub(crate) fn to(address: &str) -> Connection {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a read timeout");
        stream.set_nodelay(true).expect("no delay");
        Connection { stream, sent: 0 }
    }

    /// Asks, in this version, and waits for the answer.
    ///
    /// # Panics
    /// If the broker closes the connection or answers what cannot be read.
    pub fn ask<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        let mut answer = self.receive().expect("an answer");
        let header =
            ResponseHeader::decode(&mut answer, R::Response::header_version(version)).expect("a header");
        assert_eq!(header.correlation_id, self.sent, "the answer to another request");
        let response = R::Response::decode(&mut answer, version).expect("an answer that can be read");
        assert!(answer.is_empty(), "{} bytes after the answer", answer.len());
        response
    }

    /// Asks without waiting for an answer.
    ///
    /// # Panics
    /// If the connection is closed.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) {
        self.sent += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.sent)
            .with_client_id(Some(text("conformance")));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, R::header_version(version)).expect("a header");
        request.encode(&mut frame, version).expect("a request of that version");
        self.send_frame(&frame);
    }

    /// Sends any bytes as a frame.
    ///
    /// # Panics
    /// If the connection is closed.
    pub fn send_frame(&mut self, frame: &[u8]) {
        let size = i32::try_from(frame.len()).expect("a frame below 2 GiB");
        self.send_bytes(&[&size.to_be_bytes(), frame].concat());
    }

    /// Sends any bytes, not even a frame.
    ///
    /// # Panics
    /// If the connection is closed.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("an open connection");
    }

    /// The next frame.
    ///
    /// # Errors
    /// If the broker closes the connection first.
    pub fn receive(&mut self) -> std::io::Result<Bytes> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(frame.into())
    }
}

/// A batch of these values, from no producer in particular; change what the test is about.
#[must_use]
pub fn records(values: &[&str], change: impl Fn(usize, &mut Record)) -> Bytes {
    let timestamp = now_ms();
    let record = |(place, value): (usize, &&str)| {
        let mut record = Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            timestamp_type: TimestampType::Creation,
            offset: place as i64,
            // Counted on even where there is none, or the codec makes a batch of each record.
            sequence: NO_SEQUENCE + i32::try_from(place).expect("a small batch"),
            timestamp,
            key: None,
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
            headers: IndexMap::new(),
        };
        change(place, &mut record);
        record
    };
    let records: Vec<_> = values.iter().enumerate().map(record).collect();
    let mut batch = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    RecordBatchEncoder::encode(&mut batch, &records, &options).expect("a batch");
    batch.freeze()
}

/// The error of an answer, if it is one.
#[must_use]
pub fn error(code: i16) -> Option<ResponseError> {
    ResponseError::try_from_code(code)
}

/// A text as the protocol has it.
#[must_use]
pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A topic's name as the protocol has it.
#[must_use]
pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// A group's name as the protocol has it.
#[must_use]
pub fn group_id(name: &str) -> GroupId {
    GroupId(text(name))
}

/// A transactional id as the protocol has it.
#[must_use]
pub fn transactional_id(name: &str) -> TransactionalId {
    TransactionalId(text(name))
}
