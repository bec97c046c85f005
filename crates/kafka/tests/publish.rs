//! A publisher tells why a record was refused, and goes on by itself when the reason is gone.

mod ground;

use std::time::Duration;

use bytes::Bytes;
use ground::{Ground, numbered, soon};
use redrive_core::Topic;
use redrive_kafka::{Error, Outgoing, Publisher, Publishing, Refusal};
use redrive_testkit::new_name;

on_both!(
    a_missing_topic_is_said_to_be_missing_in_time_and_found_when_it_is_there,
    a_missing_partition_is_said_to_be_missing_and_found_when_it_is_there,
    a_record_is_too_large_for_the_client_or_for_the_topic,
    more_records_than_there_is_room_for_are_published_in_the_order_of_the_calls,
);

fn publisher(ground: &Ground, seconds: u64, max_message_bytes: Option<usize>) -> Publisher {
    let publishing =
        Publishing { timeout: Duration::from_secs(seconds), max_message_bytes, ..Publishing::default() };
    Publisher::new(&ground.settings(), &publishing).unwrap()
}

async fn refusal(publisher: &Publisher, record: Outgoing) -> Refusal {
    match soon(publisher.publish(record)).await {
        Err(Error::Publish { kind, .. }) => kind,
        other => panic!("not refused: {other:?}"),
    }
}

/// Tries until it is accepted.
async fn until_accepted(publisher: &Publisher, record: &Outgoing) {
    soon(async { while publisher.publish(record.clone()).await.is_err() {} }).await;
}

async fn a_missing_topic_is_said_to_be_missing_in_time_and_found_when_it_is_there(ground: &Ground) {
    let topic: Topic = new_name("missing").parse().unwrap();
    let publisher = publisher(ground, 3, None);
    let missing = refusal(&publisher, numbered(&topic, 0, 0));
    let missing = tokio::time::timeout(Duration::from_millis(3_500), missing).await;
    assert_eq!(missing.expect("within its timeout"), Refusal::MissingTopic);
    assert_eq!(refusal(&publisher, numbered(&topic, 0, 0)).await, Refusal::MissingTopic);
    ground.grow(&topic, 1).await;
    until_accepted(&publisher, &numbered(&topic, 0, 0)).await;
}

async fn a_missing_partition_is_said_to_be_missing_and_found_when_it_is_there(ground: &Ground) {
    let topic = ground.topic("narrow", 1).await;
    let publisher = publisher(ground, 10, None);
    // Before anything is known about the topic, and after.
    assert_eq!(refusal(&publisher, numbered(&topic, 2, 0)).await, Refusal::MissingPartition);
    assert_eq!(refusal(&publisher, numbered(&topic, 2, 0)).await, Refusal::MissingPartition);
    soon(publisher.publish(numbered(&topic, 0, 0))).await.unwrap();
    ground.grow(&topic, 3).await;
    until_accepted(&publisher, &numbered(&topic, 2, 0)).await;
}

async fn a_record_is_too_large_for_the_client_or_for_the_topic(ground: &Ground) {
    let topic = ground.topic_with("small", 1, &[("max.message.bytes", "5000")]).await;
    let large = |bytes| Outgoing { value: Some(Bytes::from(vec![0; bytes])), ..numbered(&topic, 0, 0) };
    let generous = publisher(ground, 10, None);
    assert_eq!(refusal(&generous, large(2_000_000)).await, Refusal::TooLarge);
    assert_eq!(refusal(&generous, large(20_000)).await, Refusal::TooLarge);
    // Small ones pass, and are not put together to what the topic refuses.
    let exact = publisher(ground, 10, Some(5_000));
    assert_eq!(refusal(&exact, large(20_000)).await, Refusal::TooLarge);
    let many: Vec<_> = (0..200).map(|_| exact.publish(large(900))).collect();
    for published in many {
        soon(published).await.unwrap();
    }
}

async fn more_records_than_there_is_room_for_are_published_in_the_order_of_the_calls(ground: &Ground) {
    let topic = ground.topic("many", 1).await;
    let mut settings = ground.settings();
    settings.properties.push(("queue.buffering.max.messages".to_owned(), "100".to_owned()));
    let publisher = Publisher::new(&settings, &Publishing::default()).unwrap();
    let many: Vec<_> = (0..5_000).map(|number| publisher.publish(numbered(&topic, 0, number))).collect();
    soon(publisher.flush()).await;
    for (number, published) in many.into_iter().enumerate() {
        assert_eq!(usize::try_from(soon(published).await.unwrap().offset).unwrap(), number);
    }
}
