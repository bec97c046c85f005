//! The group coordinator as its clients see it, with the clock in our hands.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponsePartitions;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest,
    OffsetFetchRequest, ProducerId, SyncGroupRequest, SyncGroupResponse, TopicName, TxnOffsetCommitRequest,
};
use kafka_protocol::protocol::StrBytes;
use tokio::task::JoinHandle;

use super::{Groups, GroupsConfig, Peer};

mod admin;
mod joining;
mod members;
mod offsets;
mod properties;
mod restart;
mod retention;
mod statics;
mod versions;

pub(super) const SESSION_MS: i32 = 10_000;
pub(super) const REBALANCE_MS: i32 = 60_000;

pub(super) fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

pub(super) fn group_id(value: &str) -> GroupId {
    GroupId(text(value))
}

pub(super) fn peer() -> Peer {
    Peer {
        client_id: "test".to_owned(),
        host: "127.0.0.1".to_owned(),
    }
}

/// In memory, with the timers running.
pub(super) fn started(config: GroupsConfig) -> Groups {
    let groups = Groups::open(None, config).unwrap();
    tokio::spawn(groups.clone().run());
    groups
}

pub(super) fn groups() -> Groups {
    started(GroupsConfig::default())
}

pub(super) fn subscription(topics: &[&str]) -> Bytes {
    let mut metadata = BytesMut::new();
    metadata.put_i16(0);
    metadata.put_i32(topics.len() as i32);
    for topic in topics {
        metadata.put_i16(topic.len() as i16);
        metadata.put_slice(topic.as_bytes());
    }
    metadata.put_i32(-1);
    metadata.freeze()
}

pub(super) fn protocol(name: &str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol::default()
        .with_name(text(name))
        .with_metadata(subscription(&["orders"]))
}

pub(super) fn join_request(member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group_id("g"))
        .with_session_timeout_ms(SESSION_MS)
        .with_rebalance_timeout_ms(REBALANCE_MS)
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol("range")])
}

pub(super) async fn join(groups: &Groups, req: JoinGroupRequest) -> JoinGroupResponse {
    groups.join(&peer(), req, 9).await
}

/// A join that waits, once it has been heard.
pub(super) async fn waiting_join(groups: &Groups, req: JoinGroupRequest) -> JoinHandle<JoinGroupResponse> {
    let groups = groups.clone();
    let handle = tokio::spawn(async move { join(&groups, req).await });
    settled().await;
    handle
}

/// Lets every task run that can, without the clock moving.
pub(super) async fn settled() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// The id a dynamic member is given before it may join.
pub(super) async fn fresh_id(groups: &Groups) -> String {
    let refused = join(groups, join_request("")).await;
    assert_eq!(refused.error_code, 79, "MEMBER_ID_REQUIRED");
    refused.member_id.to_string()
}

pub(super) fn assignment(member_id: &str, what: &str) -> SyncGroupRequestAssignment {
    SyncGroupRequestAssignment::default()
        .with_member_id(text(member_id))
        .with_assignment(Bytes::copy_from_slice(what.as_bytes()))
}

pub(super) fn sync_request(member_id: &str, generation: i32) -> SyncGroupRequest {
    SyncGroupRequest::default()
        .with_group_id(group_id("g"))
        .with_generation_id(generation)
        .with_member_id(text(member_id))
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
}

pub(super) async fn sync(groups: &Groups, req: SyncGroupRequest) -> SyncGroupResponse {
    groups.sync(req, 5).await
}

/// A group of one, stable in its first generation.
pub(super) async fn alone(groups: &Groups) -> String {
    let id = fresh_id(groups).await;
    let joined = join(groups, join_request(&id)).await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
    let synced = sync(
        groups,
        sync_request(&id, 1).with_assignments(vec![assignment(&id, "all")]),
    )
    .await;
    assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"all"[..]));
    id
}

/// A group of two, stable in its second generation: the leader and the other.
pub(super) async fn two(groups: &Groups) -> (String, String) {
    let leader = alone(groups).await;
    let other = fresh_id(groups).await;
    let joining = waiting_join(groups, join_request(&other)).await;
    let joined = join(groups, join_request(&leader)).await;
    assert_eq!((joined.generation_id, joined.members.len()), (2, 2));
    assert_eq!(joining.await.unwrap().generation_id, 2);
    let assignments = vec![
        assignment(&leader, "first half"),
        assignment(&other, "second half"),
    ];
    sync(groups, sync_request(&leader, 2).with_assignments(assignments)).await;
    assert_eq!(
        sync(groups, sync_request(&other, 2)).await.assignment,
        "second half"
    );
    (leader, other)
}

pub(super) fn heartbeat(groups: &Groups, member_id: &str, generation: i32) -> i16 {
    let req = HeartbeatRequest::default()
        .with_group_id(group_id("g"))
        .with_member_id(text(member_id))
        .with_generation_id(generation);
    groups.heartbeat(&req).error_code
}

pub(super) fn leave(groups: &Groups, member_id: &str, instance: Option<&str>) -> i16 {
    let identity = MemberIdentity::default()
        .with_member_id(text(member_id))
        .with_group_instance_id(instance.map(text));
    let req = LeaveGroupRequest::default()
        .with_group_id(group_id("g"))
        .with_members(vec![identity]);
    let response = groups.leave(&req, 5);
    assert_eq!(response.error_code, 0);
    response.members[0].error_code
}

pub(super) fn commit_request(member_id: &str, generation: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_leader_epoch(3)
        .with_committed_metadata(Some(text("tag")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group_id("g"))
        .with_member_id(text(member_id))
        .with_generation_id_or_member_epoch(generation)
        .with_topics(vec![topic])
}

pub(super) fn commit(groups: &Groups, req: &OffsetCommitRequest) -> i16 {
    groups.offset_commit(req, 9, |topic| topic != "missing").topics[0].partitions[0].error_code
}

pub(super) fn txn_commit_request(producer_id: i64, offset: i64) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_leader_epoch(3);
    let topic = TxnOffsetCommitRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    TxnOffsetCommitRequest::default()
        .with_group_id(group_id("g"))
        .with_producer_id(ProducerId(producer_id))
        .with_generation_id(-1)
        .with_topics(vec![topic])
}

pub(super) fn txn_commit(groups: &Groups, req: &TxnOffsetCommitRequest) -> i16 {
    groups.txn_offset_commit(req, |_| true, || Ok(())).topics[0].partitions[0].error_code
}

pub(super) fn fetched(groups: &Groups, stable: bool) -> OffsetFetchResponsePartitions {
    let topic = OffsetFetchRequestTopics::default()
        .with_name(TopicName(text("orders")))
        .with_partition_indexes(vec![0]);
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(group_id("g"))
        .with_topics(Some(vec![topic]));
    let req = OffsetFetchRequest::default()
        .with_groups(vec![group])
        .with_require_stable(stable);
    groups.offset_fetch(&req, 9).groups[0].topics[0].partitions[0].clone()
}

pub(super) fn offset(groups: &Groups) -> i64 {
    fetched(groups, false).committed_offset
}
