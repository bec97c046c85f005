use kafka_protocol::error::ResponseError as E;
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest, OffsetDeleteRequest,
};

use super::*;

fn listed(groups: &Groups, states: &[&str], types: &[&str]) -> Vec<(String, String)> {
    let names = |of: &[&str]| of.iter().map(|name| text(name)).collect();
    let req = ListGroupsRequest::default()
        .with_states_filter(names(states))
        .with_types_filter(names(types));
    let response = groups.list(&req);
    response
        .groups
        .iter()
        .map(|group| (group.group_id.to_string(), group.group_state.to_string()))
        .collect()
}

fn described(
    groups: &Groups,
    id: &str,
    version: i16,
) -> kafka_protocol::messages::describe_groups_response::DescribedGroup {
    groups
        .describe(
            &DescribeGroupsRequest::default().with_groups(vec![group_id(id)]),
            version,
        )
        .groups[0]
        .clone()
}

fn deleted(groups: &Groups, id: &str) -> i16 {
    groups
        .delete(&DeleteGroupsRequest::default().with_groups_names(vec![group_id(id)]))
        .results[0]
        .error_code
}

fn offset_deleted(groups: &Groups, topic: &str) -> (i16, Option<i16>) {
    let topic = OffsetDeleteRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partitions(vec![OffsetDeleteRequestPartition::default()]);
    let req = OffsetDeleteRequest::default()
        .with_group_id(group_id("g"))
        .with_topics(vec![topic]);
    let response = groups.offset_delete(&req, |topic| topic != "missing");
    (
        response.error_code,
        response
            .topics
            .first()
            .map(|topic| topic.partitions[0].error_code),
    )
}

#[tokio::test(start_paused = true)]
async fn groups_are_listed_by_state_and_type_without_regard_to_case() {
    let groups = groups();
    alone(&groups).await;
    commit(
        &groups,
        &commit_request("", -1, 1).with_group_id(group_id("simple")),
    );
    let both = vec![
        ("g".to_owned(), "Stable".to_owned()),
        ("simple".to_owned(), "Empty".to_owned()),
    ];
    assert_eq!(listed(&groups, &[], &[]), both);
    assert_eq!(listed(&groups, &["stable"], &["Classic"]), both[..1]);
    assert_eq!(listed(&groups, &[], &["consumer"]), []);
    assert_eq!(listed(&groups, &["Dead"], &[]), []);
}

#[tokio::test(start_paused = true)]
async fn a_stable_group_is_described_with_what_its_members_read_and_got() {
    let groups = groups();
    let id = alone(&groups).await;
    let group = described(&groups, "g", 5);
    assert_eq!(
        (group.group_state.as_str(), group.protocol_data.as_str()),
        ("Stable", "range")
    );
    assert_eq!(group.authorized_operations, i32::MIN);
    let member = &group.members[0];
    assert_eq!(
        (member.member_id.as_str(), member.client_id.as_str()),
        (id.as_str(), "test")
    );
    assert_eq!(
        (member.client_host.as_str(), &member.member_assignment[..]),
        ("/127.0.0.1", &b"all"[..])
    );
    assert_eq!(member.member_metadata, subscription(&["orders"]));
}

#[tokio::test(start_paused = true)]
async fn authorized_operations_are_told_when_asked_for() {
    let req = DescribeGroupsRequest::default()
        .with_groups(vec![group_id("g")])
        .with_include_authorized_operations(true);
    assert_eq!(groups().describe(&req, 5).groups[0].authorized_operations, 3_400);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_exist_is_dead_and_later_not_found() {
    let groups = groups();
    let old = described(&groups, "none", 5);
    assert_eq!((old.error_code, old.group_state.as_str()), (0, "Dead"));
    let new = described(&groups, "none", 6);
    assert_eq!(
        (new.error_code, new.group_state.as_str()),
        (E::GroupIdNotFound.code(), "Dead")
    );
    assert!(new.error_message.unwrap().contains("none"));
}

#[tokio::test(start_paused = true)]
async fn only_an_empty_group_is_deleted_and_its_offsets_with_it() {
    let groups = groups();
    let id = alone(&groups).await;
    commit(&groups, &commit_request(&id, 1, 5));
    assert_eq!(deleted(&groups, "none"), E::GroupIdNotFound.code());
    assert_eq!(deleted(&groups, "g"), E::NonEmptyGroup.code());
    leave(&groups, &id, None);
    assert_eq!(deleted(&groups, "g"), 0);
    assert_eq!(offset(&groups), -1);
    assert_eq!(deleted(&groups, "g"), E::GroupIdNotFound.code());
}

#[tokio::test(start_paused = true)]
async fn offsets_are_deleted_unless_a_member_reads_the_topic() {
    let groups = groups();
    assert_eq!(
        offset_deleted(&groups, "orders"),
        (E::GroupIdNotFound.code(), None)
    );
    let id = alone(&groups).await;
    commit(&groups, &commit_request(&id, 1, 5));
    assert_eq!(
        offset_deleted(&groups, "orders"),
        (0, Some(E::GroupSubscribedToTopic.code()))
    );
    assert_eq!(offset_deleted(&groups, "other"), (0, Some(0)));
    assert_eq!(
        offset_deleted(&groups, "missing"),
        (0, Some(E::UnknownTopicOrPartition.code()))
    );
    leave(&groups, &id, None);
    assert_eq!(offset_deleted(&groups, "orders"), (0, Some(0)));
    assert_eq!(offset(&groups), -1);
}

#[tokio::test(start_paused = true)]
async fn offsets_of_members_that_are_no_consumers_are_not_deleted_under_them() {
    let groups = groups();
    let connect = join_request("").with_protocol_type(text("connect"));
    groups.join(&peer(), connect, 3).await;
    assert_eq!(offset_deleted(&groups, "orders"), (E::NonEmptyGroup.code(), None));
}
