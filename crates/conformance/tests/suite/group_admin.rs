//! Groups from outside: listed, described, emptied of offsets, deleted when nobody is in them.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::{DescribeGroupsRequest, ListGroupsRequest, OffsetDeleteRequest};
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use redrive_conformance::{
    Connection, PATIENCE, Target, Voice, error, group_id, on_both, settle, text, topic_name,
};

on_both!(
    a_group_is_listed_with_its_state_and_described_with_its_members,
    groups_are_listed_by_state,
    a_group_that_does_not_exist_is_described_as_such,
    only_an_empty_group_is_deleted,
    offsets_are_deleted_unless_the_group_subscribes_to_their_topic,
    the_offsets_of_a_deleted_topic_are_gone,
);

fn a_group_is_listed_with_its_state_and_described_with_its_members(broker: &Target) {
    let (topic, group) = (broker.topic("listed", 1), broker.name("listed"));
    let strategy = ("partition.assignment.strategy", "range");
    let member = broker.member(&group, &[("client.id", "the-client"), strategy]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let admin = broker.admin();
    let all = admin.inner().fetch_group_list(None, PATIENCE).expect("groups");
    let listed = all.groups().iter().find(|listed| listed.name() == group).expect("our group");
    assert_eq!((listed.state(), listed.protocol_type()), ("Stable", "consumer"));
    let described = admin.inner().fetch_group_list(Some(&group), PATIENCE).expect("our group");
    let described = &described.groups()[0];
    assert_eq!((described.state(), described.protocol(), described.members().len()), ("Stable", "range", 1));
    let only = &described.members()[0];
    assert_eq!(only.client_id(), "the-client");
    assert!(only.client_host().contains("127.0.0.1"), "{}", only.client_host());
    assert!(only.id().starts_with("the-client-"), "{}", only.id());
    assert!(only.metadata().is_some_and(|metadata| !metadata.is_empty()));
    assert!(only.assignment().is_some_and(|assignment| !assignment.is_empty()));
    drop(member);
    let described = admin.inner().fetch_group_list(Some(&group), PATIENCE).expect("our group");
    assert_eq!((described.groups()[0].state(), described.groups()[0].members().len()), ("Empty", 0));
}

fn groups_are_listed_by_state(broker: &Target) {
    let (topic, group) = (broker.topic("states", 1), broker.name("states"));
    let mut connection = broker.group_coordinator(&group);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&topic, 1), 1, None), [None]);
    let mut listed = |state: &str| {
        let answer = connection.ask(&ListGroupsRequest::default().with_states_filter(vec![text(state)]), 5);
        assert_eq!(answer.error_code, 0);
        let found = answer.groups.into_iter().find(|listed| listed.group_id == group_id(&group));
        found.map(|found| (found.group_state.to_string(), found.group_type.to_lowercase()))
    };
    assert_eq!(listed("Stable"), None);
    assert_eq!(listed("Empty"), Some(("Empty".to_owned(), "classic".to_owned())));
}

fn a_group_that_does_not_exist_is_described_as_such(broker: &Target) {
    let group = broker.name("nobody");
    let mut connection = broker.group_coordinator(&group);
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(&group)]);
    let older = connection.ask(&request, 5).groups.remove(0);
    assert_eq!((older.error_code, &*older.group_state), (0, "Dead"));
    let newer = connection.ask(&request, 6).groups.remove(0);
    assert_eq!(error(newer.error_code), Some(ResponseError::GroupIdNotFound));
    assert_eq!(&*newer.group_state, "Dead");
}

fn delete(broker: &Target, group: &str) -> Result<String, RDKafkaErrorCode> {
    let answer = broker.wait(broker.admin().delete_groups(&[group], &broker.options())).expect("an answer");
    answer.into_iter().next().expect("a result").map_err(|(_, code)| code)
}

fn only_an_empty_group_is_deleted(broker: &Target) {
    let (topic, group) = (broker.topic("doomed", 1), broker.name("doomed"));
    assert_eq!(delete(broker, &group), Err(RDKafkaErrorCode::GroupIdNotFound));
    let mut connection = broker.group_coordinator(&group);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&topic, 1), 5, None), [None]);
    let member = broker.member(&group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    assert_eq!(delete(broker, &group), Err(RDKafkaErrorCode::NonEmptyGroup));
    drop(member);
    assert_eq!(delete(broker, &group), Ok(group.clone()));
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, -1);
    assert_eq!(delete(broker, &group), Err(RDKafkaErrorCode::GroupIdNotFound));
}

fn delete_offset(
    connection: &mut Connection,
    group: &str,
    topic: &str,
) -> (Option<ResponseError>, Option<ResponseError>) {
    let partition = OffsetDeleteRequestPartition::default().with_partition_index(0);
    let topic =
        OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic]);
    let answer = connection.ask(&request, 0);
    let partition = answer.topics.first().and_then(|topic| error(topic.partitions[0].error_code));
    (error(answer.error_code), partition)
}

fn offsets_are_deleted_unless_the_group_subscribes_to_their_topic(broker: &Target) {
    let (topic, other, group) = (broker.topic("kept", 1), broker.topic("free", 1), broker.name("offsets"));
    let mut connection = broker.group_coordinator(&group);
    assert_eq!(delete_offset(&mut connection, &group, &topic), (Some(ResponseError::GroupIdNotFound), None));
    for name in [&topic, &other] {
        assert_eq!(connection.commit((&group, &Voice::outsider()), (name, 1), 5, Some("note")), [None]);
    }
    let member = broker.member(&group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let refused = delete_offset(&mut connection, &group, &topic);
    assert_eq!(refused, (None, Some(ResponseError::GroupSubscribedToTopic)));
    assert_eq!(delete_offset(&mut connection, &group, &other), (None, None));
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, 5);
    assert_eq!(connection.committed(&group, &other, false).committed_offset, -1);
    drop(member);
    assert_eq!(delete_offset(&mut connection, &group, &topic), (None, None));
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, -1);
}

fn the_offsets_of_a_deleted_topic_are_gone(broker: &Target) {
    let (topic, group) = (broker.topic("gone", 1), broker.name("gone"));
    let mut connection = broker.group_coordinator(&group);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&topic, 1), 5, None), [None]);
    broker.wait(broker.admin().delete_topics(&[&topic], &broker.options())).expect("an answer");
    redrive_conformance::eventually("the offset is gone", || {
        (connection.committed(&group, &topic, false).committed_offset == -1).then_some(())
    });
}
