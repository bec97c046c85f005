//! DescribeProducers: who writes to a partition, and whose transaction is open there.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId};

use super::code;
use crate::node::Node;

pub(super) fn answer(node: &Node, request: DescribeProducersRequest) -> DescribeProducersResponse {
    let topic = |asked: TopicRequest| {
        let partition = |index: i32| {
            let states = states(node, &asked.name, index);
            PartitionResponse::default()
                .with_partition_index(index)
                .with_error_code(code(&states))
                .with_active_producers(states.unwrap_or_default())
        };
        let partitions = asked.partition_indexes.iter().copied().map(partition).collect();
        TopicResponse::default()
            .with_name(asked.name)
            .with_partitions(partitions)
    };
    DescribeProducersResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn states(node: &Node, topic: &str, index: i32) -> Result<Vec<ProducerState>, ResponseError> {
    let topic = node
        .topics
        .get(topic)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = topic
        .partition(index)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let log = partition.log()?;
    let state = |(id, producer): (i64, &crate::log::Producer)| {
        ProducerState::default()
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(producer.epoch.into())
            .with_last_sequence(producer.last_sequence())
            .with_last_timestamp(producer.last_timestamp)
            .with_coordinator_epoch(0)
            .with_current_txn_start_offset(log.open_transaction(id).unwrap_or(-1))
    };
    Ok(log.producers().iter().map(state).collect())
}
