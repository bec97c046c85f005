use std::time::Duration;

use kafka_protocol::error::ResponseError as E;
use tokio::time::advance;

use super::*;
use crate::groups::group::{Effects, Group, State};
use crate::groups::member::{Member, Ticket};
use crate::groups::membership::Sync;

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_the_assignment_of_its_leader() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let joining = waiting_join(&groups, join_request(&leader)).await;
    join(&groups, join_request(&other)).await;
    joining.await.unwrap();
    let follower = {
        let groups = groups.clone();
        let req = sync_request(&other, 3);
        tokio::spawn(async move { sync(&groups, req).await })
    };
    settled().await;
    assert!(!follower.is_finished());
    let assignments = vec![assignment(&other, "all of it")];
    let synced = sync(&groups, sync_request(&leader, 3).with_assignments(assignments)).await;
    assert!(
        synced.assignment.is_empty(),
        "whom the leader left out gets nothing"
    );
    assert_eq!(follower.await.unwrap().assignment, "all of it");
}

#[tokio::test(start_paused = true)]
async fn a_sync_is_checked_for_member_generation_and_protocol() {
    let groups = groups();
    let id = alone(&groups).await;
    let cases = [
        (sync_request("ghost", 1), E::UnknownMemberId),
        (sync_request(&id, 0), E::IllegalGeneration),
        (sync_request(&id, 2), E::IllegalGeneration),
        (
            sync_request(&id, 1).with_protocol_name(Some(text("sticky"))),
            E::InconsistentGroupProtocol,
        ),
        (
            sync_request(&id, 1).with_protocol_type(None),
            E::InconsistentGroupProtocol,
        ),
        (
            sync_request(&id, 1).with_group_id(group_id("")),
            E::InvalidGroupId,
        ),
        (
            sync_request(&id, 1).with_group_id(group_id("none")),
            E::UnknownMemberId,
        ),
    ];
    for (req, error) in cases {
        assert_eq!(
            sync(&groups, req.clone()).await.error_code,
            error.code(),
            "{req:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_during_a_rebalance_is_sent_back_to_join() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let _joining = waiting_join(&groups, join_request(&leader)).await;
    assert_eq!(
        sync(&groups, sync_request(&other, 2)).await.error_code,
        E::RebalanceInProgress.code()
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_assignment_is_sent_back_when_another_joins() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let joining = waiting_join(&groups, join_request(&leader)).await;
    join(&groups, join_request(&other)).await;
    joining.await.unwrap();
    let follower = {
        let groups = groups.clone();
        let req = sync_request(&other, 3);
        tokio::spawn(async move { sync(&groups, req).await })
    };
    settled().await;
    let third = fresh_id(&groups).await;
    let _third = waiting_join(&groups, join_request(&third)).await;
    assert_eq!(follower.await.unwrap().error_code, E::RebalanceInProgress.code());
}

#[tokio::test(start_paused = true)]
async fn members_that_never_ask_for_their_assignment_are_removed() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let joining = waiting_join(&groups, join_request(&leader)).await;
    join(&groups, join_request(&other)).await;
    joining.await.unwrap();
    sync(&groups, sync_request(&leader, 3)).await;
    for _ in 0..13 {
        advance(Duration::from_millis(SESSION_MS as u64 / 2)).await;
        settled().await;
        heartbeat(&groups, &leader, 3);
        heartbeat(&groups, &other, 3);
    }
    assert_eq!(heartbeat(&groups, &other, 3), E::UnknownMemberId.code());
    assert_eq!(heartbeat(&groups, &leader, 3), E::RebalanceInProgress.code());
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_checked_for_member_and_generation() {
    let groups = groups();
    let id = alone(&groups).await;
    assert_eq!(heartbeat(&groups, &id, 1), 0);
    assert_eq!(heartbeat(&groups, "ghost", 1), E::UnknownMemberId.code());
    assert_eq!(heartbeat(&groups, &id, 7), E::IllegalGeneration.code());
}

#[tokio::test(start_paused = true)]
async fn heartbeats_and_commits_keep_a_session_and_silence_ends_it() {
    let groups = groups();
    let id = alone(&groups).await;
    for _ in 0..5 {
        advance(Duration::from_millis(SESSION_MS as u64 - 1)).await;
        settled().await;
        assert_eq!(heartbeat(&groups, &id, 1), 0);
        advance(Duration::from_millis(SESSION_MS as u64 - 1)).await;
        settled().await;
        assert_eq!(commit(&groups, &commit_request(&id, 1, 5)), 0);
    }
    advance(Duration::from_millis(SESSION_MS as u64 + 1)).await;
    settled().await;
    assert_eq!(heartbeat(&groups, &id, 1), E::UnknownMemberId.code());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_rebalance_does_not_lose_its_session() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let joining = waiting_join(&groups, join_request(&leader)).await;
    for _ in 0..4 {
        advance(Duration::from_millis(SESSION_MS as u64 - 1)).await;
        settled().await;
        assert_eq!(heartbeat(&groups, &other, 2), E::RebalanceInProgress.code());
    }
    assert!(!joining.is_finished());
    assert_eq!(join(&groups, join_request(&other)).await.generation_id, 3);
    assert_eq!(joining.await.unwrap().members.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_to_leave_leaves_an_empty_group_in_a_new_generation() {
    let groups = groups();
    let id = alone(&groups).await;
    assert_eq!(leave(&groups, &id, None), 0);
    assert_eq!(leave(&groups, &id, None), E::UnknownMemberId.code());
    let id = fresh_id(&groups).await;
    assert_eq!(join(&groups, join_request(&id)).await.generation_id, 3);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_it_waits_is_answered() {
    let groups = groups();
    alone(&groups).await;
    let other = fresh_id(&groups).await;
    let joining = waiting_join(&groups, join_request(&other)).await;
    assert_eq!(leave(&groups, &other, None), 0);
    assert_eq!(joining.await.unwrap().error_code, E::UnknownMemberId.code());
}

#[tokio::test(start_paused = true)]
async fn before_version_3_one_member_leaves_and_gets_the_error_itself() {
    let groups = groups();
    let id = alone(&groups).await;
    let req = |id: &str| {
        LeaveGroupRequest::default()
            .with_group_id(group_id("g"))
            .with_member_id(text(id))
    };
    assert_eq!(
        groups.leave(&req("ghost"), 2).error_code,
        E::UnknownMemberId.code()
    );
    assert_eq!(groups.leave(&req(&id), 2).error_code, 0);
}

#[test]
fn an_assignment_that_could_not_be_written_down_reaches_nobody() {
    let mut group = Group::new("g");
    let member = Member {
        id: "m".to_owned(),
        instance: None,
        client_id: String::new(),
        client_host: String::new(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocols: vec![("range".to_owned(), Bytes::new())],
        assignment: Bytes::new(),
        joining: None,
        syncing: None,
        new: false,
        session_ends: i64::from(SESSION_MS),
    };
    group.members.insert("m".to_owned(), member);
    group.leader = Some("m".to_owned());
    group.state = State::Completing;
    let sync = Sync {
        ticket: Ticket(1),
        generation: 0,
        member_id: "m".to_owned(),
        instance: None,
        protocol_type: None,
        protocol: None,
        assignments: [("m".to_owned(), Bytes::from_static(b"all"))].into(),
    };
    let mut fx = Effects::default();
    group.sync(sync, 0, &mut fx);
    assert!(fx.record);
    group.assignment_lost(0, &mut fx);
    assert!(fx.syncs.iter().all(|(_, answer)| answer.is_err()));
    assert!(matches!(group.state, State::Preparing { .. }));
}
