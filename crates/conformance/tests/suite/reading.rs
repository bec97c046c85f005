//! Reading: from an exact offset, paused, moved, at the end and past it, and many partitions at once.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_protocol::ResponseError;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::FutureRecord;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_conformance::{
    Appetite, Isolation, PATIENCE, Target, deliver_all, error, eventually, later, next_error, next_message,
    on_both, records, timed,
};

on_both!(
    reading_begins_at_the_exact_offset_even_inside_a_batch,
    a_reader_is_moved_back_and_forth,
    a_paused_partition_is_silent_until_it_is_resumed,
    reading_past_the_end_is_out_of_range,
    a_reader_at_the_end_waits_for_what_comes,
    a_long_poll_returns_as_soon_as_data_arrives,
    a_long_poll_waits_for_enough_data_or_its_time,
    a_fetch_takes_no_more_than_it_asks_for_save_for_the_first_batch,
    one_consumer_reads_three_hundred_partitions,
);

fn ten(broker: &Target, topic: &str) {
    let producer = broker.producer(&[("linger.ms", "50")]);
    deliver_all(&producer, topic, 0, (0..10).map(|number| number.to_string()));
}

fn reading_begins_at_the_exact_offset_even_inside_a_batch(broker: &Target) {
    let topic = broker.topic("exact", 1);
    ten(broker, &topic);
    for offset in [7, 0, 9] {
        let reader = broker.reader(&topic, 0, Offset::Offset(offset), &[]);
        let first = next_message(&reader);
        assert_eq!((first.offset(), first.payload()), (offset, Some(offset.to_string().as_bytes())));
    }
    let last = broker.reader(&topic, 0, Offset::OffsetTail(3), &[]);
    assert_eq!(next_message(&last).offset(), 7);
}

fn a_reader_is_moved_back_and_forth(broker: &Target) {
    let topic = broker.topic("moved", 1);
    ten(broker, &topic);
    let reader = broker.reader(&topic, 0, Offset::Beginning, &[]);
    assert_eq!(next_message(&reader).offset(), 0);
    for offset in [8, 2, 5] {
        reader.seek(&topic, 0, Offset::Offset(offset), PATIENCE).expect("moved");
        assert_eq!([next_message(&reader).offset(), next_message(&reader).offset()], [offset, offset + 1]);
    }
}

fn a_paused_partition_is_silent_until_it_is_resumed(broker: &Target) {
    let topic = broker.topic("paused", 2);
    let producer = broker.producer(&[]);
    let reader = broker.reader(&topic, 0, Offset::Beginning, &[("enable.partition.eof", "false")]);
    let mut both = TopicPartitionList::new();
    for partition in [0, 1] {
        both.add_partition_offset(&topic, partition, Offset::Beginning).expect("an offset");
    }
    reader.assign(&both).expect("an assignment");
    let mut paused = TopicPartitionList::new();
    paused.add_partition(&topic, 0);
    reader.pause(&paused).expect("paused");
    deliver_all(&producer, &topic, 0, ["held"]);
    deliver_all(&producer, &topic, 1, ["one", "two", "three"]);
    let read: Vec<_> = (0..3).map(|_| next_message(&reader).partition()).collect();
    assert_eq!(read, [1, 1, 1]);
    reader.resume(&paused).expect("resumed");
    let held = next_message(&reader);
    assert_eq!((held.partition(), held.payload()), (0, Some(&b"held"[..])));
}

fn reading_past_the_end_is_out_of_range(broker: &Target) {
    let topic = broker.topic("past", 1);
    ten(broker, &topic);
    let reader = broker.reader(&topic, 0, Offset::Offset(11), &[]);
    assert_eq!(next_error(&reader), KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset));
    let answer = broker.connect().fetch((&topic, 0), 11, Isolation::Uncommitted, Appetite::default());
    assert_eq!(error(answer.error_code), Some(ResponseError::OffsetOutOfRange));
    let at_end = broker.connect().fetch((&topic, 0), 10, Isolation::Uncommitted, Appetite::default());
    assert_eq!((at_end.error_code, at_end.high_watermark, at_end.log_start_offset), (0, 10, 0));
    assert!(at_end.records.is_none_or(|records| records.is_empty()));
}

fn a_reader_at_the_end_waits_for_what_comes(broker: &Target) {
    let topic = broker.topic("end", 1);
    ten(broker, &topic);
    let reader = broker.reader(&topic, 0, Offset::End, &[]);
    assert_eq!(next_error(&reader), KafkaError::PartitionEOF(0));
    deliver_all(&broker.producer(&[]), &topic, 0, ["new"]);
    let new =
        eventually("a record", || reader.poll(Duration::from_millis(50))?.ok().map(|record| record.detach()));
    assert_eq!((new.offset(), new.payload()), (10, Some(&b"new"[..])));
}

fn a_long_poll_returns_as_soon_as_data_arrives(broker: &Target) {
    let topic = broker.topic("long-poll", 1);
    let (mut waiting, mut producing) = (broker.connect(), broker.connect());
    let appetite = Appetite { max_wait: 20_000, ..Appetite::default() };
    let name = topic.clone();
    let produced =
        later(Duration::from_millis(300), move || producing.produce(&name, -1, records(&["now"], |_, _| {})));
    let (fetched, took) = timed(|| waiting.fetch((&topic, 0), 0, Isolation::Uncommitted, appetite));
    assert_eq!(produced.join().expect("produced").error_code, 0);
    assert_eq!((fetched.error_code, fetched.high_watermark), (0, 1));
    assert!(fetched.records.is_some_and(|records| !records.is_empty()));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

fn a_long_poll_waits_for_enough_data_or_its_time(broker: &Target) {
    let topic = broker.topic("min-bytes", 1);
    ten(broker, &topic);
    let appetite = Appetite { max_wait: 400, min_bytes: 1 << 20, ..Appetite::default() };
    let (fetched, took) = timed(|| broker.connect().fetch((&topic, 0), 0, Isolation::Uncommitted, appetite));
    assert!(fetched.records.is_some_and(|records| !records.is_empty()), "what there is comes at the end");
    assert!(took >= Duration::from_millis(350), "{took:?}");
    let appetite = Appetite { max_wait: 20_000, ..Appetite::default() };
    let (_, took) = timed(|| broker.connect().fetch((&topic, 0), 0, Isolation::Uncommitted, appetite));
    assert!(took < Duration::from_secs(10), "{took:?}");
    let (wrong, took) = timed(|| broker.connect().fetch((&topic, 0), 99, Isolation::Uncommitted, appetite));
    assert_eq!(error(wrong.error_code), Some(ResponseError::OffsetOutOfRange));
    assert!(took < Duration::from_secs(10), "an error is not waited with: {took:?}");
}

fn a_fetch_takes_no_more_than_it_asks_for_save_for_the_first_batch(broker: &Target) {
    let (topic, mut connection) = (broker.topic("appetite", 1), broker.connect());
    let value = "x".repeat(1_000);
    for _ in 0..10 {
        connection.produce(&topic, -1, records(&[&value], |_, _| {}));
    }
    let mut bytes = |max_bytes| {
        let appetite = Appetite { max_bytes, ..Appetite::default() };
        connection
            .fetch((&topic, 0), 0, Isolation::Uncommitted, appetite)
            .records
            .map_or(0, |records| records.len())
    };
    let all = bytes(1 << 20);
    let one = all / 10;
    assert!(one > 1_000);
    // Where it asks for part of a batch, a broker may cut it off or leave it out.
    assert!((3 * one..=3 * one + 500).contains(&bytes(i32::try_from(3 * one + 500).expect("small"))));
    assert_eq!(bytes(1), one, "the first batch comes whole");
}

fn one_consumer_reads_three_hundred_partitions(broker: &Target) {
    let topic = broker.topic("many", 300);
    let producer = broker.producer(&[]);
    let sent: Vec<_> = (0..300)
        .map(|partition| {
            let record = FutureRecord::<(), _>::to(&topic).partition(partition).payload("value");
            producer.send_result(record).map_err(|(refused, _)| refused).expect("room in the queue")
        })
        .collect();
    for delivery in sent {
        broker.wait(delivery).expect("a producer that lives").expect("delivered");
    }
    let consumer: BaseConsumer<_> = broker.member(&broker.name("many"), &[]);
    consumer.subscribe(&[&topic]).expect("subscribed");
    let read: BTreeSet<_> = (0..300).map(|_| next_message(&consumer).partition()).collect();
    assert_eq!(read.len(), 300);
}
