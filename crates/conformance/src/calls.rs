//! The requests that several tests make by hand, for one partition each.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::init_producer_id_response::InitProducerIdResponse;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    FetchRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest,
};
use uuid::Uuid;

use crate::by_hand::is_loading;
use crate::clock::eventually;
use crate::raw::{Connection, error, topic_name, transactional_id};

/// Which records a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// All.
    Uncommitted = 0,
    /// Those whose transaction is decided.
    Committed = 1,
}

/// How long a fetch waits for how much, and how much it takes.
#[derive(Debug, Clone, Copy)]
pub struct Appetite {
    /// Milliseconds that the broker may wait.
    pub max_wait: i32,
    /// Bytes that end the wait.
    pub min_bytes: i32,
    /// Bytes wanted from the partition.
    pub max_bytes: i32,
}

impl Default for Appetite {
    fn default() -> Appetite {
        Appetite { max_wait: 100, min_bytes: 1, max_bytes: 1 << 20 }
    }
}

/// The topics of the broker at an address, with their ids and numbers of partitions, by name.
///
/// # Panics
/// If it cannot be reached or does not answer.
#[must_use]
pub fn topic_ids(address: &str) -> BTreeMap<String, (Uuid, usize)> {
    let answer = Connection::to(address).ask(&MetadataRequest::default().with_topics(None), 12);
    let named = answer.topics.into_iter().filter_map(|topic| {
        let known = (topic.topic_id, topic.partitions.len());
        topic.name.map(|name| (name.to_string(), known))
    });
    named.collect()
}

impl Connection {
    /// Produces a batch to partition 0.
    pub fn produce(&mut self, topic: &str, acks: i16, batch: Bytes) -> PartitionProduceResponse {
        self.produce_in(None, topic, acks, batch)
    }

    /// Produces a batch to partition 0 under a transactional id.
    pub fn produce_in(
        &mut self,
        transaction: Option<&str>,
        topic: &str,
        acks: i16,
        batch: Bytes,
    ) -> PartitionProduceResponse {
        let partition = PartitionProduceData::default().with_index(0).with_records(Some(batch));
        let topic =
            TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![partition]);
        let request = ProduceRequest::default()
            .with_transactional_id(transaction.map(transactional_id))
            .with_acks(acks)
            .with_timeout_ms(10_000)
            .with_topic_data(vec![topic]);
        self.ask(&request, 9).responses.remove(0).partition_responses.remove(0)
    }

    /// Fetches from an offset of a partition.
    pub fn fetch(
        &mut self,
        (topic, partition): (&str, i32),
        offset: i64,
        isolation: Isolation,
        appetite: Appetite,
    ) -> PartitionData {
        let partition = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(appetite.max_bytes);
        let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_max_wait_ms(appetite.max_wait)
            .with_min_bytes(appetite.min_bytes)
            .with_isolation_level(isolation as i8)
            .with_topics(vec![topic]);
        let mut answer = self.ask(&request, 12);
        assert_eq!(answer.error_code, 0, "the whole fetch is refused");
        answer.responses.remove(0).partitions.remove(0)
    }

    /// The offset for a timestamp of partition 0, or for -1 (the end), -2 (the start), -3 (the latest time).
    pub fn list_offset(
        &mut self,
        topic: &str,
        timestamp: i64,
        isolation: Isolation,
    ) -> ListOffsetsPartitionResponse {
        let partition = ListOffsetsPartition::default().with_partition_index(0).with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id((-1).into())
            .with_isolation_level(isolation as i8)
            .with_topics(vec![topic]);
        self.ask(&request, 7).topics.remove(0).partitions.remove(0)
    }

    /// A producer's id and epoch, for a transactional id or none. Asked again until the coordinator is ready
    /// and has ended what was open.
    pub fn init_producer(&mut self, transaction: Option<&str>) -> InitProducerIdResponse {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(transaction.map(transactional_id))
            .with_transaction_timeout_ms(60_000);
        eventually("a producer id", || {
            let given = self.ask(&request, 4);
            let busy = error(given.error_code) == Some(ResponseError::ConcurrentTransactions);
            (!busy && !is_loading(given.error_code)).then_some(given)
        })
    }
}
