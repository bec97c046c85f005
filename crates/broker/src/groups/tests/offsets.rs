use kafka_protocol::error::ResponseError as E;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_member_of_the_generation_commits_and_all_of_it_comes_back() {
    let groups = groups();
    let id = alone(&groups).await;
    assert_eq!(commit(&groups, &commit_request(&id, 1, 42)), 0);
    let found = fetched(&groups, true);
    assert_eq!((found.committed_offset, found.committed_leader_epoch), (42, 3));
    assert_eq!(found.metadata.unwrap(), text("tag"));
}

#[tokio::test(start_paused = true)]
async fn who_has_no_group_commits_to_an_empty_one_and_not_into_one_at_work() {
    let groups = groups();
    assert_eq!(commit(&groups, &commit_request("", -1, 1)), 0);
    alone(&groups).await;
    assert_eq!(
        commit(&groups, &commit_request("", -1, 2)),
        E::UnknownMemberId.code()
    );
    assert_eq!(offset(&groups), 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_checked_for_member_and_generation() {
    let groups = groups();
    let id = alone(&groups).await;
    let cases = [
        (commit_request("ghost", 1, 5), E::UnknownMemberId),
        (commit_request(&id, 0, 5), E::IllegalGeneration),
        (commit_request(&id, -1, 5), E::IllegalGeneration),
    ];
    for (req, error) in cases {
        assert_eq!(commit(&groups, &req), error.code(), "{req:?}");
    }
    assert_eq!(offset(&groups), -1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_a_generation_that_nobody_knows_is_named_by_version() {
    let groups = groups();
    let code = |version| {
        let response = groups.offset_commit(&commit_request("m", 4, 5), version, |_| true);
        response.topics[0].partitions[0].error_code
    };
    assert_eq!(
        (code(8), code(9)),
        (E::IllegalGeneration.code(), E::GroupIdNotFound.code())
    );
}

#[tokio::test(start_paused = true)]
async fn between_join_and_sync_plain_commits_are_refused_and_transactional_ones_taken() {
    let groups = groups();
    let id = fresh_id(&groups).await;
    join(&groups, join_request(&id)).await;
    assert_eq!(
        commit(&groups, &commit_request(&id, 1, 5)),
        E::RebalanceInProgress.code()
    );
    let req = txn_commit_request(9, 5)
        .with_member_id(text(&id))
        .with_generation_id(1);
    assert_eq!(txn_commit(&groups, &req), 0);
}

#[tokio::test(start_paused = true)]
async fn while_others_rejoin_a_member_still_commits() {
    let groups = groups();
    let (leader, other) = two(&groups).await;
    let _joining = waiting_join(&groups, join_request(&leader)).await;
    assert_eq!(commit(&groups, &commit_request(&other, 2, 7)), 0);
    assert_eq!(offset(&groups), 7);
}

#[tokio::test(start_paused = true)]
async fn metadata_up_to_4096_is_kept_and_longer_refused_for_that_partition_alone() {
    let groups = groups();
    let mut req = commit_request("", -1, 1);
    let partition = req.topics[0].partitions[0].clone();
    let with = |index, metadata: String| {
        let metadata = Some(StrBytes::from_string(metadata));
        partition
            .clone()
            .with_partition_index(index)
            .with_committed_metadata(metadata)
    };
    req.topics[0].partitions = vec![
        with(0, "x".repeat(4_096)),
        with(1, "x".repeat(4_097)),
        with(2, "é".repeat(4_096)),
    ];
    let response = groups.offset_commit(&req, 9, |_| true);
    let codes: Vec<i16> = response.topics[0]
        .partitions
        .iter()
        .map(|each| each.error_code)
        .collect();
    assert_eq!(codes, [0, E::OffsetMetadataTooLarge.code(), 0]);
    assert_eq!(fetched(&groups, false).metadata.unwrap().len(), 4_096);
}

#[tokio::test(start_paused = true)]
async fn a_topic_the_member_does_not_read_is_taken_and_one_that_is_missing_refused() {
    let groups = groups();
    let id = alone(&groups).await;
    let mut req = commit_request(&id, 1, 5);
    req.topics[0].name = TopicName(text("not.subscribed"));
    assert_eq!(commit(&groups, &req), 0);
    req.topics[0].name = TopicName(text("missing"));
    assert_eq!(commit(&groups, &req), E::UnknownTopicOrPartition.code());
}

#[tokio::test(start_paused = true)]
async fn offsets_in_a_transaction_count_when_it_commits() {
    let groups = groups();
    commit(&groups, &commit_request("", -1, 1));
    assert_eq!(txn_commit(&groups, &txn_commit_request(9, 2)), 0);
    assert_eq!(offset(&groups), 1);
    assert_eq!(fetched(&groups, true).error_code, E::UnstableOffsetCommit.code());
    groups.complete_transaction(9, &["g".to_owned()], true).unwrap();
    assert_eq!(fetched(&groups, true).committed_offset, 2);
    groups.complete_transaction(9, &["g".to_owned()], true).unwrap();
    assert_eq!(offset(&groups), 2);
}

#[tokio::test(start_paused = true)]
async fn offsets_in_a_transaction_are_gone_when_it_aborts() {
    let groups = groups();
    txn_commit(&groups, &txn_commit_request(9, 2));
    groups.complete_transaction(9, &["g".to_owned()], false).unwrap();
    assert_eq!((offset(&groups), fetched(&groups, true).error_code), (-1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_plain_commit_after_one_held_by_a_transaction_outlives_it() {
    let groups = groups();
    txn_commit(&groups, &txn_commit_request(9, 2));
    commit(&groups, &commit_request("", -1, 5));
    groups.complete_transaction(9, &["g".to_owned()], true).unwrap();
    assert_eq!(offset(&groups), 5);
}

#[tokio::test(start_paused = true)]
async fn a_transactional_commit_is_fenced_by_member_and_generation_unless_it_names_neither() {
    let groups = groups();
    let id = alone(&groups).await;
    let as_member = |id: &str, generation| {
        txn_commit_request(9, 5)
            .with_member_id(text(id))
            .with_generation_id(generation)
    };
    assert_eq!(txn_commit(&groups, &as_member(&id, 1)), 0);
    assert_eq!(
        txn_commit(&groups, &as_member(&id, 0)),
        E::IllegalGeneration.code()
    );
    assert_eq!(
        txn_commit(&groups, &as_member("ghost", 1)),
        E::UnknownMemberId.code()
    );
    assert_eq!(txn_commit(&groups, &as_member("", -1)), 0);
    let unknown = as_member(&id, 1).with_group_id(group_id("none"));
    assert_eq!(txn_commit(&groups, &unknown), E::IllegalGeneration.code());
    let nameless = as_member("", -1).with_group_id(group_id(""));
    assert_eq!(txn_commit(&groups, &nameless), E::InvalidGroupId.code());
}

#[tokio::test(start_paused = true)]
async fn all_topics_of_a_group_come_back_where_none_is_named() {
    let groups = groups();
    commit(&groups, &commit_request("", -1, 1));
    let old = OffsetFetchRequest::default()
        .with_group_id(group_id("g"))
        .with_topics(None);
    assert_eq!(
        groups.offset_fetch(&old, 7).topics[0].partitions[0].committed_offset,
        1
    );
    let of = |id| {
        OffsetFetchRequestGroup::default()
            .with_group_id(group_id(id))
            .with_topics(None)
    };
    let new = OffsetFetchRequest::default().with_groups(vec![of("g"), of("none")]);
    let response = groups.offset_fetch(&new, 8);
    assert_eq!(response.groups[0].topics[0].partitions[0].committed_offset, 1);
    assert_eq!(
        (response.groups[1].error_code, response.groups[1].topics.len()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_never_committed_is_minus_one_without_an_error() {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partition_indexes(vec![4]);
    let req = OffsetFetchRequest::default()
        .with_group_id(group_id("none"))
        .with_topics(Some(vec![topic]));
    let response = groups().offset_fetch(&req, 5);
    let found = &response.topics[0].partitions[0];
    assert_eq!(
        (
            found.committed_offset,
            found.committed_leader_epoch,
            found.error_code
        ),
        (-1, -1, 0)
    );
    assert_eq!(found.metadata, Some(text("")));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_takes_its_offsets_along() {
    let groups = groups();
    commit(&groups, &commit_request("", -1, 1));
    txn_commit(&groups, &txn_commit_request(9, 2));
    groups.topic_deleted("orders").unwrap();
    groups.complete_transaction(9, &["g".to_owned()], true).unwrap();
    assert_eq!(offset(&groups), -1);
}
