//! Refusals on order: the response of an API with one error in every place where it has room for one.
//! Only for the faults that tests order; the APIs' own refusals are with the APIs.

use bytes::Bytes;
use kafka_protocol::messages::DeleteTopicsResponse;
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ApiKey,
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteGroupsRequest, DeleteGroupsResponse, DeleteRecordsRequest, DeleteRecordsResponse,
    DeleteTopicsRequest, DescribeClusterRequest, EndTxnRequest, FetchRequest, FindCoordinatorRequest,
    FindCoordinatorResponse, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetFetchRequest, OffsetFetchResponse,
    ProduceRequest, ProduceResponse, SyncGroupRequest, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
    add_partitions_to_txn_response as add_partitions, create_partitions_response, create_topics_response,
    delete_groups_response, delete_records_response, delete_topics_response, find_coordinator_response,
    list_offsets_response, metadata_response, offset_commit_response, offset_fetch_response,
    produce_response, txn_offset_commit_response,
};
use kafka_protocol::protocol::Request;

use super::fetch_frame::{Fetched, FetchedPartition, FetchedTopic};
use super::{Answer, Call};
use crate::server::guard::Malformed;
use crate::server::reply::Piece;

/// A response whose one error stands at the top.
macro_rules! at_the_top {
    ($call:ident, $code:ident, $request:ty) => {
        $call.plain(|_: $request, _| <$request as Request>::Response::default().with_error_code($code))
    };
}

pub(super) fn answer(api: ApiKey, call: &Call, code: i16) -> Result<Answer, Malformed> {
    match api {
        ApiKey::JoinGroup => at_the_top!(call, code, JoinGroupRequest),
        ApiKey::SyncGroup => at_the_top!(call, code, SyncGroupRequest),
        ApiKey::Heartbeat => at_the_top!(call, code, HeartbeatRequest),
        ApiKey::LeaveGroup => at_the_top!(call, code, LeaveGroupRequest),
        ApiKey::ListGroups => at_the_top!(call, code, ListGroupsRequest),
        ApiKey::OffsetDelete => at_the_top!(call, code, OffsetDeleteRequest),
        ApiKey::InitProducerId => at_the_top!(call, code, InitProducerIdRequest),
        ApiKey::AddOffsetsToTxn => at_the_top!(call, code, AddOffsetsToTxnRequest),
        ApiKey::EndTxn => at_the_top!(call, code, EndTxnRequest),
        ApiKey::DescribeCluster => at_the_top!(call, code, DescribeClusterRequest),
        ApiKey::Fetch => fetch(call, code),
        ApiKey::Produce => call.plain(|req, _| produce(req, code)),
        ApiKey::Metadata => call.plain(|req, _| metadata(req, code)),
        ApiKey::ListOffsets => call.plain(|req, _| list_offsets(req, code)),
        ApiKey::FindCoordinator => call.plain(|req, version| find_coordinator(req, code, version)),
        ApiKey::OffsetCommit => call.plain(|req, _| offset_commit(req, code)),
        ApiKey::OffsetFetch => call.plain(|req, version| offset_fetch(req, code, version)),
        ApiKey::TxnOffsetCommit => call.plain(|req, _| txn_offset_commit(req, code)),
        ApiKey::AddPartitionsToTxn => call.plain(|req, _| add_partitions_to_txn(req, code)),
        ApiKey::CreateTopics => call.plain(|req, _| create_topics(req, code)),
        ApiKey::DeleteTopics => call.plain(|req, _| delete_topics(req, code)),
        ApiKey::CreatePartitions => call.plain(|req, _| create_partitions(req, code)),
        ApiKey::DeleteRecords => call.plain(|req, _| delete_records(req, code)),
        ApiKey::DeleteGroups => call.plain(|req, _| delete_groups(req, code)),
        other => Ok(Answer::Close(format!("{other:?} cannot be failed on order, drop it instead"))),
    }
}

fn fetch(call: &Call, error_code: i16) -> Result<Answer, Malformed> {
    let request: FetchRequest = call.decode()?;
    let partition = |index| FetchedPartition {
        index,
        error_code,
        high_watermark: -1,
        stable_offset: -1,
        log_start: -1,
        aborted: None,
        records: Piece::Bytes(Bytes::new()),
    };
    let topic = |asked: kafka_protocol::messages::fetch_request::FetchTopic| FetchedTopic {
        name: asked.topic.to_string(),
        id: asked.topic_id,
        partitions: asked.partitions.iter().map(|asked| partition(asked.partition)).collect(),
    };
    let fetched = Fetched { error_code: 0, topics: request.topics.into_iter().map(topic).collect() };
    Ok(Answer::Reply(fetched.frame(call.correlation_id, call.version)))
}

fn produce(request: ProduceRequest, code: i16) -> ProduceResponse {
    use produce_response::{PartitionProduceResponse, TopicProduceResponse};
    let partition = |index| {
        PartitionProduceResponse::default().with_index(index).with_error_code(code).with_base_offset(-1)
    };
    let topic = |asked: kafka_protocol::messages::produce_request::TopicProduceData| {
        let partitions = asked.partition_data.iter().map(|asked| partition(asked.index)).collect();
        TopicProduceResponse::default().with_name(asked.name).with_partition_responses(partitions)
    };
    ProduceResponse::default().with_responses(request.topic_data.into_iter().map(topic).collect())
}

fn metadata(request: MetadataRequest, code: i16) -> MetadataResponse {
    let topic = |asked: kafka_protocol::messages::metadata_request::MetadataRequestTopic| {
        let name = Some(asked.name.unwrap_or_default());
        metadata_response::MetadataResponseTopic::default().with_error_code(code).with_name(name)
    };
    MetadataResponse::default()
        .with_topics(request.topics.unwrap_or_default().into_iter().map(topic).collect())
}

fn list_offsets(request: ListOffsetsRequest, code: i16) -> ListOffsetsResponse {
    use list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
    let topic = |asked: kafka_protocol::messages::list_offsets_request::ListOffsetsTopic| {
        let partition =
            |index| ListOffsetsPartitionResponse::default().with_partition_index(index).with_error_code(code);
        let partitions = asked.partitions.iter().map(|asked| partition(asked.partition_index)).collect();
        ListOffsetsTopicResponse::default().with_name(asked.name).with_partitions(partitions)
    };
    ListOffsetsResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn find_coordinator(request: FindCoordinatorRequest, code: i16, version: i16) -> FindCoordinatorResponse {
    if version < 4 {
        return FindCoordinatorResponse::default().with_error_code(code);
    }
    let one = |key| find_coordinator_response::Coordinator::default().with_key(key).with_error_code(code);
    FindCoordinatorResponse::default()
        .with_coordinators(request.coordinator_keys.into_iter().map(one).collect())
}

fn offset_commit(request: OffsetCommitRequest, code: i16) -> OffsetCommitResponse {
    use offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
    let topic = |asked: kafka_protocol::messages::offset_commit_request::OffsetCommitRequestTopic| {
        let partition = |index| {
            OffsetCommitResponsePartition::default().with_partition_index(index).with_error_code(code)
        };
        let partitions = asked.partitions.iter().map(|asked| partition(asked.partition_index)).collect();
        OffsetCommitResponseTopic::default().with_name(asked.name).with_partitions(partitions)
    };
    OffsetCommitResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn offset_fetch(request: OffsetFetchRequest, code: i16, version: i16) -> OffsetFetchResponse {
    if version < 8 {
        return OffsetFetchResponse::default().with_error_code(code);
    }
    let group = |asked: kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup| {
        offset_fetch_response::OffsetFetchResponseGroup::default()
            .with_group_id(asked.group_id)
            .with_error_code(code)
    };
    OffsetFetchResponse::default().with_groups(request.groups.into_iter().map(group).collect())
}

fn txn_offset_commit(request: TxnOffsetCommitRequest, code: i16) -> TxnOffsetCommitResponse {
    use txn_offset_commit_response::{TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic};
    let topic = |asked: kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestTopic| {
        let partition = |index| {
            TxnOffsetCommitResponsePartition::default().with_partition_index(index).with_error_code(code)
        };
        let partitions = asked.partitions.iter().map(|asked| partition(asked.partition_index)).collect();
        TxnOffsetCommitResponseTopic::default().with_name(asked.name).with_partitions(partitions)
    };
    TxnOffsetCommitResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn add_partitions_to_txn(request: AddPartitionsToTxnRequest, code: i16) -> AddPartitionsToTxnResponse {
    use add_partitions::{AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult};
    let topic = |asked: kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic| {
        let partition = |index| {
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(index)
                .with_partition_error_code(code)
        };
        let partitions = asked.partitions.iter().copied().map(partition).collect();
        AddPartitionsToTxnTopicResult::default().with_name(asked.name).with_results_by_partition(partitions)
    };
    let topics = request.v3_and_below_topics.into_iter().map(topic).collect();
    AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics)
}

fn create_topics(request: CreateTopicsRequest, code: i16) -> CreateTopicsResponse {
    let one = |asked: kafka_protocol::messages::create_topics_request::CreatableTopic| {
        create_topics_response::CreatableTopicResult::default().with_name(asked.name).with_error_code(code)
    };
    CreateTopicsResponse::default().with_topics(request.topics.into_iter().map(one).collect())
}

fn delete_topics(request: DeleteTopicsRequest, code: i16) -> DeleteTopicsResponse {
    let named = request.topic_names.into_iter().map(|name| (Some(name), uuid::Uuid::nil()));
    let all = named.chain(request.topics.into_iter().map(|topic| (topic.name, topic.topic_id)));
    let one = |(name, id)| {
        delete_topics_response::DeletableTopicResult::default()
            .with_name(name)
            .with_topic_id(id)
            .with_error_code(code)
    };
    DeleteTopicsResponse::default().with_responses(all.map(one).collect())
}

fn create_partitions(request: CreatePartitionsRequest, code: i16) -> CreatePartitionsResponse {
    let one = |asked: kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic| {
        create_partitions_response::CreatePartitionsTopicResult::default()
            .with_name(asked.name)
            .with_error_code(code)
    };
    CreatePartitionsResponse::default().with_results(request.topics.into_iter().map(one).collect())
}

fn delete_records(request: DeleteRecordsRequest, code: i16) -> DeleteRecordsResponse {
    use delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
    let topic = |asked: kafka_protocol::messages::delete_records_request::DeleteRecordsTopic| {
        let partition =
            |index| DeleteRecordsPartitionResult::default().with_partition_index(index).with_error_code(code);
        let partitions = asked.partitions.iter().map(|asked| partition(asked.partition_index)).collect();
        DeleteRecordsTopicResult::default().with_name(asked.name).with_partitions(partitions)
    };
    DeleteRecordsResponse::default().with_topics(request.topics.into_iter().map(topic).collect())
}

fn delete_groups(request: DeleteGroupsRequest, code: i16) -> DeleteGroupsResponse {
    let one =
        |id| delete_groups_response::DeletableGroupResult::default().with_group_id(id).with_error_code(code);
    DeleteGroupsResponse::default().with_results(request.groups_names.into_iter().map(one).collect())
}
