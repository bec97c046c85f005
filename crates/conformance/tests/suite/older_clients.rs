//! Older versions of requests, as older clients send them, and what was said in them otherwise.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::{
    CreateTopicsRequest, InitProducerIdRequest, LeaveGroupRequest, MetadataRequest, OffsetFetchRequest,
    SyncGroupRequest,
};
use redrive_conformance::{
    Target, Voice, error, group_id, joining, on_both, text, topic_name, transactional_id,
};

on_both!(
    metadata_of_all_topics_is_an_empty_list_at_first_and_null_later,
    members_of_old_join_without_an_id_and_leave_by_it,
    all_offsets_of_a_group_are_fetched_at_once,
    several_groups_are_asked_for_in_one_request,
    a_topic_is_made_with_replicas_placed_by_hand,
    a_topic_named_twice_in_one_request_is_refused,
    a_producer_raises_its_own_epoch,
);

fn metadata_of_all_topics_is_an_empty_list_at_first_and_null_later(broker: &Target) {
    let topic = broker.topic("all", 1);
    let mut connection = broker.connect();
    let mut listed = |topics, version| {
        let answer = connection.ask(&MetadataRequest::default().with_topics(topics), version);
        answer.topics.iter().any(|listed| listed.name.as_ref() == Some(&topic_name(&topic)))
    };
    assert!(listed(Some(Vec::new()), 0));
    assert!(listed(None, 1));
    assert!(!listed(Some(Vec::new()), 1));
    assert!(listed(None, 12));
    assert!(!listed(Some(Vec::new()), 12));
}

fn members_of_old_join_without_an_id_and_leave_by_it(broker: &Target) {
    let (topic, group) = (broker.topic("old", 1), broker.name("old"));
    let mut connection = broker.group_coordinator(&group);
    let joined = connection.ask(&joining(&group, &topic, &text("")), 2);
    assert_eq!((joined.error_code, &joined.leader, joined.members.len()), (0, &joined.member_id, 1));
    let late = SyncGroupRequest::default()
        .with_group_id(group_id(&group))
        .with_generation_id(joined.generation_id + 1)
        .with_member_id(joined.member_id.clone());
    assert_eq!(error(connection.ask(&late, 1).error_code), Some(ResponseError::IllegalGeneration));
    assert_eq!(connection.sync(&group, &joined), None);
    let voice = Voice { member: joined.member_id.clone(), generation: joined.generation_id };
    assert_eq!(connection.heartbeat(&group, &voice), None);
    let leave = LeaveGroupRequest::default().with_group_id(group_id(&group)).with_member_id(joined.member_id);
    assert_eq!(error(connection.ask(&leave, 1).error_code), None);
    assert_eq!(connection.heartbeat(&group, &voice), Some(ResponseError::UnknownMemberId));
    assert_eq!(error(connection.ask(&leave, 1).error_code), Some(ResponseError::UnknownMemberId));
}

fn all_offsets_of_a_group_are_fetched_at_once(broker: &Target) {
    let (one, two, group) = (broker.topic("one", 2), broker.topic("two", 1), broker.name("all"));
    let mut connection = broker.group_coordinator(&group);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&one, 2), 3, Some("n")), [None, None]);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&two, 1), 4, None), [None]);
    let request = OffsetFetchRequest::default().with_group_id(group_id(&group)).with_topics(None);
    let answer = connection.ask(&request, 7);
    let mut found: Vec<_> = answer
        .topics
        .iter()
        .flat_map(|topic| {
            topic.partitions.iter().map(|p| (topic.name.0.to_string(), p.partition_index, p.committed_offset))
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(one.clone(), 0, 3), (one, 1, 3), (two, 0, 4)]);
}

fn several_groups_are_asked_for_in_one_request(broker: &Target) {
    let (topic, one, two) = (broker.topic("batched", 1), broker.name("one"), broker.name("two"));
    let mut connection = broker.group_coordinator(&one);
    let _ready = broker.group_coordinator(&two);
    assert_eq!(connection.commit((&one, &Voice::outsider()), (&topic, 1), 3, None), [None]);
    let group = |name: &str| {
        let topic =
            OffsetFetchRequestTopics::default().with_name(topic_name(&topic)).with_partition_indexes(vec![0]);
        OffsetFetchRequestGroup::default().with_group_id(group_id(name)).with_topics(Some(vec![topic]))
    };
    let request = OffsetFetchRequest::default().with_groups(vec![group(&one), group(&two)]);
    let answer = connection.ask(&request, 8);
    let found: Vec<_> = answer
        .groups
        .iter()
        .map(|group| (group.error_code, group.topics[0].partitions[0].committed_offset))
        .collect();
    assert_eq!(found, [(0, 3), (0, -1)]);
}

fn a_topic_is_made_with_replicas_placed_by_hand(broker: &Target) {
    let mut connection = broker.connect();
    let node =
        connection.ask(&MetadataRequest::default().with_topics(Some(Vec::new())), 12).brokers[0].node_id;
    let mut create = |name: &str, nodes: &[i32]| {
        let place = |(index, node): (usize, &i32)| {
            CreatableReplicaAssignment::default()
                .with_partition_index(i32::try_from(index).expect("few"))
                .with_broker_ids(vec![(*node).into()])
        };
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(nodes.iter().enumerate().map(place).collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        error(connection.ask(&request, 7).topics[0].error_code)
    };
    let name = broker.name("placed");
    assert_eq!(create(&name, &[node.0, node.0]), None);
    broker.wait_for(&name, 2);
    assert_eq!(create(&broker.name("nowhere"), &[99]), Some(ResponseError::InvalidReplicaAssignment));
}

fn a_topic_named_twice_in_one_request_is_refused(broker: &Target) {
    let name = broker.name("double");
    let topic = CreatableTopic::default()
        .with_name(topic_name(&name))
        .with_num_partitions(1)
        .with_replication_factor(1);
    let request =
        CreateTopicsRequest::default().with_topics(vec![topic.clone(), topic]).with_timeout_ms(10_000);
    let answer = broker.connect().ask(&request, 7);
    assert!(!answer.topics.is_empty());
    for topic in &answer.topics {
        assert_eq!(error(topic.error_code), Some(ResponseError::InvalidRequest));
    }
}

fn a_producer_raises_its_own_epoch(broker: &Target) {
    let mut producer = broker.hand_producer(&broker.name("raise"));
    let mut raise = |epoch| {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(transactional_id(&producer.id)))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(producer.producer)
            .with_producer_epoch(epoch);
        let answer = producer.connection.ask(&request, 4);
        (error(answer.error_code), answer.producer_id, answer.producer_epoch)
    };
    let (epoch, id) = (producer.epoch, producer.producer);
    assert_eq!(raise(epoch), (None, id, epoch + 1));
    assert_eq!(raise(epoch), (None, id, epoch + 1), "the answer was lost");
    assert_eq!(raise(epoch + 1), (None, id, epoch + 2));
    assert_eq!(raise(epoch).0, Some(ResponseError::ProducerFenced));
}
