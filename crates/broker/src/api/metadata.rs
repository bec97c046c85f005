//! Metadata and DescribeTopicPartitions: brokers, topics and their partitions, all led by this node.
//! Asking for a topic may make it, where the settings and the client allow that.

use std::net::SocketAddr;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse,
};
use uuid::Uuid;

use super::{node_id, text, topic_name};
use crate::log::LEADER_EPOCH;
use crate::node::Node;
use crate::topics::config::Config;
use crate::topics::{CreateError, Topic, name};

pub(super) fn answer(
    node: &Node,
    local: SocketAddr,
    request: &MetadataRequest,
    version: i16,
) -> MetadataResponse {
    let may_create = node.config.auto_create_topics && (version < 4 || request.allow_auto_topic_creation);
    // The first version knew no null: there, no names meant all topics.
    let topics = match &request.topics {
        Some(wanted) if !(version == 0 && wanted.is_empty()) => wanted
            .iter()
            .map(|wanted| one(node, wanted, may_create, version))
            .collect(),
        Some(_) | None => node.topics.all().iter().map(|topic| describe(topic)).collect(),
    };
    let broker = MetadataResponseBroker::default()
        .with_node_id(node_id())
        .with_host(text(local.ip().to_string()))
        .with_port(local.port().into());
    MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_cluster_id(Some(text(node.cluster_id.clone())))
        .with_controller_id(node_id())
        .with_topics(topics)
}

fn one(node: &Node, wanted: &MetadataRequestTopic, may_create: bool, version: i16) -> MetadataResponseTopic {
    let Some(name) = wanted.name.as_ref().map(|name| name.to_string()) else {
        return match node.topics.by_id(wanted.topic_id) {
            Some(topic) => describe(&topic),
            None => {
                // Before version 12 a name could not be null.
                let name = (version < 12).then(|| topic_name(""));
                MetadataResponseTopic::default()
                    .with_error_code(ResponseError::UnknownTopicId.code())
                    .with_topic_id(wanted.topic_id)
                    .with_name(name)
            }
        };
    };
    match find_or_create(node, &name, may_create) {
        Ok(topic) => describe(&topic),
        Err(error) => MetadataResponseTopic::default()
            .with_error_code(error.code())
            .with_name(Some(topic_name(&name))),
    }
}

fn find_or_create(node: &Node, name: &str, may_create: bool) -> Result<Arc<Topic>, ResponseError> {
    if let Some(topic) = node.topics.get(name) {
        return Ok(topic);
    }
    if name::fault(name).is_some() {
        return Err(ResponseError::InvalidTopicException);
    }
    if !may_create {
        return Err(ResponseError::UnknownTopicOrPartition);
    }
    match node
        .topics
        .create(name, node.config.default_partitions, Config::default())
    {
        Ok(topic) => Ok(topic),
        Err(CreateError::Exists) => node
            .topics
            .get(name)
            .ok_or(ResponseError::UnknownTopicOrPartition),
        Err(CreateError::Collides(_)) => Err(ResponseError::InvalidTopicException),
        Err(CreateError::Io(_)) => Err(ResponseError::KafkaStorageError),
    }
}

fn describe(topic: &Topic) -> MetadataResponseTopic {
    let partition = |index: i32| {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(node_id())
            .with_leader_epoch(LEADER_EPOCH)
            .with_replica_nodes(vec![node_id()])
            .with_isr_nodes(vec![node_id()])
    };
    MetadataResponseTopic::default()
        .with_name(Some(topic_name(&topic.name)))
        .with_topic_id(topic.id)
        .with_partitions((0..topic.partitions().len() as i32).map(partition).collect())
}

/// DescribeTopicPartitions: the same by pages, for topics of many partitions.
pub(super) fn describe_partitions(
    node: &Node,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let mut names: Vec<String> = match request.topics.is_empty() {
        true => node.topics.all().iter().map(|topic| topic.name.clone()).collect(),
        false => request
            .topics
            .iter()
            .map(|topic| topic.name.to_string())
            .collect(),
    };
    names.sort_unstable();
    names.dedup();
    let (start_topic, mut start) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.to_string(), cursor.partition_index.max(0)),
        None => (String::new(), 0),
    };
    let mut room = request.response_partition_limit.clamp(1, 2_000) as usize;
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names.into_iter().filter(|name| *name >= start_topic) {
        let from = if name == start_topic {
            std::mem::take(&mut start)
        } else {
            0
        };
        let Some(topic) = node.topics.get(&name) else {
            response.topics.push(unknown(&name));
            continue;
        };
        let count = topic.partitions().len() as i32;
        if room == 0 {
            let cursor = Cursor::default()
                .with_topic_name(topic_name(&name))
                .with_partition_index(from);
            return response.with_next_cursor(Some(cursor));
        }
        let to = count.min(from.saturating_add(room as i32));
        room -= (to - from).max(0) as usize;
        response.topics.push(page(&topic, from, to));
        if to < count {
            let cursor = Cursor::default()
                .with_topic_name(topic_name(&name))
                .with_partition_index(to);
            return response.with_next_cursor(Some(cursor));
        }
    }
    response
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error = match name::fault(name) {
        Some(_) => ResponseError::InvalidTopicException,
        None => ResponseError::UnknownTopicOrPartition,
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(error.code())
        .with_name(Some(topic_name(name)))
        .with_topic_id(Uuid::nil())
}

fn page(topic: &Topic, from: i32, to: i32) -> DescribeTopicPartitionsResponseTopic {
    let partition = |index: i32| {
        DescribeTopicPartitionsResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(node_id())
            .with_leader_epoch(LEADER_EPOCH)
            .with_replica_nodes(vec![node_id()])
            .with_isr_nodes(vec![node_id()])
            .with_eligible_leader_replicas(Some(Vec::new()))
            .with_last_known_elr(Some(Vec::new()))
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(topic_name(&topic.name)))
        .with_topic_id(topic.id)
        .with_partitions((from..to).map(partition).collect())
}
