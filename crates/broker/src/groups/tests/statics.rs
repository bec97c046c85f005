use std::time::Duration;

use kafka_protocol::error::ResponseError as E;
use tokio::time::advance;

use super::*;

fn static_join(instance: &str, member_id: &str) -> JoinGroupRequest {
    join_request(member_id).with_group_instance_id(Some(text(instance)))
}

/// A static leader, stable, alone.
async fn static_leader(groups: &Groups) -> String {
    let joined = join(groups, static_join("a", "")).await;
    assert_eq!(
        (joined.error_code, joined.generation_id),
        (0, 1),
        "no id is needed first"
    );
    let id = joined.member_id.to_string();
    assert!(id.starts_with("a-"));
    let req = sync_request(&id, 1).with_group_instance_id(Some(text("a")));
    sync(groups, req.with_assignments(vec![assignment(&id, "all")])).await;
    id
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_comes_back_takes_its_place_without_a_rebalance() {
    let groups = groups();
    let old = static_leader(&groups).await;
    let back = join(&groups, static_join("a", "")).await;
    assert_eq!((back.error_code, back.generation_id), (0, 1));
    assert!(
        back.skip_assignment,
        "it leads and leaves the assignment as it is"
    );
    assert_eq!(back.leader, back.member_id);
    assert_ne!(back.member_id.as_str(), old);
    let req = sync_request(&back.member_id, 1).with_group_instance_id(Some(text("a")));
    assert_eq!(sync(&groups, req).await.assignment, "all");
}

#[tokio::test(start_paused = true)]
async fn before_version_9_a_static_leader_that_comes_back_is_shown_the_old_leader() {
    let groups = groups();
    let old = static_leader(&groups).await;
    let back = groups.join(&peer(), static_join("a", ""), 8).await;
    assert_eq!(
        (back.leader.as_str(), back.members.len(), back.skip_assignment),
        (old.as_str(), 0, false)
    );
}

#[tokio::test(start_paused = true)]
async fn the_former_holder_of_an_instance_is_fenced_everywhere() {
    let groups = groups();
    let old = static_leader(&groups).await;
    join(&groups, static_join("a", "")).await;
    let fenced = E::FencedInstanceId.code();
    let instance = Some(text("a"));
    assert_eq!(join(&groups, static_join("a", &old)).await.error_code, fenced);
    let req = sync_request(&old, 1).with_group_instance_id(instance.clone());
    assert_eq!(sync(&groups, req).await.error_code, fenced);
    let req = HeartbeatRequest::default()
        .with_group_id(group_id("g"))
        .with_member_id(text(&old))
        .with_generation_id(1)
        .with_group_instance_id(instance.clone());
    assert_eq!(groups.heartbeat(&req).error_code, fenced);
    assert_eq!(leave(&groups, &old, Some("a")), fenced);
    let req = commit_request(&old, 1, 5).with_group_instance_id(instance.clone());
    assert_eq!(commit(&groups, &req), fenced);
    let req = txn_commit_request(9, 5)
        .with_member_id(text(&old))
        .with_generation_id(1)
        .with_group_instance_id(instance);
    assert_eq!(txn_commit(&groups, &req), fenced);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_join_is_fenced_when_its_instance_comes_back_elsewhere() {
    let groups = groups();
    let leader = alone(&groups).await;
    let first = waiting_join(&groups, static_join("a", "")).await;
    let second = waiting_join(&groups, static_join("a", "")).await;
    assert_eq!(first.await.unwrap().error_code, E::FencedInstanceId.code());
    join(&groups, join_request(&leader)).await;
    assert_eq!(second.await.unwrap().generation_id, 2);
}

#[tokio::test(start_paused = true)]
async fn an_instance_nobody_knows_is_an_unknown_member() {
    let groups = groups();
    let id = alone(&groups).await;
    assert_eq!(
        join(&groups, static_join("b", &id)).await.error_code,
        E::UnknownMemberId.code()
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_away_keeps_its_place_through_a_rebalance() {
    let groups = groups();
    let id = static_leader(&groups).await;
    let other = fresh_id(&groups).await;
    let joining = waiting_join(&groups, join_request(&other)).await;
    for _ in 0..8 {
        advance(Duration::from_millis(SESSION_MS as u64 - 1)).await;
        settled().await;
        heartbeat(&groups, &id, 1);
    }
    let joined = joining.await.unwrap();
    assert_eq!((joined.generation_id, joined.members.len()), (2, 2));
    assert_eq!(joined.leader.as_str(), other, "only who is here can assign");
}

#[tokio::test(start_paused = true)]
async fn an_administrator_removes_an_instance_without_its_member_id() {
    let groups = groups();
    static_leader(&groups).await;
    assert_eq!(leave(&groups, "", Some("ghost")), E::UnknownMemberId.code());
    assert_eq!(leave(&groups, "", Some("a")), 0);
    assert_eq!(leave(&groups, "", Some("a")), E::UnknownMemberId.code());
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_comes_back_with_another_assignor_causes_a_rebalance() {
    let groups = groups();
    let joined = join(
        &groups,
        static_join("a", "").with_protocols(vec![protocol("range"), protocol("sticky")]),
    )
    .await;
    let id = joined.member_id.to_string();
    sync(
        &groups,
        sync_request(&id, 1).with_assignments(vec![assignment(&id, "all")]),
    )
    .await;
    let back = join(
        &groups,
        static_join("a", "").with_protocols(vec![protocol("sticky")]),
    )
    .await;
    assert_eq!(
        (back.generation_id, back.protocol_name),
        (2, Some(text("sticky")))
    );
}
