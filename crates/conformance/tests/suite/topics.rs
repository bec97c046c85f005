//! Topics: made, refused, grown, removed, made anew.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::CreateTopicsRequest;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use rdkafka::admin::{NewPartitions, NewTopic, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::MetadataPartition;
use rdkafka::producer::FutureRecord;
use redrive_conformance::{
    PATIENCE, Target, deliver, deliver_all, error, eventually, on_both, topic_name, values,
};

on_both!(
    a_topic_has_the_partitions_it_was_made_with,
    a_second_topic_of_that_name_is_refused,
    names_that_no_topic_may_have_are_refused,
    a_name_that_differs_in_a_dot_and_an_underscore_is_refused,
    impossible_numbers_of_partitions_and_replicas_are_refused,
    a_topic_that_is_only_validated_is_not_made,
    partitions_are_added_and_never_taken_away,
    a_topic_made_anew_is_empty,
    what_is_not_there_cannot_be_removed_or_written_to,
);

fn create(broker: &Target, name: &str, partitions: i32) -> Result<String, RDKafkaErrorCode> {
    let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
    let made = broker.wait(broker.admin().create_topics([&topic], &broker.options())).expect("an answer");
    made.into_iter().next().expect("a result").map_err(|(_, code)| code)
}

fn delete(broker: &Target, name: &str) -> Result<String, RDKafkaErrorCode> {
    let gone = broker.wait(broker.admin().delete_topics(&[name], &broker.options())).expect("an answer");
    gone.into_iter().next().expect("a result").map_err(|(_, code)| code)
}

fn partitions(broker: &Target, topic: &str) -> usize {
    let metadata = broker.admin().inner().fetch_metadata(Some(topic), PATIENCE).expect("metadata");
    metadata.topics()[0].partitions().len()
}

fn a_topic_has_the_partitions_it_was_made_with(broker: &Target) {
    let topic = broker.topic("made", 7);
    let metadata = broker.admin().inner().fetch_metadata(Some(&topic), PATIENCE).expect("metadata");
    let mut ids: Vec<_> = metadata.topics()[0].partitions().iter().map(MetadataPartition::id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..7).collect::<Vec<_>>());
    for partition in metadata.topics()[0].partitions() {
        let leader = partition.leader();
        assert!(metadata.brokers().iter().any(|broker| broker.id() == leader));
        assert_eq!((partition.replicas(), partition.isr()), (&[leader][..], &[leader][..]));
    }
    let all = broker.admin().inner().fetch_metadata(None, PATIENCE).expect("metadata");
    assert!(all.topics().iter().any(|listed| listed.name() == topic), "not among all topics");
}

fn a_second_topic_of_that_name_is_refused(broker: &Target) {
    let topic = broker.topic("twice", 1);
    assert_eq!(create(broker, &topic, 1), Err(RDKafkaErrorCode::TopicAlreadyExists));
}

fn names_that_no_topic_may_have_are_refused(broker: &Target) {
    let (longest, longer) = ("n".repeat(249 - 40), "n".repeat(250));
    for name in [".", "..", "a b", "a/b", "naïve", "a:b", &longer] {
        assert_eq!(create(broker, name, 1), Err(RDKafkaErrorCode::InvalidTopic), "{name:?}");
    }
    let longest = format!("{longest}{:->40}", broker.name(""));
    assert_eq!(longest.len(), 249);
    assert_eq!(create(broker, &longest, 1), Ok(longest.clone()));
    assert_eq!(delete(broker, &longest), Ok(longest.clone()));
    // By hand: librdkafka does not send an empty name.
    assert_eq!(created_by_hand(broker, "", 1, 1), Some(ResponseError::InvalidTopicException));
}

fn a_name_that_differs_in_a_dot_and_an_underscore_is_refused(broker: &Target) {
    let name = broker.name("a.b");
    create(broker, &name, 1).expect("a topic");
    broker.wait_for(&name, 1);
    assert_eq!(create(broker, &name.replace('.', "_"), 1), Err(RDKafkaErrorCode::InvalidTopic));
}

fn created_by_hand(broker: &Target, name: &str, partitions: i32, replicas: i16) -> Option<ResponseError> {
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
    let answer = broker.connect().ask(&request, 7);
    error(answer.topics[0].error_code)
}

fn impossible_numbers_of_partitions_and_replicas_are_refused(broker: &Target) {
    let name = broker.name("impossible");
    assert_eq!(created_by_hand(broker, &name, 0, 1), Some(ResponseError::InvalidPartitions));
    assert_eq!(created_by_hand(broker, &name, -2, 1), Some(ResponseError::InvalidPartitions));
    assert_eq!(created_by_hand(broker, &name, 1, 0), Some(ResponseError::InvalidReplicationFactor));
    assert_eq!(created_by_hand(broker, &name, 1, 99), Some(ResponseError::InvalidReplicationFactor));
    // -1 leaves both to the broker.
    assert_eq!(created_by_hand(broker, &name, -1, -1), None);
}

fn a_topic_that_is_only_validated_is_not_made(broker: &Target) {
    let name = broker.name("validated");
    let topic = NewTopic::new(&name, 1, TopicReplication::Fixed(1));
    let options = broker.options().validate_only(true);
    let answer = broker.wait(broker.admin().create_topics([&topic], &options)).expect("an answer");
    assert_eq!(answer, [Ok(name.clone())]);
    assert_eq!(create(broker, &name, 1), Ok(name));
}

fn partitions_are_added_and_never_taken_away(broker: &Target) {
    let topic = broker.topic("grown", 2);
    let grow = |name: &str, count| {
        let wish = NewPartitions::new(name, count);
        let answer = broker.wait(broker.admin().create_partitions([&wish], &broker.options()));
        answer.expect("an answer").remove(0).map_err(|(_, code)| code)
    };
    assert_eq!(grow(&topic, 5), Ok(topic.clone()));
    broker.wait_for(&topic, 5);
    let sent = deliver(&broker.producer(&[]), FutureRecord::<(), _>::to(&topic).partition(4).payload("new"));
    assert_eq!(sent.expect("delivered").partition, 4);
    let wish = NewPartitions::new(&topic, 9);
    let only_asked = broker.options().validate_only(true);
    let answer = broker.wait(broker.admin().create_partitions([&wish], &only_asked)).expect("an answer");
    assert_eq!(answer, [Ok(topic.clone())]);
    for count in [5, 3] {
        assert_eq!(grow(&topic, count), Err(RDKafkaErrorCode::InvalidPartitions), "{count}");
    }
    assert_eq!(partitions(broker, &topic), 5);
    assert_eq!(grow(&broker.name("absent"), 3), Err(RDKafkaErrorCode::UnknownTopicOrPartition));
}

fn a_topic_made_anew_is_empty(broker: &Target) {
    let topic = broker.topic("anew", 1);
    deliver_all(&broker.producer(&[]), &topic, 0, ["old", "older"]);
    assert_eq!(broker.watermarks(&topic, 0), (0, 2));
    assert_eq!(delete(broker, &topic), Ok(topic.clone()));
    eventually("the name is free", || create(broker, &topic, 1).ok());
    broker.wait_for(&topic, 1);
    eventually("an empty log", || (broker.watermarks(&topic, 0) == (0, 0)).then_some(()));
    deliver_all(&broker.producer(&[]), &topic, 0, ["new"]);
    assert_eq!(values(&broker.read(&topic, 0, "read_uncommitted")), ["new"]);
}

fn what_is_not_there_cannot_be_removed_or_written_to(broker: &Target) {
    let name = broker.name("absent");
    assert_eq!(delete(broker, &name), Err(RDKafkaErrorCode::UnknownTopicOrPartition));
    let producer = broker.producer(&[("topic.metadata.propagation.max.ms", "200")]);
    let sent = deliver(&producer, FutureRecord::<(), _>::to(&name).payload("x"));
    assert!(
        matches!(sent, Err(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition)),
        "{sent:?}"
    );
    let topic = broker.topic("small", 1);
    let sent = deliver(&producer, FutureRecord::<(), _>::to(&topic).partition(1).payload("x"));
    assert_eq!(sent, Err(RDKafkaErrorCode::UnknownPartition));
}
