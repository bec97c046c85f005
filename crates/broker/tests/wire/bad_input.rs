//! Bad input ends that request or that connection, and nothing else.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};

use super::client::{Client, batch, broker, frame, produce};

/// Sends bytes on a connection of their own and expects it to close, then that the broker lives.
async fn is_cut_off(bytes: &[u8]) {
    let broker = broker().await;
    let mut bad = Client::connect(&broker).await;
    bad.raw(bytes).await;
    assert!(bad.frame().await.is_none(), "the connection stays open");
    let mut good = Client::connect(&broker).await;
    assert!(
        !good
            .call(&MetadataRequest::default(), 12)
            .await
            .brokers
            .is_empty()
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn a_frame_of_garbage_is_cut_off() {
    is_cut_off(b"\0\0\0\x10GET / HTTP/1.1\r\n").await;
}

#[tokio::test]
async fn a_length_of_two_gigabytes_is_cut_off() {
    is_cut_off(&[0x7f, 0xff, 0xff, 0xff]).await;
}

#[tokio::test]
async fn a_negative_length_is_cut_off() {
    is_cut_off(&[0xff, 0xff, 0xff, 0xfe]).await;
}

#[tokio::test]
async fn a_frame_without_room_for_a_header_is_cut_off() {
    is_cut_off(&[0, 0, 0, 2, 0, 3]).await;
}

#[tokio::test]
async fn an_unknown_api_is_cut_off() {
    is_cut_off(&[0, 0, 0, 10, 0x27, 0x0f, 0, 0, 0, 0, 0, 1, 0xff, 0xff]).await;
}

#[tokio::test]
async fn a_truncated_request_is_cut_off() {
    let whole = frame(&MetadataRequest::default().with_topics(None), 12, 1);
    let mut cut = whole[..whole.len() - 3].to_vec();
    let length = (cut.len() - 4) as u32;
    cut[..4].copy_from_slice(&length.to_be_bytes());
    is_cut_off(&cut).await;
}

#[tokio::test]
async fn an_array_that_claims_two_billion_elements_is_cut_off() {
    is_cut_off(&[
        0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff,
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_checksum_is_refused_and_the_connection_goes_on() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let mut damaged = batch("hello").to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let response = client.produce("t", damaged.into()).await;
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ResponseError::CorruptMessage.code()
    );
    let response = client.produce("t", batch("hello")).await;
    assert_eq!(response.responses[0].partition_responses[0].base_offset, 0);
}

#[tokio::test]
async fn an_old_message_format_is_refused() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let mut old = batch("hello").to_vec();
    old[16] = 1;
    let response = client.produce("t", old.into()).await;
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ResponseError::InvalidRecord.code()
    );
}

#[tokio::test]
async fn acknowledgements_that_do_not_exist_are_refused() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    let response = client.call(&produce("t", batch("x"), 7), 9).await;
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ResponseError::InvalidRequiredAcks.code()
    );
}

#[tokio::test]
async fn a_version_that_is_too_new_learns_the_range_in_the_oldest_form() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client
        .raw(&[0, 0, 0, 11, 0, 18, 0, 99, 0, 0, 0, 5, 0xff, 0xff, 0])
        .await;
    let (id, response) = client.receive::<ApiVersionsRequest>(0).await.unwrap();
    assert_eq!(
        (id, response.error_code),
        (5, ResponseError::UnsupportedVersion.code())
    );
    assert!(
        response
            .api_keys
            .iter()
            .any(|api| api.api_key == 18 && api.max_version >= 3)
    );
    assert_eq!(
        client.call(&ApiVersionsRequest::default(), 0).await.error_code,
        0,
        "and the client goes on"
    );
}
