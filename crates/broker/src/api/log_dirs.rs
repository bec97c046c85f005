//! DescribeLogDirs: how many bytes each partition takes.

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use super::{text, topic_name};
use crate::config::Data;
use crate::node::Node;
use crate::topics::Topic;

pub(super) fn answer(node: &Node, request: DescribeLogDirsRequest, _version: i16) -> DescribeLogDirsResponse {
    let topics = match request.topics {
        None => node
            .topics
            .all()
            .iter()
            .map(|topic| describe(topic, |_| true))
            .collect(),
        Some(wanted) => wanted
            .iter()
            .filter_map(|asked| Some((node.topics.get(&asked.topic)?, &asked.partitions)))
            .map(|(topic, indexes)| describe(&topic, |index| indexes.contains(&index)))
            .collect(),
    };
    let dir = match &node.config.data {
        Data::Memory => "memory".to_owned(),
        Data::Dir(path) => path.display().to_string(),
    };
    let result = DescribeLogDirsResult::default()
        .with_log_dir(text(dir))
        .with_topics(topics);
    DescribeLogDirsResponse::default().with_results(vec![result])
}

fn describe(topic: &Topic, wanted: impl Fn(i32) -> bool) -> DescribeLogDirsTopic {
    let partitions = topic.partitions();
    let sizes = partitions
        .iter()
        .filter(|partition| wanted(partition.index))
        .filter_map(|partition| {
            let size = partition.log().ok()?.size().ok()?;
            Some(
                DescribeLogDirsPartition::default()
                    .with_partition_index(partition.index)
                    .with_partition_size(size as i64),
            )
        });
    DescribeLogDirsTopic::default()
        .with_name(topic_name(&topic.name))
        .with_partitions(sizes.collect())
}
