//! On real Apache Kafka: what is published comes back byte for byte.

use std::time::Duration;

use bytes::Bytes;
use redrive_core::headers::Headers;
use redrive_core::{Origin, Timestamp};
use redrive_kafka::{Outgoing, Publisher, Publishing, Reader, Settings};
use redrive_testkit::{kafka, new_topic_with};

#[tokio::test]
async fn a_record_with_headers_comes_back_as_it_was() {
    let Some(cluster) = kafka() else { return };
    let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
    // Kept for ever: retention would remove so old a record at any moment.
    let topic = new_topic_with(&cluster, "round-trip", 3, &[("retention.ms", "-1")]).await;
    let headers = Headers::from_iter([
        ("trace", Some(Bytes::from_static(b"1"))),
        ("binary", Some(Bytes::from_static(&[0, 0xff, 0xfe]))),
        ("trace", Some(Bytes::from_static(b"2"))),
        ("empty", Some(Bytes::new())),
        ("null", None),
    ]);
    let outgoing = Outgoing {
        topic: topic.parse().unwrap(),
        partition: Some(2),
        timestamp: Some(Timestamp::from_millis(1_700_000_000_123)),
        key: Some(Bytes::from_static(b"key")),
        value: Some(Bytes::from_static(b"value")),
        headers,
    };
    let tombstone =
        Outgoing { value: None, key: Some(Bytes::new()), headers: Headers::default(), ..outgoing.clone() };

    let publisher = Publisher::new(&settings, &Publishing::default()).unwrap();
    let first = publisher.publish(outgoing.clone()).await.unwrap();
    let second = publisher.publish(tombstone).await.unwrap();
    assert_eq!(first, Origin { topic: outgoing.topic.clone(), partition: 2, offset: 0 });

    let reader = Reader::from(&settings, first.clone()).unwrap();
    let deadline = Duration::from_secs(30);
    let record = tokio::time::timeout(deadline, reader.next()).await.expect("a record in time").unwrap();
    assert_eq!((record.at, record.timestamp), (first, outgoing.timestamp));
    assert_eq!((record.key, record.value, record.headers), (outgoing.key, outgoing.value, outgoing.headers));
    let record = tokio::time::timeout(deadline, reader.next()).await.expect("a record in time").unwrap();
    assert_eq!((record.at, record.key, record.value), (second, Some(Bytes::new()), None));
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_named() {
    let Some(cluster) = kafka() else { return };
    let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
    let publishing = Publishing { timeout: Duration::from_secs(2), ..Publishing::default() };
    let outgoing = Outgoing {
        topic: "no-such-topic".parse().unwrap(),
        partition: Some(0),
        timestamp: None,
        key: None,
        value: None,
        headers: Headers::default(),
    };
    let error = Publisher::new(&settings, &publishing).unwrap().publish(outgoing).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot publish to no-such-topic: there is no such topic");
}
