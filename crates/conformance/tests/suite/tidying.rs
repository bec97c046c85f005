//! What brokers do in the background: compaction keeps the last value of a key, retention keeps what is
//! young and small enough. Records keep their offsets.

use rdkafka::message::{Message, OwnedMessage};
use rdkafka::producer::{FutureProducer, FutureRecord};
use redrive_conformance::{Target, deliver, eventually, now_ms, on_both};

on_both!(
    compaction_keeps_the_last_value_of_each_key_at_its_offset,
    tombstones_remove_their_keys_and_then_themselves,
    retention_by_time_removes_what_is_old,
    retention_by_size_keeps_the_newest,
);

/// Rolled often and compacted as soon as anything is dirty.
const EAGER: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("segment.ms", "100"),
    ("min.cleanable.dirty.ratio", "0.0001"),
    ("delete.retention.ms", "0"),
];

fn put(producer: &FutureProducer, topic: &str, key: &str, value: Option<&str>) -> i64 {
    let record = FutureRecord::<str, str>::to(topic).partition(0).key(key);
    let record = FutureRecord { payload: value, ..record };
    deliver(producer, record).expect("delivered").offset
}

fn seen(read: &[OwnedMessage], below: i64) -> Vec<(String, Option<String>, i64)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let read = read.iter().filter(|message| message.offset() < below);
    read.map(|message| (text(message.key().expect("a key")), message.payload().map(text), message.offset()))
        .collect()
}

/// Writes to a key that nobody looks at, as segments are only closed by a later record, until what lies
/// below is as expected.
fn settles(
    broker: &Target,
    producer: &FutureProducer,
    topic: &str,
    below: i64,
    expected: &[(&str, Option<&str>, i64)],
) {
    let own =
        |(key, value, offset): &(&str, Option<&str>, i64)| ((*key).into(), value.map(Into::into), *offset);
    let expected: Vec<(String, Option<String>, i64)> = expected.iter().map(own).collect();
    let mut last = Vec::new();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("compacted", || {
            put(producer, topic, "filler", Some("filler"));
            last = seen(&broker.read(topic, 0, "read_uncommitted"), below);
            (last == expected).then_some(())
        });
    }));
    assert!(done.is_ok(), "expected {expected:?}, last seen {last:?}");
}

fn compaction_keeps_the_last_value_of_each_key_at_its_offset(broker: &Target) {
    let topic = broker.topic_with("compacted", 1, &EAGER);
    let producer = broker.producer(&[("linger.ms", "0")]);
    for (key, value) in [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3"), ("c", "2")] {
        put(&producer, &topic, key, Some(value));
    }
    settles(broker, &producer, &topic, 6, &[("b", Some("1"), 1), ("a", Some("3"), 4), ("c", Some("2"), 5)]);
    // An offset that is gone leads to the next one, not to an error.
    let reader = broker.reader(&topic, 0, rdkafka::Offset::Offset(2), &[]);
    assert_eq!(redrive_conformance::next_message(&reader).offset(), 4);
    assert_eq!(broker.watermarks(&topic, 0).0, 0);
}

fn tombstones_remove_their_keys_and_then_themselves(broker: &Target) {
    let topic = broker.topic_with("tombstones", 1, &EAGER);
    let producer = broker.producer(&[("linger.ms", "0")]);
    put(&producer, &topic, "gone", Some("1"));
    put(&producer, &topic, "kept", Some("1"));
    put(&producer, &topic, "gone", None);
    settles(broker, &producer, &topic, 3, &[("kept", Some("1"), 1)]);
}

fn retention_by_time_removes_what_is_old(broker: &Target) {
    let topic = broker.topic_with("old", 1, &[("retention.ms", "60000"), ("segment.ms", "100")]);
    let producer = broker.producer(&[("linger.ms", "0")]);
    let at = |age: i64| {
        let record = FutureRecord::<(), _>::to(&topic).payload("value").timestamp(now_ms() - age);
        deliver(&producer, record).expect("delivered").offset
    };
    // The first may go at any moment; that the young one stays is what is waited for.
    assert_eq!(at(3_600_000), 0);
    let young = eventually("the old record is gone", || {
        let young = at(0);
        (broker.watermarks(&topic, 0).0 > 0).then_some(young)
    });
    let read = broker.read(&topic, 0, "read_uncommitted");
    assert!(read.iter().any(|message| message.offset() == young), "the young record is gone");
    assert!(read.iter().all(|message| message.offset() > 0));
}

fn retention_by_size_keeps_the_newest(broker: &Target) {
    let small = [("retention.bytes", "1500000"), ("segment.bytes", "1048576")];
    let topic = broker.topic_with("large", 1, &small);
    let producer = broker.producer(&[("linger.ms", "0")]);
    let value = "x".repeat(100_000);
    let last = (0..60).fold(-1, |_, _| put(&producer, &topic, "key", Some(&value)));
    // Whole segments go, as long as what is left is not below the limit.
    let (start, end) = eventually("a later start", || {
        let (start, end) = broker.watermarks(&topic, 0);
        (start > 20).then_some((start, end))
    });
    assert_eq!(end, last + 1);
    assert!(end - start >= 15, "at least the limit is kept: {start}..{end}");
    assert_eq!(broker.read(&topic, 0, "read_uncommitted").last().map(Message::offset), Some(last));
}
