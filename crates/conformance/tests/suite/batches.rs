//! Batches: every codec passes through, topics may demand one, and what is wrong is refused.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use rdkafka::Timestamp;
use rdkafka::message::Message;
use redrive_conformance::{
    Appetite, Isolation, Target, deliver_all, error, now_ms, offsets, on_both, records, values,
};

on_both!(
    every_codec_passes_through_as_it_is,
    a_topic_keeps_its_batches_in_the_codec_that_it_names,
    a_batch_with_a_wrong_checksum_is_refused,
    acknowledgements_that_do_not_exist_are_refused,
    a_partition_that_does_not_exist_is_named_so,
    the_answer_tells_the_first_offset_and_the_start_of_the_log,
    the_answer_tells_the_time_where_the_broker_sets_it,
    two_batches_for_one_partition_are_refused,
);

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// The codec of the first batch, from its attributes.
fn codec(batch: &Bytes) -> &'static str {
    CODECS[usize::from(batch[22] & 7)]
}

fn first_batch(broker: &Target, topic: &str) -> Bytes {
    let fetched = broker.connect().fetch((topic, 0), 0, Isolation::Uncommitted, Appetite::default());
    fetched.records.expect("records")
}

fn compressible(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number} {}", "again and ".repeat(20))).collect()
}

fn every_codec_passes_through_as_it_is(broker: &Target) {
    for name in CODECS {
        let topic = broker.topic("codec", 1);
        let producer = broker.producer(&[("compression.type", name), ("linger.ms", "50")]);
        let sent = compressible(300);
        deliver_all(&producer, &topic, 0, &sent);
        let read = broker.read(&topic, 0, "read_uncommitted");
        assert_eq!(values(&read), sent, "{name}");
        assert_eq!(offsets(&read), (0..300).collect::<Vec<i64>>(), "{name}");
        assert_eq!(codec(&first_batch(broker, &topic)), name);
    }
}

fn a_topic_keeps_its_batches_in_the_codec_that_it_names(broker: &Target) {
    for (setting, kept) in [("zstd", "zstd"), ("gzip", "gzip"), ("uncompressed", "none")] {
        let topic = broker.topic_with("demands", 1, &[("compression.type", setting)]);
        let producer = broker.producer(&[("compression.type", "lz4"), ("linger.ms", "50")]);
        let sent = compressible(100);
        deliver_all(&producer, &topic, 0, &sent);
        assert_eq!(codec(&first_batch(broker, &topic)), kept);
        let read = broker.read(&topic, 0, "read_uncommitted");
        assert_eq!(values(&read), sent, "{setting}");
        assert!(read.iter().all(|message| message.timestamp().to_millis().is_some()));
    }
}

fn a_batch_with_a_wrong_checksum_is_refused(broker: &Target) {
    let topic = broker.topic("checksum", 1);
    let mut batch = records(&["value"], |_, _| {}).to_vec();
    *batch.last_mut().expect("bytes") ^= 1;
    let answer = broker.connect().produce(&topic, -1, batch.into());
    assert_eq!(error(answer.error_code), Some(ResponseError::CorruptMessage));
    assert_eq!(broker.watermarks(&topic, 0), (0, 0));
}

fn acknowledgements_that_do_not_exist_are_refused(broker: &Target) {
    let topic = broker.topic("acks-of-2", 1);
    let answer = broker.connect().produce(&topic, 2, records(&["value"], |_, _| {}));
    assert_eq!(error(answer.error_code), Some(ResponseError::InvalidRequiredAcks));
}

fn a_partition_that_does_not_exist_is_named_so(broker: &Target) {
    let mut connection = broker.connect();
    let absent = broker.name("absent");
    let answer = connection.produce(&absent, 1, records(&["value"], |_, _| {}));
    assert_eq!(error(answer.error_code), Some(ResponseError::UnknownTopicOrPartition));
    let fetched = connection.fetch((&absent, 0), 0, Isolation::Uncommitted, Appetite::default());
    assert_eq!(error(fetched.error_code), Some(ResponseError::UnknownTopicOrPartition));
    let topic = broker.topic("one", 1);
    let fetched = connection.fetch((&topic, 1), 0, Isolation::Uncommitted, Appetite::default());
    assert_eq!(error(fetched.error_code), Some(ResponseError::UnknownTopicOrPartition));
    let listed = connection.list_offset(&absent, -1, Isolation::Uncommitted);
    assert_eq!(error(listed.error_code), Some(ResponseError::UnknownTopicOrPartition));
}

fn the_answer_tells_the_first_offset_and_the_start_of_the_log(broker: &Target) {
    let (topic, mut connection) = (broker.topic("answer", 1), broker.connect());
    let first = connection.produce(&topic, -1, records(&["a", "b", "c"], |_, _| {}));
    assert_eq!((first.error_code, first.base_offset, first.log_start_offset), (0, 0, 0));
    assert_eq!(first.log_append_time_ms, -1, "CreateTime has no time of appending");
    let second = connection.produce(&topic, 1, records(&["d"], |_, _| {}));
    assert_eq!((second.error_code, second.base_offset), (0, 3));
}

fn the_answer_tells_the_time_where_the_broker_sets_it(broker: &Target) {
    let topic = broker.topic_with("stamped", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let before = now_ms();
    let answer = broker.connect().produce(&topic, -1, records(&["a"], |_, record| record.timestamp = 5));
    assert!((before..=now_ms()).contains(&answer.log_append_time_ms), "{answer:?}");
    let read = broker.read(&topic, 0, "read_uncommitted");
    assert_eq!(read[0].timestamp(), Timestamp::LogAppendTime(answer.log_append_time_ms));
}

fn two_batches_for_one_partition_are_refused(broker: &Target) {
    let topic = broker.topic("two-batches", 1);
    let two = [records(&["a"], |_, _| {}), records(&["b"], |_, _| {})].concat();
    let answer = broker.connect().produce(&topic, -1, two.into());
    assert_eq!(error(answer.error_code), Some(ResponseError::InvalidRecord));
    assert_eq!(broker.watermarks(&topic, 0), (0, 0));
}
