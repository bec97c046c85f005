//! The order of answers, and who waits for whom.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{FetchRequest, HeartbeatRequest, MetadataRequest, ProduceRequest};

use super::client::{Client, batch, broker, fetch, produce};

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(client.send(&produce("t", batch("x"), -1), 9).await);
    }
    for (offset, id) in ids.into_iter().enumerate() {
        let (answered, response) = client.receive::<ProduceRequest>(9).await.unwrap();
        assert_eq!(answered, id);
        assert_eq!(
            response.responses[0].partition_responses[0].base_offset,
            offset as i64
        );
    }
}

#[tokio::test]
async fn a_waiting_fetch_blocks_no_other_connection_and_is_woken_by_an_append() {
    let broker = broker().await;
    let (mut reader, mut writer) = (Client::connect(&broker).await, Client::connect(&broker).await);
    writer.create("t").await;
    reader.send(&fetch("t", 0, 600_000), 11).await;
    writer.call(&MetadataRequest::default(), 12).await;
    writer.produce("t", batch("hello")).await;
    let (_, response) = reader.receive::<FetchRequest>(11).await.unwrap();
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.high_watermark, 1);
    assert!(
        partition
            .records
            .as_ref()
            .is_some_and(|records| records.ends_with(b"hello\0"))
    );
}

#[tokio::test]
async fn a_fetch_that_finds_nothing_is_answered_when_its_time_is_up() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let response = client.fetch("t", 0, 30).await;
    assert_eq!(
        response.responses[0].partitions[0]
            .records
            .as_ref()
            .map(bytes::Bytes::len),
        Some(0)
    );
    assert_eq!(response.session_id, 0);
}

#[tokio::test]
async fn a_fetch_past_the_end_is_out_of_range() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let response = client.fetch("t", 5, 600_000).await;
    assert_eq!(
        response.responses[0].partitions[0].error_code,
        ResponseError::OffsetOutOfRange.code()
    );
}

#[tokio::test]
async fn a_batch_without_acknowledgement_is_not_answered() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    client.send(&produce("t", batch("x"), 0), 9).await;
    let response = client.call(&HeartbeatRequest::default(), 4).await;
    assert_ne!(response.error_code, 0, "the next answer is the next request's");
    assert_eq!(
        client.fetch("t", 0, 0).await.responses[0].partitions[0].high_watermark,
        1
    );
}

#[tokio::test]
async fn deleting_a_topic_wakes_who_waits_for_it() {
    use kafka_protocol::messages::DeleteTopicsRequest;
    let broker = broker().await;
    let (mut reader, mut admin) = (Client::connect(&broker).await, Client::connect(&broker).await);
    admin.create("t").await;
    reader.send(&fetch("t", 0, 600_000), 11).await;
    // Whichever of the two comes first, the reader is told that there is no such topic.
    let names = vec![super::client::name("t")];
    admin
        .call(
            &DeleteTopicsRequest::default()
                .with_topic_names(names)
                .with_timeout_ms(1_000),
            5,
        )
        .await;
    let (_, response) = reader.receive::<FetchRequest>(11).await.unwrap();
    let error = response.responses[0].partitions[0].error_code;
    assert_eq!(error, ResponseError::UnknownTopicOrPartition.code());
}
