//! Fetch sessions and leader epochs: what newer clients add to a fetch.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{FetchRequest, ListOffsetsRequest};
use redrive_conformance::{Target, deliver_all, error, on_both, topic_name};

on_both!(
    a_client_that_offers_a_session_gets_all_records_with_one_or_without,
    a_session_that_is_not_known_is_refused,
    a_leader_epoch_that_is_not_the_present_one_is_refused,
    partitions_of_one_fetch_are_limited_together,
);

fn fetch(topic: &str, partition: FetchPartition) -> FetchRequest {
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    FetchRequest::default().with_max_wait_ms(100).with_min_bytes(1).with_topics(vec![topic])
}

fn from(offset: i64) -> FetchPartition {
    FetchPartition::default().with_partition(0).with_fetch_offset(offset).with_partition_max_bytes(1 << 20)
}

fn a_client_that_offers_a_session_gets_all_records_with_one_or_without(broker: &Target) {
    let topic = broker.topic("session", 1);
    let producer = broker.producer(&[]);
    deliver_all(&producer, &topic, 0, ["one"]);
    let mut connection = broker.connect();
    let first = connection.ask(&fetch(&topic, from(0)).with_session_epoch(0), 12);
    assert_eq!((first.error_code, first.responses[0].partitions[0].high_watermark), (0, 1));
    deliver_all(&producer, &topic, 0, ["two"]);
    let next = match first.session_id {
        // A broker may do without: then every fetch names all it wants.
        0 => fetch(&topic, from(1)).with_session_epoch(0),
        id => fetch(&topic, from(1)).with_session_id(id).with_session_epoch(1),
    };
    let second = connection.ask(&next, 12);
    assert_eq!((second.error_code, second.session_id), (0, first.session_id));
    let partition = &second.responses[0].partitions[0];
    assert_eq!((partition.error_code, partition.high_watermark), (0, 2));
    assert!(partition.records.as_ref().is_some_and(|records| !records.is_empty()));
}

fn a_session_that_is_not_known_is_refused(broker: &Target) {
    let topic = broker.topic("no-session", 1);
    let request = fetch(&topic, from(0)).with_session_id(123_456_789).with_session_epoch(1);
    let answer = broker.connect().ask(&request, 12);
    assert_eq!(error(answer.error_code), Some(ResponseError::FetchSessionIdNotFound));
}

fn a_leader_epoch_that_is_not_the_present_one_is_refused(broker: &Target) {
    let topic = broker.topic("epoch", 1);
    deliver_all(&broker.producer(&[]), &topic, 0, ["one"]);
    let mut connection = broker.connect();
    let answer = connection.ask(&fetch(&topic, from(0).with_current_leader_epoch(7)), 12);
    assert_eq!(error(answer.responses[0].partitions[0].error_code), Some(ResponseError::UnknownLeaderEpoch));
    let answer = connection.ask(&fetch(&topic, from(0).with_current_leader_epoch(0)), 12);
    assert_eq!(answer.responses[0].partitions[0].error_code, 0);
    let partition = ListOffsetsPartition::default().with_timestamp(-1).with_current_leader_epoch(7);
    let wanted = ListOffsetsTopic::default().with_name(topic_name(&topic)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![wanted]);
    let answer = connection.ask(&request, 7);
    assert_eq!(error(answer.topics[0].partitions[0].error_code), Some(ResponseError::UnknownLeaderEpoch));
}

fn partitions_of_one_fetch_are_limited_together(broker: &Target) {
    let topic = broker.topic("together", 3);
    let producer = broker.producer(&[("linger.ms", "0")]);
    let value = "x".repeat(100_000);
    for partition in 0..3 {
        deliver_all(&producer, &topic, partition, [&value]);
    }
    let partitions = (0..3).map(|partition| from(0).with_partition(partition)).collect();
    let wanted = FetchTopic::default().with_topic(topic_name(&topic)).with_partitions(partitions);
    let request = FetchRequest::default().with_max_wait_ms(100).with_min_bytes(1).with_topics(vec![wanted]);
    let sizes = |max_bytes| {
        let answer = broker.connect().ask(&request.clone().with_max_bytes(max_bytes), 12);
        let size = |partition: &kafka_protocol::messages::fetch_response::PartitionData| {
            partition.records.as_ref().map_or(0, bytes::Bytes::len)
        };
        let mut sizes: Vec<_> = answer.responses[0].partitions.iter().map(size).collect();
        sizes.retain(|size| *size > 0);
        sizes.len()
    };
    assert_eq!(sizes(1 << 20), 3);
    assert_eq!(sizes(1_000), 1, "only the first batch comes above the limit");
}
