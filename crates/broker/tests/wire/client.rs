//! A client that sends exactly what it is told to, and batches to send.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, CreateTopicsRequest, FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use redrive_broker::{Broker, BrokerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Long enough for any answer; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    next_id: i32,
}

pub(crate) async fn broker() -> Broker {
    Broker::start(BrokerConfig::default()).await.unwrap()
}

pub(crate) fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

impl Client {
    pub(crate) async fn connect(broker: &Broker) -> Client {
        Client {
            stream: TcpStream::connect(broker.address()).await.unwrap(),
            next_id: 1,
        }
    }

    /// Sends a request and gives its correlation id.
    pub(crate) async fn send<Q: Request>(&mut self, request: &Q, version: i16) -> i32 {
        let id = self.next_id;
        self.next_id += 1;
        self.raw(&frame(request, version, id)).await;
        id
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame, or nothing if the broker closed the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        let read = async {
            let length = self.stream.read_u32().await.ok()?;
            let mut body = vec![0; length as usize];
            self.stream.read_exact(&mut body).await.ok()?;
            Some(Bytes::from(body))
        };
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("the broker neither answers nor closes")
    }

    pub(crate) async fn receive<Q: Request>(&mut self, version: i16) -> Option<(i32, Q::Response)> {
        let mut frame = self.frame().await?;
        let header = ResponseHeader::decode(&mut frame, Q::Response::header_version(version)).unwrap();
        let response = Q::Response::decode(&mut frame, version).unwrap();
        assert!(!frame.has_remaining(), "bytes are left over");
        Some((header.correlation_id, response))
    }

    pub(crate) async fn call<Q: Request>(&mut self, request: &Q, version: i16) -> Q::Response {
        let id = self.send(request, version).await;
        let (answered, response) = self
            .receive::<Q>(version)
            .await
            .expect("the connection was closed");
        assert_eq!(answered, id);
        response
    }

    pub(crate) async fn create(&mut self, topic: &str) {
        let topic = CreatableTopic::default()
            .with_name(name(topic))
            .with_num_partitions(1)
            .with_replication_factor(1);
        let response = self
            .call(
                &CreateTopicsRequest::default()
                    .with_topics(vec![topic])
                    .with_timeout_ms(1_000),
                7,
            )
            .await;
        assert_eq!(response.topics[0].error_code, 0);
    }

    pub(crate) async fn produce(&mut self, topic: &str, batch: Bytes) -> ProduceResponse {
        self.call(&produce(topic, batch, -1), 9).await
    }

    pub(crate) async fn fetch(&mut self, topic: &str, offset: i64, max_wait_ms: i32) -> FetchResponse {
        self.call(&fetch(topic, offset, max_wait_ms), 11).await
    }
}

pub(crate) fn frame<Q: Request>(request: &Q, version: i16, id: i32) -> Bytes {
    let mut body = BytesMut::new();
    RequestHeader::default()
        .with_request_api_key(Q::KEY)
        .with_request_api_version(version)
        .with_correlation_id(id)
        .with_client_id(Some(StrBytes::from_static_str("raw")))
        .encode(
            &mut body,
            ApiKey::try_from(Q::KEY).unwrap().request_header_version(version),
        )
        .unwrap();
    request.encode(&mut body, version).unwrap();
    let mut out = BytesMut::new();
    out.put_u32(body.len() as u32);
    out.put(body);
    out.freeze()
}

pub(crate) fn produce(topic: &str, batch: Bytes, acks: i16) -> ProduceRequest {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(name(topic))
        .with_partition_data(vec![partition]);
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(1_000)
        .with_topic_data(vec![topic])
}

pub(crate) fn fetch(topic: &str, offset: i64, max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default()
        .with_topic(name(topic))
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic])
}

/// A batch of one record.
pub(crate) fn batch(value: &'static str) -> Bytes {
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: -1,
        timestamp: 1_000,
        key: None,
        value: Some(Bytes::from_static(value.as_bytes())),
        headers: Default::default(),
    };
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    RecordBatchEncoder::encode(&mut out, [&record], &options).unwrap();
    out.freeze()
}
