use std::time::Duration;

use tokio::time::advance;

use super::*;
use crate::groups::group::{Group, State};
use crate::groups::offsets::Committed;

const RETENTION_MS: i64 = 1_000;

fn committed(group: &mut Group, topic: &str, at: i64) {
    let offset = Committed {
        offset: 5,
        leader_epoch: -1,
        metadata: String::new(),
        committed_ms: at,
        arrival: 1,
    };
    group.offsets.commit(vec![((topic.to_owned(), 0), offset)]);
}

fn expired(group: &Group, now: i64) -> Vec<String> {
    group
        .expired_offsets(RETENTION_MS, now)
        .into_iter()
        .map(|(topic, _)| topic)
        .collect()
}

#[test]
fn without_members_ever_each_commit_counts_for_itself() {
    let mut group = Group::new("g");
    committed(&mut group, "old", 0);
    committed(&mut group, "new", 500);
    assert_eq!(expired(&group, 999), Vec::<String>::new());
    assert_eq!(expired(&group, 1_000), ["old"]);
}

#[test]
fn of_a_group_that_became_empty_all_counts_from_then() {
    let mut group = Group::new("g");
    group.protocol_type = Some("consumer".to_owned());
    group.empty_since_ms = Some(5_000);
    committed(&mut group, "old", 0);
    assert_eq!(expired(&group, 5_999), Vec::<String>::new());
    assert_eq!(expired(&group, 6_000), ["old"]);
}

#[test]
fn what_is_unstable_or_belongs_to_a_group_at_work_of_unknown_kind_stays() {
    let mut group = Group::new("g");
    committed(&mut group, "held", 0);
    let held = group.offsets.committed.clone();
    group.offsets.hold(9, held.into_iter().collect());
    assert_eq!(expired(&group, 9_999), Vec::<String>::new());
    group.offsets.complete(9, false);
    group.protocol_type = Some("connect".to_owned());
    group.state = State::Stable;
    assert_eq!(expired(&group, 9_999), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn offsets_nobody_uses_are_swept_where_that_is_asked_for_and_stay_where_it_is_not() {
    for (offsets_retention_ms, expected) in [(Some(0), -1), (None, 5)] {
        let groups = started(GroupsConfig {
            offsets_retention_ms,
            ..GroupsConfig::default()
        });
        settled().await;
        commit(&groups, &commit_request("", -1, 5));
        advance(Duration::from_secs(601)).await;
        settled().await;
        assert_eq!(offset(&groups), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_members_read_keeps_its_offsets() {
    let groups = started(GroupsConfig {
        offsets_retention_ms: Some(0),
        ..GroupsConfig::default()
    });
    let id = alone(&groups).await;
    commit(&groups, &commit_request(&id, 1, 5));
    let mut unread = commit_request(&id, 1, 5);
    unread.topics[0].name = TopicName(text("unread"));
    commit(&groups, &unread);
    let desk = groups.desk();
    assert_eq!(
        desk.book.groups["g"].expired_offsets(0, i64::MAX),
        [("unread".to_owned(), 0)]
    );
}
