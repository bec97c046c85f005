//! Topic ids: stable while a topic lives, new when it is made anew, and as good as the name.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_topic_partitions_request::TopicRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeTopicPartitionsRequest, FetchRequest, MetadataRequest,
};
use redrive_conformance::{Connection, Target, deliver_all, error, eventually, on_both, topic_name};
use uuid::Uuid;

on_both!(
    the_id_is_the_same_wherever_it_is_asked_for,
    a_topic_made_anew_has_a_new_id,
    a_topic_is_found_by_its_id,
    records_are_fetched_by_id_and_only_by_the_right_one,
);

fn metadata(connection: &mut Connection, topic: MetadataRequestTopic) -> MetadataResponseTopic {
    let request =
        MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
    connection.ask(&request, 12).topics.remove(0)
}

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}

fn identified(id: Uuid) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(None).with_topic_id(id)
}

fn create(connection: &mut Connection, name: &str) -> Option<Uuid> {
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(2)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
    let made = connection.ask(&request, 7).topics.remove(0);
    (made.error_code == 0).then_some(made.topic_id)
}

fn the_id_is_the_same_wherever_it_is_asked_for(broker: &Target) {
    let (mut connection, name) = (broker.connect(), broker.name("id"));
    let id = create(&mut connection, &name).expect("a topic");
    assert_ne!(id, Uuid::nil());
    broker.wait_for(&name, 2);
    assert_eq!(metadata(&mut connection, named(&name)).topic_id, id);

    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(vec![TopicRequest::default().with_name(topic_name(&name))]);
    let described = connection.ask(&request, 0).topics.remove(0);
    assert_eq!((described.error_code, described.topic_id), (0, id));
    let partitions: Vec<_> = described.partitions.iter().map(|partition| partition.partition_index).collect();
    assert_eq!(partitions, [0, 1]);

    let absent = TopicRequest::default().with_name(topic_name(&broker.name("absent")));
    let answer = connection.ask(&DescribeTopicPartitionsRequest::default().with_topics(vec![absent]), 0);
    assert_eq!(error(answer.topics[0].error_code), Some(ResponseError::UnknownTopicOrPartition));
}

fn a_topic_made_anew_has_a_new_id(broker: &Target) {
    let (mut connection, name) = (broker.connect(), broker.name("anew-id"));
    let first = create(&mut connection, &name).expect("a topic");
    broker.wait_for(&name, 2);
    let state = DeleteTopicState::default().with_name(None).with_topic_id(first);
    let gone =
        connection.ask(&DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(10_000), 6);
    assert_eq!((gone.responses[0].error_code, gone.responses[0].topic_id), (0, first));
    let second = eventually("the name is free", || create(&mut connection, &name));
    assert_ne!(first, second);
    broker.wait_for(&name, 2);
    eventually("the new id is known", || {
        (metadata(&mut connection, named(&name)).topic_id == second).then_some(())
    });
    let old = metadata(&mut connection, identified(first));
    assert_eq!(error(old.error_code), Some(ResponseError::UnknownTopicId));
    let state = DeleteTopicState::default().with_name(None).with_topic_id(first);
    let again = DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(10_000);
    let refused = error(connection.ask(&again, 6).responses[0].error_code);
    assert_eq!(refused, Some(ResponseError::UnknownTopicId));
}

fn a_topic_is_found_by_its_id(broker: &Target) {
    let (mut connection, topic) = (broker.connect(), broker.topic("by-id", 3));
    let id = metadata(&mut connection, named(&topic)).topic_id;
    let found = metadata(&mut connection, identified(id));
    assert_eq!((found.error_code, found.name, found.partitions.len()), (0, Some(topic_name(&topic)), 3));
    let nobodys = metadata(&mut connection, identified(Uuid::from_u128(4)));
    assert_eq!(error(nobodys.error_code), Some(ResponseError::UnknownTopicId));
}

fn records_are_fetched_by_id_and_only_by_the_right_one(broker: &Target) {
    let (mut connection, topic) = (broker.connect(), broker.topic("fetch-by-id", 1));
    deliver_all(&broker.producer(&[]), &topic, 0, ["value"]);
    let id = metadata(&mut connection, named(&topic)).topic_id;
    let fetch = |id| {
        let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic_id(id).with_partitions(vec![partition]);
        FetchRequest::default().with_max_wait_ms(100).with_min_bytes(1).with_topics(vec![topic])
    };
    let answer = connection.ask(&fetch(id), 13);
    let partition = &answer.responses[0].partitions[0];
    assert_eq!((partition.error_code, partition.high_watermark), (0, 1));
    assert!(partition.records.as_ref().is_some_and(|records| !records.is_empty()));
    let answer = connection.ask(&fetch(Uuid::from_u128(4)), 13);
    assert_eq!(error(answer.responses[0].partitions[0].error_code), Some(ResponseError::UnknownTopicId));
}
