//! OffsetFetch: one group in the old form, several in the new, and all topics where none is named.

use std::collections::BTreeMap;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::Groups;
use super::group::Group;
use super::offsets::Place;

/// What is asked: topics with partitions, or all that the group has.
type Asked = Option<Vec<(TopicName, Vec<i32>)>>;

struct Found {
    partition: i32,
    offset: i64,
    leader_epoch: i32,
    metadata: StrBytes,
    error: i16,
}

impl Groups {
    /// A group that does not exist has no offsets; that is not an error.
    pub(crate) fn offset_fetch(&self, req: &OffsetFetchRequest, version: i16) -> OffsetFetchResponse {
        if version >= 8 {
            let groups = req
                .groups
                .iter()
                .map(|group| self.fetch_group(group, req.require_stable));
            return OffsetFetchResponse::default().with_groups(groups.collect());
        }
        let topics = req.topics.as_ref();
        let asked = topics.map(|topics| {
            topics
                .iter()
                .map(|topic| (topic.name.clone(), topic.partition_indexes.clone()))
                .collect()
        });
        let found = self.find(&req.group_id, asked, req.require_stable).into_iter();
        let topics = found.map(|(name, partitions)| {
            OffsetFetchResponseTopic::default()
                .with_name(name)
                .with_partitions(partitions.into_iter().map(old_form).collect())
        });
        OffsetFetchResponse::default().with_topics(topics.collect())
    }

    fn fetch_group(&self, req: &OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup {
        let topics = req.topics.as_ref();
        let asked = topics.map(|topics| {
            topics
                .iter()
                .map(|topic| (topic.name.clone(), topic.partition_indexes.clone()))
                .collect()
        });
        let found = self.find(&req.group_id, asked, stable).into_iter();
        let topics = found.map(|(name, partitions)| {
            OffsetFetchResponseTopics::default()
                .with_name(name)
                .with_partitions(partitions.into_iter().map(new_form).collect())
        });
        OffsetFetchResponseGroup::default()
            .with_group_id(req.group_id.clone())
            .with_topics(topics.collect())
    }

    fn find(&self, group_id: &str, asked: Asked, stable: bool) -> Vec<(TopicName, Vec<Found>)> {
        let desk = self.desk();
        let group = desk.book.groups.get(group_id);
        let asked = asked.unwrap_or_else(|| group.map(everything).unwrap_or_default());
        let found = asked.into_iter().map(|(topic, partitions)| {
            let found = partitions
                .into_iter()
                .map(|partition| look_up(group, &topic, partition, stable));
            let found = found.collect();
            (topic, found)
        });
        found.collect()
    }
}

fn everything(group: &Group) -> Vec<(TopicName, Vec<i32>)> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in group.offsets.committed.keys() {
        topics.entry(topic).or_default().push(*partition);
    }
    let named = |topic: &str| TopicName(StrBytes::from_string(topic.to_owned()));
    topics
        .into_iter()
        .map(|(topic, partitions)| (named(topic), partitions))
        .collect()
}

fn look_up(group: Option<&Group>, topic: &str, partition: i32, stable: bool) -> Found {
    let nothing = |error| Found {
        partition,
        offset: -1,
        leader_epoch: -1,
        metadata: StrBytes::new(),
        error,
    };
    let Some(group) = group else { return nothing(0) };
    let place: Place = (topic.to_owned(), partition);
    if stable && group.offsets.is_unstable(&place) {
        return nothing(ResponseError::UnstableOffsetCommit.code());
    }
    match group.offsets.committed.get(&place) {
        None => nothing(0),
        Some(committed) => Found {
            partition,
            offset: committed.offset,
            leader_epoch: committed.leader_epoch,
            metadata: StrBytes::from_string(committed.metadata.clone()),
            error: 0,
        },
    }
}

fn old_form(found: Found) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition::default()
        .with_partition_index(found.partition)
        .with_committed_offset(found.offset)
        .with_committed_leader_epoch(found.leader_epoch)
        .with_metadata(Some(found.metadata))
        .with_error_code(found.error)
}

fn new_form(found: Found) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions::default()
        .with_partition_index(found.partition)
        .with_committed_offset(found.offset)
        .with_committed_leader_epoch(found.leader_epoch)
        .with_metadata(Some(found.metadata))
        .with_error_code(found.error)
}
