//! Faults on order, as a client meets them.

use kafka_protocol::messages::{MetadataRequest, ProduceRequest};
use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};
use redrive_broker::{Broker, BrokerConfig, Data};

use super::client::{Client, batch, broker, produce};

#[tokio::test]
async fn the_second_produce_fails_as_ordered_and_writes_nothing() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    broker
        .faults()
        .order(Fault::next(ApiKey::Produce, Effect::Fail(ResponseError::NotLeaderOrFollower)).nth(2));
    let mut got = Vec::new();
    for _ in 0..3 {
        let response = client.produce("t", batch("x")).await;
        got.push(response.responses[0].partition_responses[0].error_code);
    }
    assert_eq!(got, [0, ResponseError::NotLeaderOrFollower.code(), 0]);
    assert_eq!(
        client.fetch("t", 0, 0).await.responses[0].partitions[0].high_watermark,
        2
    );
    assert_eq!(broker.faults().waiting(), 0);
}

#[tokio::test]
async fn an_unanswered_request_is_done_and_a_dropped_one_is_not() {
    for (effect, expected) in [(Effect::Unanswered, 1), (Effect::Drop, 0)] {
        let broker = broker().await;
        let mut client = Client::connect(&broker).await;
        client.create("t").await;
        broker.faults().order(Fault::next(ApiKey::Produce, effect));
        client.send(&produce("t", batch("x"), -1), 9).await;
        assert!(
            client.receive::<ProduceRequest>(9).await.is_none(),
            "no answer comes"
        );
        let mut client = Client::connect(&broker).await;
        let fetched = client.fetch("t", 0, 0).await;
        assert_eq!(
            fetched.responses[0].partitions[0].high_watermark, expected,
            "{effect:?}"
        );
    }
}

#[tokio::test]
async fn a_frozen_broker_answers_when_it_thaws() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    broker.faults().freeze();
    client.send(&MetadataRequest::default(), 12).await;
    broker.faults().thaw();
    assert!(client.receive::<MetadataRequest>(12).await.is_some());
}

#[tokio::test]
async fn closed_connections_can_be_made_again() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    broker.close_connections();
    assert!(client.frame().await.is_none());
    let mut client = Client::connect(&broker).await;
    assert_eq!(
        client.fetch("t", 0, 0).await.responses[0].partitions[0].error_code,
        0
    );
}

#[tokio::test]
async fn a_broker_restarted_in_place_has_its_address_and_its_data() {
    let dir = tempfile::tempdir().unwrap();
    for data in [Data::Memory, Data::Dir(dir.path().to_owned())] {
        let mut broker = Broker::start(BrokerConfig {
            data,
            ..BrokerConfig::default()
        })
        .await
        .unwrap();
        let address = broker.address();
        let mut client = Client::connect(&broker).await;
        client.create("t").await;
        client.produce("t", batch("x")).await;
        broker.restart().await.unwrap();
        assert_eq!(broker.address(), address);
        assert!(client.frame().await.is_none(), "old connections are gone");
        let mut client = Client::connect(&broker).await;
        assert_eq!(
            client.fetch("t", 0, 0).await.responses[0].partitions[0].high_watermark,
            1
        );
        broker.shutdown().await;
    }
}
