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
    of_many_those_that_are_refused_are_told_by_their_number,
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
    // What is still on its way when that is over is refused with another reason.
    let publisher = publisher(ground, 8, None);
    assert_eq!(refusal(&publisher, numbered(&topic, 0, 0)).await, Refusal::MissingTopic);
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

async fn of_many_those_that_are_refused_are_told_by_their_number(ground: &Ground) {
    let topic = ground.topic_with("several", 1, &[("max.message.bytes", "5000")]).await;
    let mut settings = ground.settings();
    settings.properties.push(("queue.buffering.max.messages".to_owned(), "100".to_owned()));
    let publishing = Publishing { max_message_bytes: Some(5_000), ..Publishing::default() };
    let publisher = Publisher::new(&settings, &publishing).unwrap();
    let large = |number: i64| number % 400 == 7;
    let many = (0..1_000).map(|number| match large(number) {
        true => Outgoing { value: Some(Bytes::from(vec![0; 20_000])), ..numbered(&topic, 0, number) },
        false => numbered(&topic, 0, number),
    });
    let mut refused = publisher.publish_all(many);
    let mut numbers = Vec::new();
    while let Some((number, error)) = soon(refused.next()).await {
        assert!(matches!(error, Error::Publish { kind: Refusal::TooLarge, .. }), "{error:?}");
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [7, 407, 807]);
    // All the others are there by then.
    let next = soon(publisher.publish(numbered(&topic, 0, 0))).await.unwrap();
    assert_eq!(next.offset, 997);
    assert!(soon(publisher.publish_all([]).next()).await.is_none());
}
