//! Every answer can be encoded in every version that is advertised.

use bytes::BytesMut;
use kafka_protocol::messages::{DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest};
use kafka_protocol::protocol::Encodable;

use super::*;

fn encodes(response: &impl Encodable, version: i16) {
    response.encode(&mut BytesMut::new(), version).unwrap();
}

#[tokio::test(start_paused = true)]
async fn joins_refused_and_granted() {
    for version in 0..=9 {
        let groups = groups();
        encodes(
            &groups.join(&peer(), join_request("ghost"), version).await,
            version,
        );
        let first = groups.join(&peer(), join_request(""), version).await;
        encodes(&first, version);
        encodes(
            &groups
                .join(&peer(), join_request(&first.member_id), version)
                .await,
            version,
        );
    }
}

#[tokio::test(start_paused = true)]
async fn syncs_heartbeats_and_farewells() {
    let groups = groups();
    let id = alone(&groups).await;
    for version in 0..=5 {
        encodes(&groups.sync(sync_request(&id, 1), version).await, version);
        encodes(&groups.sync(sync_request("ghost", 1), version).await, version);
        let one = LeaveGroupRequest::default()
            .with_group_id(group_id("g"))
            .with_member_id(text("ghost"));
        let many = one
            .clone()
            .with_members(vec![MemberIdentity::default().with_member_id(text("ghost"))]);
        encodes(
            &groups.leave(if version < 3 { &one } else { &many }, version),
            version,
        );
    }
    for version in 0..=4 {
        encodes(&groups.heartbeat(&HeartbeatRequest::default()), version);
    }
}

#[tokio::test(start_paused = true)]
async fn commits_and_fetches() {
    let groups = groups();
    for version in 2..=9 {
        encodes(
            &groups.offset_commit(&commit_request("", -1, 5), version, |_| true),
            version,
        );
    }
    for version in 0..=4 {
        encodes(
            &groups.txn_offset_commit(&txn_commit_request(1, 5), |_| true, || Ok(())),
            version,
        );
    }
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(group_id("g"))
        .with_topics(None);
    let req = OffsetFetchRequest::default()
        .with_group_id(group_id("g"))
        .with_topics(None)
        .with_groups(vec![group]);
    for version in 1..=9 {
        encodes(&groups.offset_fetch(&req, version), version);
    }
}

#[tokio::test(start_paused = true)]
async fn what_administrators_ask() {
    let groups = groups();
    alone(&groups).await;
    for version in 0..=5 {
        encodes(&groups.list(&ListGroupsRequest::default()), version);
    }
    let req = DescribeGroupsRequest::default().with_groups(vec![group_id("g"), group_id("none")]);
    for version in 0..=6 {
        encodes(&groups.describe(&req, version), version);
    }
    let req = DeleteGroupsRequest::default().with_groups_names(vec![group_id("g"), group_id("none")]);
    for version in 0..=2 {
        encodes(&groups.delete(&req), version);
    }
}
