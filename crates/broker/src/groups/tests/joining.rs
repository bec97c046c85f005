use std::time::Duration;

use kafka_protocol::error::ResponseError as E;
use kafka_protocol::messages::ListGroupsRequest;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_member_first_learns_its_id_and_joins_with_it() {
    let groups = groups();
    let id = fresh_id(&groups).await;
    assert!(id.starts_with("test-"));
    let joined = join(&groups, join_request(&id)).await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
    assert_eq!(
        (joined.leader.as_str(), joined.member_id.as_str()),
        (id.as_str(), id.as_str())
    );
    assert_eq!(joined.members.len(), 1);
    assert_eq!(joined.protocol_name.unwrap(), text("range"));
}

#[tokio::test(start_paused = true)]
async fn before_version_4_the_first_request_is_a_join() {
    let groups = groups();
    let joined = groups.join(&peer(), join_request(""), 3).await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_not_used_within_a_session_lapses() {
    let groups = groups();
    let id = fresh_id(&groups).await;
    settled().await;
    advance(Duration::from_millis(SESSION_MS as u64 + 1)).await;
    settled().await;
    assert_eq!(
        join(&groups, join_request(&id)).await.error_code,
        E::UnknownMemberId.code()
    );
}

#[tokio::test(start_paused = true)]
async fn a_join_waits_for_a_pending_member_until_its_id_lapses() {
    let groups = groups();
    let leader = alone(&groups).await;
    fresh_id(&groups).await;
    let joining = waiting_join(&groups, join_request(&leader)).await;
    assert!(!joining.is_finished());
    assert_eq!(joining.await.unwrap().generation_id, 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_outside_the_limits_is_refused() {
    let groups = groups();
    for session in [5_999, 1_800_001] {
        let refused = join(&groups, join_request("").with_session_timeout_ms(session)).await;
        assert_eq!(refused.error_code, E::InvalidSessionTimeout.code());
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_group_id_is_refused() {
    let refused = join(&groups(), join_request("").with_group_id(group_id(""))).await;
    assert_eq!(refused.error_code, E::InvalidGroupId.code());
}

#[tokio::test(start_paused = true)]
async fn a_member_of_a_group_that_does_not_exist_is_unknown() {
    assert_eq!(
        join(&groups(), join_request("ghost")).await.error_code,
        E::UnknownMemberId.code()
    );
}

#[tokio::test(start_paused = true)]
async fn another_protocol_type_or_no_common_assignor_is_inconsistent() {
    let groups = groups();
    alone(&groups).await;
    let connect = join_request("").with_protocol_type(text("connect"));
    let sticky = join_request("").with_protocols(vec![protocol("sticky")]);
    for req in [connect, sticky] {
        assert_eq!(
            join(&groups, req).await.error_code,
            E::InconsistentGroupProtocol.code()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_join_leaves_no_group_behind() {
    let groups = groups();
    let refused = join(&groups, join_request("").with_protocols(vec![])).await;
    assert_eq!(refused.error_code, E::InconsistentGroupProtocol.code());
    assert!(groups.list(&ListGroupsRequest::default()).groups.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_assignor_that_most_prefer_among_those_all_support_is_chosen() {
    let groups = started(GroupsConfig {
        initial_rebalance_delay_ms: 100,
        ..GroupsConfig::default()
    });
    let with =
        |names: &[&str]| join_request("").with_protocols(names.iter().map(|name| protocol(name)).collect());
    let requests = [with(&["a", "b", "c"]), with(&["b", "a"]), with(&["c", "b", "a"])];
    let handles = requests.map(|req| {
        let groups = groups.clone();
        tokio::spawn(async move { groups.join(&peer(), req, 3).await })
    });
    for handle in handles {
        let joined = handle.await.unwrap();
        assert_eq!(joined.generation_id, 1);
        assert_eq!(
            joined.protocol_name.unwrap(),
            text("b"),
            "c is not common; the third votes for b"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_initial_delay_is_extended_while_members_arrive() {
    let groups = started(GroupsConfig {
        initial_rebalance_delay_ms: 1_000,
        ..GroupsConfig::default()
    });
    let first = {
        let groups = groups.clone();
        tokio::spawn(async move { groups.join(&peer(), join_request(""), 3).await })
    };
    settled().await;
    advance(Duration::from_millis(900)).await;
    let second = {
        let groups = groups.clone();
        tokio::spawn(async move { groups.join(&peer(), join_request(""), 3).await })
    };
    settled().await;
    advance(Duration::from_millis(200)).await;
    settled().await;
    assert!(!first.is_finished() && !second.is_finished());
    assert_eq!(
        (
            first.await.unwrap().generation_id,
            second.await.unwrap().generation_id
        ),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_member_waits_until_the_first_joins_again() {
    let groups = groups();
    two(&groups).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_join_again_in_time_is_left_out() {
    let groups = groups();
    let leader = alone(&groups).await;
    let other = fresh_id(&groups).await;
    let joining = waiting_join(&groups, join_request(&other)).await;
    assert_eq!(heartbeat(&groups, &leader, 1), E::RebalanceInProgress.code());
    let joined = joining.await.unwrap();
    assert_eq!(
        (joined.generation_id, joined.leader.as_str()),
        (2, other.as_str())
    );
    assert_eq!(heartbeat(&groups, &leader, 1), E::UnknownMemberId.code());
}

#[tokio::test(start_paused = true)]
async fn the_leader_that_joins_again_causes_a_rebalance_and_a_follower_does_not() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let again = join(&groups, join_request(&other)).await;
    assert_eq!((again.generation_id, again.members.len()), (2, 0));
    let joining = waiting_join(&groups, join_request(&leader)).await;
    assert!(!joining.is_finished());
    assert_eq!(heartbeat(&groups, &other, 2), E::RebalanceInProgress.code());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_subscribes_to_more_causes_a_rebalance() {
    let groups = groups();
    let (_, other) = two(&groups).await;
    let more = vec![protocol("range").with_metadata(subscription(&["orders", "refunds"]))];
    let joining = waiting_join(&groups, join_request(&other).with_protocols(more)).await;
    assert!(!joining.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_join_whose_answer_was_lost_is_answered_again() {
    let groups = groups();
    let id = fresh_id(&groups).await;
    let joined = join(&groups, join_request(&id)).await;
    let again = join(&groups, join_request(&id)).await;
    assert_eq!(joined, again);
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_connection_closed_stays_until_its_session_ends() {
    let groups = groups();
    let leader = alone(&groups).await;
    let other = fresh_id(&groups).await;
    let gone = waiting_join(&groups, join_request(&other)).await;
    gone.abort();
    let joined = join(&groups, join_request(&leader)).await;
    assert_eq!(joined.members.len(), 2, "it may come back");
    let assignments = vec![assignment(&leader, "all")];
    sync(&groups, sync_request(&leader, 2).with_assignments(assignments)).await;
    for _ in 0..3 {
        advance(Duration::from_millis(SESSION_MS as u64 / 2)).await;
        settled().await;
        heartbeat(&groups, &leader, 2);
    }
    assert_eq!(heartbeat(&groups, &leader, 2), E::RebalanceInProgress.code());
    assert_eq!(join(&groups, join_request(&leader)).await.members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_group_takes_nobody_else() {
    let groups = started(GroupsConfig {
        max_group_size: 1,
        ..GroupsConfig::default()
    });
    let only = alone(&groups).await;
    assert_eq!(
        join(&groups, join_request("")).await.error_code,
        E::GroupMaxSizeReached.code()
    );
    assert_eq!(heartbeat(&groups, &only, 1), 0);
}
