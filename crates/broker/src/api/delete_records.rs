//! DeleteRecords: a log's start moves up to an offset, or to its end. What lies before is gone for good.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::code;
use crate::node::Node;
use crate::topics::partition::storage_error;

/// Stands for the high watermark.
const END: i64 = -1;

pub(super) fn answer(node: &Node, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let topic = |asked: DeleteRecordsTopic| {
        let partition = |wanted: DeleteRecordsPartition| {
            let outcome = delete(node, &asked.name, &wanted);
            DeleteRecordsPartitionResult::default()
                .with_partition_index(wanted.partition_index)
                .with_error_code(code(&outcome))
                .with_low_watermark(outcome.unwrap_or(-1))
        };
        let partitions = asked.partitions.into_iter().map(partition).collect();
        DeleteRecordsTopicResult::default()
            .with_name(asked.name)
            .with_partitions(partitions)
    };
    DeleteRecordsResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn delete(node: &Node, topic: &str, wanted: &DeleteRecordsPartition) -> Result<i64, ResponseError> {
    let topic = node
        .topics
        .get(topic)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let partition = topic
        .partition(wanted.partition_index)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    if !topic.config().settings().cleanup.deletes() && topic.config().settings().cleanup.compacts() {
        return Err(ResponseError::PolicyViolation);
    }
    // A compaction in progress reads the segments that may go now.
    let _alone = crate::sync::lock(&partition.tidying);
    let mut log = partition.log()?;
    let offset = match wanted.offset {
        END => log.next_offset(),
        offset if offset < 0 => return Err(ResponseError::OffsetOutOfRange),
        offset => offset,
    };
    match log.delete_before(offset) {
        Ok(Some(start)) => Ok(start),
        Ok(None) => Err(ResponseError::OffsetOutOfRange),
        Err(e) => Err(storage_error(&e)),
    }
}
