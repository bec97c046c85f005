//! ListOffsets and OffsetForLeaderEpoch: where a log begins, ends, and which record a time points to.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use crate::log::{At, Isolation, LEADER_EPOCH};
use crate::node::Node;
use crate::topics::partition::storage_error;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const LARGEST_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
/// The last offset in remote storage: there is none.
const LATEST_TIERED: i64 = -5;

/// No such record.
const NOWHERE: At = At {
    offset: -1,
    timestamp: -1,
};

pub(super) fn answer(node: &Node, request: ListOffsetsRequest, version: i16) -> ListOffsetsResponse {
    let isolation = if request.isolation_level == 1 {
        Isolation::Committed
    } else {
        Isolation::Uncommitted
    };
    let topic = |asked: ListOffsetsTopic| {
        let partition = |wanted: ListOffsetsPartition| {
            let response =
                ListOffsetsPartitionResponse::default().with_partition_index(wanted.partition_index);
            match find(node, &asked.name, &wanted, isolation) {
                Ok(at) => {
                    // Epochs came with version 4; one without an offset would be believed by some clients.
                    let epoch = if at.offset >= 0 && version >= 4 {
                        LEADER_EPOCH
                    } else {
                        -1
                    };
                    response
                        .with_offset(at.offset)
                        .with_timestamp(at.timestamp)
                        .with_leader_epoch(epoch)
                }
                Err(error) => response
                    .with_error_code(error.code())
                    .with_offset(-1)
                    .with_timestamp(-1),
            }
        };
        let partitions = asked.partitions.into_iter().map(partition).collect();
        ListOffsetsTopicResponse::default()
            .with_name(asked.name)
            .with_partitions(partitions)
    };
    ListOffsetsResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn find(
    node: &Node,
    topic: &str,
    wanted: &ListOffsetsPartition,
    isolation: Isolation,
) -> Result<At, ResponseError> {
    let topic = node
        .topics
        .get(topic)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = topic
        .partition(wanted.partition_index)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let log = partition.log()?;
    let end = match isolation {
        Isolation::Uncommitted => log.next_offset(),
        Isolation::Committed => log.stable_offset(),
    };
    let plain = |offset| At {
        offset,
        timestamp: -1,
    };
    let found = match wanted.timestamp {
        LATEST => Ok(plain(end)),
        EARLIEST | EARLIEST_LOCAL => Ok(plain(log.start())),
        LATEST_TIERED => Ok(NOWHERE),
        LARGEST_TIMESTAMP => log.latest_stamped().map(|at| at.unwrap_or(NOWHERE)),
        time if time >= 0 => log.first_at(time, end).map(|at| at.unwrap_or(NOWHERE)),
        _ => return Err(ResponseError::InvalidRequest),
    };
    found.map_err(|e| storage_error(&e))
}

/// There was never another leader: its epoch ends where the log does.
pub(super) fn for_leader_epoch(
    node: &Node,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topic = |asked: OffsetForLeaderTopic| {
        let partition = |wanted: OffsetForLeaderPartition| {
            let response = EpochEndOffset::default().with_partition(wanted.partition);
            match epoch_end(node, &asked.topic, &wanted) {
                Ok((epoch, end)) => response.with_leader_epoch(epoch).with_end_offset(end),
                Err(error) => response.with_error_code(error.code()),
            }
        };
        let partitions = asked.partitions.into_iter().map(partition).collect();
        OffsetForLeaderTopicResult::default()
            .with_topic(asked.topic)
            .with_partitions(partitions)
    };
    OffsetForLeaderEpochResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn epoch_end(
    node: &Node,
    topic: &str,
    wanted: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ResponseError> {
    let topic = node
        .topics
        .get(topic)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = topic
        .partition(wanted.partition)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    match (wanted.current_leader_epoch, wanted.leader_epoch) {
        (current, _) if current > LEADER_EPOCH => Err(ResponseError::UnknownLeaderEpoch),
        (_, LEADER_EPOCH) => Ok((LEADER_EPOCH, partition.log()?.next_offset())),
        _ => Ok((-1, -1)),
    }
}
