use std::path::Path;
use std::time::Duration;

use kafka_protocol::error::ResponseError as E;
use tokio::time::advance;

use super::*;

fn opened(dir: &Path, config: GroupsConfig) -> Groups {
    let groups = Groups::open(Some(dir), config).unwrap();
    tokio::spawn(groups.clone().run());
    groups
}

fn reopened(dir: &Path) -> Groups {
    opened(dir, GroupsConfig::default())
}

#[tokio::test(start_paused = true)]
async fn offsets_and_their_metadata_survive() {
    let dir = tempfile::tempdir().unwrap();
    commit(&reopened(dir.path()), &commit_request("", -1, 42));
    let found = fetched(&reopened(dir.path()), true);
    assert_eq!((found.committed_offset, found.committed_leader_epoch), (42, 3));
    assert_eq!(found.metadata.unwrap(), text("tag"));
}

#[tokio::test(start_paused = true)]
async fn a_stable_group_goes_on_where_it_was_and_the_absent_are_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (leader, other) = two(&reopened(dir.path())).await;
    let groups = reopened(dir.path());
    assert_eq!(heartbeat(&groups, &leader, 2), 0);
    assert_eq!(commit(&groups, &commit_request(&leader, 2, 5)), 0);
    assert_eq!(
        sync(&groups, sync_request(&other, 2)).await.assignment,
        "second half"
    );
    for _ in 0..3 {
        advance(Duration::from_millis(SESSION_MS as u64 / 2)).await;
        settled().await;
        heartbeat(&groups, &leader, 2);
    }
    assert_eq!(heartbeat(&groups, &other, 2), E::UnknownMemberId.code());
    assert_eq!(heartbeat(&groups, &leader, 2), E::RebalanceInProgress.code());
}

#[tokio::test(start_paused = true)]
async fn an_instance_finds_its_assignment_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let groups = reopened(dir.path());
    let joined = join(&groups, join_request("").with_group_instance_id(Some(text("a")))).await;
    let id = joined.member_id.to_string();
    sync(
        &groups,
        sync_request(&id, 1).with_assignments(vec![assignment(&id, "all")]),
    )
    .await;
    let groups = reopened(dir.path());
    let back = join(&groups, join_request("").with_group_instance_id(Some(text("a")))).await;
    assert_eq!(back.generation_id, 1);
    assert_eq!(
        sync(&groups, sync_request(&back.member_id, 1)).await.assignment,
        "all"
    );
}

#[tokio::test(start_paused = true)]
async fn where_members_die_with_the_broker_the_next_one_does_not_wait_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let config = || GroupsConfig {
        restore_members: false,
        ..GroupsConfig::default()
    };
    let old = alone(&opened(dir.path(), config())).await;
    let groups = opened(dir.path(), config());
    assert_eq!(
        commit(&groups, &commit_request(&old, 1, 5)),
        E::UnknownMemberId.code()
    );
    let id = fresh_id(&groups).await;
    assert_eq!(
        join(&groups, join_request(&id)).await.generation_id,
        2,
        "the number still grows"
    );
}

#[tokio::test(start_paused = true)]
async fn the_generation_of_an_empty_group_survives() {
    let dir = tempfile::tempdir().unwrap();
    let groups = reopened(dir.path());
    let id = alone(&groups).await;
    leave(&groups, &id, None);
    let groups = reopened(dir.path());
    let id = fresh_id(&groups).await;
    assert_eq!(join(&groups, join_request(&id)).await.generation_id, 3);
}

#[tokio::test(start_paused = true)]
async fn held_offsets_survive_and_end_with_their_transaction() {
    for (commit_it, expected) in [(true, 7), (false, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let groups = reopened(dir.path());
        commit(&groups, &commit_request("", -1, 1));
        txn_commit(&groups, &txn_commit_request(9, 7));
        let groups = reopened(dir.path());
        assert_eq!(fetched(&groups, true).error_code, E::UnstableOffsetCommit.code());
        groups
            .complete_transaction(9, &["g".to_owned()], commit_it)
            .unwrap();
        assert_eq!(offset(&groups), expected);
        assert_eq!(offset(&reopened(dir.path())), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_stays_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let groups = reopened(dir.path());
    commit(&groups, &commit_request("", -1, 1));
    groups.topic_deleted("orders").unwrap();
    assert_eq!(offset(&reopened(dir.path())), -1);
}

#[tokio::test(start_paused = true)]
async fn the_journal_stays_small_and_keeps_what_lives() {
    let dir = tempfile::tempdir().unwrap();
    let config = || GroupsConfig {
        compact_above_bytes: 4_096,
        ..GroupsConfig::default()
    };
    let groups = opened(dir.path(), config());
    let id = alone(&groups).await;
    txn_commit(&groups, &txn_commit_request(9, 77_777));
    for offset in 0..2_000 {
        assert_eq!(commit(&groups, &commit_request(&id, 1, offset)), 0);
    }
    let size = std::fs::metadata(dir.path().join("groups.journal"))
        .unwrap()
        .len();
    assert!(size < 3 * 4_096, "{size} bytes");
    let groups = opened(dir.path(), config());
    assert_eq!(offset(&groups), 1_999);
    assert_eq!(heartbeat(&groups, &id, 1), 0);
    groups.complete_transaction(9, &["g".to_owned()], true).unwrap();
    assert_eq!(offset(&groups), 1_999, "the order of commits survives, too");
}

#[tokio::test(start_paused = true)]
async fn a_journal_cut_at_any_byte_opens_with_a_prefix_of_the_commits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("groups.journal");
    let groups = reopened(dir.path());
    for offset in 0..3 {
        commit(&groups, &commit_request("", -1, offset));
    }
    let content = std::fs::read(&path).unwrap();
    let mut before = -1;
    for cut in 0..=content.len() {
        std::fs::write(&path, &content[..cut]).unwrap();
        let found = offset(&reopened(dir.path()));
        assert!(found == before || found == before + 1, "cut at {cut}");
        before = found;
    }
    assert_eq!(before, 2);
}
