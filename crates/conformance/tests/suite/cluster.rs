//! The cluster itself: who is in it, who coordinates, what it speaks, and what garbage does to it.

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, FindCoordinatorRequest,
    OffsetForLeaderEpochRequest,
};
use kafka_protocol::protocol::Decodable;
use redrive_conformance::{PATIENCE, Target, deliver_all, error, on_both, text, topic_name};

on_both!(
    the_cluster_describes_itself,
    every_coordinator_is_found_at_once,
    a_version_that_is_not_spoken_is_answered_with_those_that_are,
    garbage_ends_its_connection_alone,
    the_end_of_an_epoch_is_the_end_of_the_log,
);

fn the_cluster_describes_itself(broker: &Target) {
    let answer = broker.connect().ask(&DescribeClusterRequest::default(), 0);
    assert_eq!(answer.error_code, 0);
    assert!(answer.brokers.iter().any(|broker| broker.broker_id == answer.controller_id));
    let id = broker.admin().inner().fetch_cluster_id(PATIENCE).expect("a cluster id");
    assert_eq!(*answer.cluster_id, *id);
}

fn every_coordinator_is_found_at_once(broker: &Target) {
    let _ready = (broker.group_coordinator("test-a"), broker.transaction_coordinator("test-a"));
    for kind in [0, 1] {
        let keys = vec![text("test-a"), text("test-b")];
        let request = FindCoordinatorRequest::default().with_key_type(kind).with_coordinator_keys(keys);
        let found = broker.connect().ask(&request, 4).coordinators;
        assert_eq!(found.iter().map(|found| &*found.key).collect::<Vec<_>>(), ["test-a", "test-b"]);
        assert!(found.iter().all(|found| found.error_code == 0 && found.port > 0));
    }
}

fn a_version_that_is_not_spoken_is_answered_with_those_that_are(broker: &Target) {
    let mut connection = broker.connect();
    // ApiVersions in version 99, correlation 7, no client id: the answer is in version 0.
    connection.send_frame(&[0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0, 0]);
    let mut answer: Bytes = connection.receive().expect("an answer");
    assert_eq!(answer.get_i32(), 7);
    let answer = ApiVersionsResponse::decode(&mut answer, 0).expect("version 0");
    assert_eq!(error(answer.error_code), Some(ResponseError::UnsupportedVersion));
    assert!(answer.api_keys.iter().any(|api| api.api_key == 18), "it tells its versions");
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("suite"))
        .with_client_software_version(text("1"));
    assert_eq!(connection.ask(&request, 3).error_code, 0, "the connection goes on");
}

fn garbage_ends_its_connection_alone(broker: &Target) {
    let topic = broker.topic("garbage", 1);
    let producer = broker.producer(&[]);
    deliver_all(&producer, &topic, 0, ["before"]);
    let mut whole = vec![0, 3, 0, 12, 0, 0, 0, 1, 0, 1, b'c', 0];
    whole.extend([0xee; 40]);
    for frame in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 64],
        &[0, 0, 0, 1, 0],
        &[0, 99, 0, 0, 0, 0, 0, 1, 0, 0],
        &whole,
    ] {
        let mut connection = broker.connect();
        connection.send_frame(frame);
        assert!(connection.receive().is_err(), "an answer to {frame:?}");
    }
    for size in [i32::MAX, -1] {
        let mut connection = broker.connect();
        connection.send_bytes(&size.to_be_bytes());
        connection.send_bytes(b"and some bytes");
        assert!(connection.receive().is_err(), "an answer to a frame of {size} bytes");
    }
    deliver_all(&producer, &topic, 0, ["after"]);
    assert_eq!(broker.watermarks(&topic, 0), (0, 2));
}

fn the_end_of_an_epoch_is_the_end_of_the_log(broker: &Target) {
    let topic = broker.topic("leader-epoch", 1);
    deliver_all(&broker.producer(&[]), &topic, 0, ["a", "b", "c"]);
    let end = |epoch, current| {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_leader_epoch(epoch)
            .with_current_leader_epoch(current);
        let topic =
            OffsetForLeaderTopic::default().with_topic(topic_name(&topic)).with_partitions(vec![partition]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]);
        let found = broker.connect().ask(&request, 4).topics.remove(0).partitions.remove(0);
        (error(found.error_code), found.leader_epoch, found.end_offset)
    };
    assert_eq!(end(0, -1), (None, 0, 3));
    assert_eq!(end(5, -1), (None, -1, -1), "an epoch that has not been");
    assert_eq!(end(0, 5).0, Some(ResponseError::UnknownLeaderEpoch));
}
