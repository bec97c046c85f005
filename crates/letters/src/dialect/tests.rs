//! Letters as the programs write them, byte for byte.

use bytes::Bytes;
use redrive_core::headers::Headers;
use redrive_core::route::Reason;
use redrive_core::{Class, Origin, Record, Timestamp};

use crate::{Dialect, Letter};

type Pair = (&'static str, &'static [u8]);

fn record(topic: &str, pairs: &[Pair]) -> Record {
    Record {
        at: Origin { topic: topic.parse().unwrap(), partition: 2, offset: 40 },
        timestamp: Some(Timestamp::from_millis(1_700_000_009_000)),
        key: Some(Bytes::from_static(b"customer-7")),
        value: Some(Bytes::from_static(b"{}")),
        headers: pairs.iter().map(|(name, value)| (*name, Some(*value))).collect(),
    }
}

fn read(topic: &str, pairs: &[Pair]) -> Letter {
    Letter::read(&record(topic, pairs))
}

/// With the user's headers around and between them.
fn stripped(dialect: Dialect, pairs: &[Pair]) {
    let mut headers = Headers::default();
    headers.push("b", Some(Bytes::from_static(&[0xff])));
    for (name, value) in pairs {
        headers.push(*name, Some(Bytes::from_static(value)));
        headers.push("a", None);
    }
    headers.push("b", Some(Bytes::from_static(b"2")));
    headers.push("redrive-replays", Some(Bytes::from_static(b"1")));
    headers.push("redrive-replayed-at", Some(Bytes::from_static(b"1")));
    assert_eq!(Dialect::of(&headers), dialect);
    let left: Vec<_> = dialect
        .strip(&headers)
        .iter()
        .map(|header| (header.name.to_string(), header.value.clone()))
        .collect();
    let mut expected = vec![("b".to_owned(), Some(Bytes::from_static(&[0xff])))];
    expected.extend(pairs.iter().map(|_| ("a".to_owned(), None)));
    expected.push(("b".to_owned(), Some(Bytes::from_static(b"2"))));
    assert_eq!(left, expected);
}

const RECOVERER: &[Pair] = &[
    ("kafka_dlt-original-topic", b"orders"),
    ("kafka_dlt-original-partition", &[0, 0, 0, 3]),
    ("kafka_dlt-original-offset", &[0, 0, 0, 0, 0, 0, 4, 18]),
    ("kafka_dlt-original-timestamp", &[0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0]),
    ("kafka_dlt-original-timestamp-type", b"CreateTime"),
    ("kafka_dlt-original-consumer-group", b"payments"),
    ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
    ("kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
    ("kafka_dlt-exception-message", b"Listener failed; no customer 7"),
    ("kafka_dlt-exception-stacktrace", b"java.lang.IllegalStateException: no customer 7\n\tat App.main"),
];

#[test]
fn spring_the_cause_is_what_people_look_for() {
    let letter = read("orders-dlt", RECOVERER);
    assert_eq!(letter.dialect, Dialect::Spring);
    assert_eq!(letter.origin().unwrap().to_string(), "orders/3/1042");
    assert_eq!(letter.source.timestamp, Some(Timestamp::from_millis(1_700_000_000_000)));
    assert_eq!(letter.group.as_deref(), Some("payments"));
    assert_eq!(letter.error_type.as_deref(), Some("java.lang.IllegalStateException"));
    assert_eq!(letter.message.as_deref(), Some("Listener failed; no customer 7"));
    assert_eq!(letter.chain.len(), 2);
    assert!(letter.chain[0].error_type.ends_with("ListenerExecutionFailedException"));
    assert!(letter.stack.as_deref().unwrap().contains("App.main"));
    assert_eq!(letter.time(), Timestamp::from_millis(1_700_000_009_000), "the letter's own");
    assert_eq!(letter.problems, [""; 0]);
    stripped(Dialect::Spring, RECOVERER);
}

#[test]
fn spring_the_first_original_is_the_true_one() {
    let mut pairs = RECOVERER.to_vec();
    pairs.extend([
        ("kafka_dlt-original-topic", &b"orders-retry"[..]),
        ("kafka_dlt-original-partition", &[0, 0, 0, 9]),
        ("kafka_dlt-original-offset", &[0, 0, 0, 0, 0, 0, 0, 1]),
        ("kafka_dlt-exception-cause-fqcn", b"java.lang.Later"),
    ]);
    let letter = read("orders-dlt", &pairs);
    assert_eq!(letter.origin().unwrap().to_string(), "orders/3/1042");
    assert_eq!(letter.error_type.as_deref(), Some("java.lang.Later"), "exceptions are the last ones");
}

const RETRIES: &[Pair] = &[
    ("kafka_original-topic", b"orders"),
    ("kafka_original-partition", &[0, 0, 0, 1]),
    ("kafka_original-offset", &[0, 0, 0, 0, 0, 0, 0, 5]),
    ("kafka_original-timestamp", &[0, 0, 0, 0, 0, 0, 0, 9]),
    ("kafka_original-timestamp-type", b"LogAppendTime"),
    ("kafka_dlt-original-consumer-group", b"payments"),
    ("kafka_exception-fqcn", b"a.Wrapper"),
    ("kafka_exception-cause-fqcn", b"a.Cause"),
    ("kafka_exception-message", b"no"),
    ("retry_topic-attempts", &[0, 0, 0, 2]),
    ("retry_topic-attempts", &[0, 0, 0, 4]),
    ("retry_topic-original-timestamp", &[1, 0x8b, 0xcf, 0xe5, 0x68, 0]),
    ("retry_topic-backoff-timestamp", &[1, 0x8b, 0xcf, 0xe5, 0x68, 1]),
    ("kafka_deliveryAttempt", &[0, 0, 0, 1]),
];

#[test]
fn spring_retry_topics_accumulate_and_the_last_value_counts() {
    let letter = read("orders-dlt", RETRIES);
    assert_eq!((letter.dialect, letter.attempts), (Dialect::Spring, Some(3)), "the fourth is not made");
    assert_eq!(letter.origin().unwrap().to_string(), "orders/1/5");
    assert_eq!((letter.group.as_deref(), letter.error_type.as_deref()), (Some("payments"), Some("a.Cause")));
    stripped(Dialect::Spring, RETRIES);
    let old = read("orders-dlt", &[("kafka_original-topic", b"orders"), ("retry_topic-attempts", &[3])]);
    assert_eq!(old.attempts, Some(2), "older ones wrote one byte");
    let began: &[Pair] = &[
        ("kafka_original-topic", b"orders"),
        ("retry_topic-original-timestamp", &[1, 0x8b, 0xcf, 0xe5, 0x68, 0]),
    ];
    assert_eq!(read("orders-dlt", began).source.timestamp, Some(Timestamp::from_millis(1_700_000_000_000)));
}

#[test]
fn spring_lengths_that_cannot_be_are_told_and_left_out() {
    let letter = read(
        "orders-dlt",
        &[
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", &[0, 0, 3]),
            ("kafka_dlt-original-offset", &[0, 0, 0, 3]),
            ("kafka_dlt-original-timestamp", b""),
            ("kafka_dlt-exception-message", &[b'a', 0xff]),
            ("retry_topic-attempts", &[0; 9]),
            ("retry_topic-original-timestamp", b""),
        ],
    );
    assert_eq!(letter.origin(), None);
    assert_eq!(letter.source.topic.as_deref(), Some("orders"));
    assert_eq!((letter.source.timestamp, letter.attempts), (None, None));
    assert_eq!(letter.message.as_deref(), Some("a\u{fffd}"));
    assert_eq!(letter.problems.len(), 5, "{:?}", letter.problems);
    assert!(letter.problems[0].contains("kafka_dlt-original-partition has 3 bytes; 4 were expected"));
}

#[test]
fn spring_a_key_that_cannot_be_read_is_the_error_where_there_is_no_other() {
    let pairs: &[Pair] = &[
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-key-exception-fqcn", b"DeserializationException"),
        ("kafka_dlt-key-exception-message", b"bad key"),
        ("kafka_dlt-key-exception-stacktrace", b"at"),
    ];
    let letter = read("orders-dlt", pairs);
    assert_eq!(letter.error_type.as_deref(), Some("DeserializationException"));
    assert_eq!((letter.message.as_deref(), letter.stack.as_deref()), (Some("bad key"), Some("at")));
    stripped(Dialect::Spring, pairs);
}

const CLOUD: &[Pair] = &[
    ("x-original-topic", b"orders"),
    ("x-original-partition", &[0, 0, 0, 1]),
    ("x-original-offset", &[0, 0, 0, 0, 0, 0, 1, 0]),
    ("x-original-timestamp", &[0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0]),
    ("x-original-timestamp-type", b"CreateTime"),
    ("x-exception-fqcn", b"a.B"),
    ("x-exception-message", b"no"),
    ("x-exception-stacktrace", b"at"),
];

#[test]
fn spring_cloud_stream() {
    let letter = read("error.orders.payments", CLOUD);
    assert_eq!(letter.dialect, Dialect::CloudStream);
    assert_eq!(letter.origin().unwrap().to_string(), "orders/1/256");
    assert_eq!(letter.group.as_deref(), Some("payments"));
    assert_eq!((letter.error_type.as_deref(), letter.message.as_deref()), (Some("a.B"), Some("no")));
    assert_eq!(letter.source.timestamp, Some(Timestamp::from_millis(1_700_000_000_000)));
    stripped(Dialect::CloudStream, CLOUD);
    let bad = read("error.orders.payments", &[("x-original-partition", b"1"), ("x-original-offset", &[])]);
    assert_eq!((bad.source.partition, bad.source.offset, bad.problems.len()), (None, None, 2));
}

const CONNECT: &[Pair] = &[
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"1"),
    ("__connect.errors.offset", b"77"),
    ("__connect.errors.connector.name", b"sink"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    ("__connect.errors.exception.message", b"Converting byte[] failed"),
    ("__connect.errors.exception.stacktrace", b"at"),
];

#[test]
fn connect() {
    let letter = read("sink-dlq", CONNECT);
    assert_eq!(
        (letter.dialect, letter.origin().unwrap().to_string().as_str()),
        (Dialect::Connect, "orders/1/77")
    );
    assert_eq!(letter.group.as_deref(), Some("connect-sink"));
    assert_eq!((letter.service.as_deref(), letter.instance.as_deref()), (Some("sink"), Some("0")));
    assert_eq!(
        letter.handler.as_deref(),
        Some("VALUE_CONVERTER org.apache.kafka.connect.json.JsonConverter")
    );
    assert_eq!(letter.error_type.as_deref(), Some("org.apache.kafka.connect.errors.DataException"));
    assert_eq!(letter.source.timestamp, letter.timestamp, "the record's timestamp is kept");
    stripped(Dialect::Connect, CONNECT);
    let bad = read(
        "d",
        &[("__connect.errors.partition", b"one"), ("__connect.errors.offset", b"99999999999999999999")],
    );
    assert_eq!((bad.source.partition, bad.source.offset, bad.problems.len()), (None, None, 2));
}

const STREAMS: &[Pair] = &[
    ("__streams.errors.exception", b"java.lang.NullPointerException"),
    ("__streams.errors.stacktrace", b"at"),
    ("__streams.errors.message", b"null"),
    ("__streams.errors.topic", b"orders"),
    ("__streams.errors.partition", b"0"),
    ("__streams.errors.offset", b"12"),
];

#[test]
fn streams() {
    let letter = read("app-dlq", STREAMS);
    assert_eq!(
        (letter.dialect, letter.origin().unwrap().to_string().as_str()),
        (Dialect::Streams, "orders/0/12")
    );
    assert_eq!(letter.error_type.as_deref(), Some("java.lang.NullPointerException"));
    assert_eq!((letter.message.as_deref(), letter.stack.as_deref()), (Some("null"), Some("at")));
    stripped(Dialect::Streams, STREAMS);
}

const SHARE: &[Pair] = &[
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"4"),
    ("__dlq.errors.offset", b"12"),
    ("__dlq.errors.group", b"share-1"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"max deliveries"),
];

#[test]
fn a_share_group_that_copies_no_payload_leaves_a_pointer() {
    let letter = read("dlq.orders", SHARE);
    assert_eq!((letter.dialect, letter.group.as_deref()), (Dialect::Share, Some("share-1")));
    assert_eq!((letter.attempts, letter.pointer), (Some(5), None));
    let without = Letter::read(&Record { value: None, ..record("dlq.orders", SHARE) });
    assert_eq!(without.pointer.as_ref().unwrap().to_string(), "orders/4/12");
    assert!(!without.is_tombstone());
    stripped(Dialect::Share, SHARE);
}

const SMALLRYE: &[Pair] = &[
    ("dead-letter-exception-class-name", b"java.lang.RuntimeException"),
    ("dead-letter-cause-class-name", b"java.io.IOException"),
    ("dead-letter-reason", b"boom"),
    ("dead-letter-cause", b"disk"),
    ("dead-letter-topic", b"orders_retry_10000"),
    ("dead-letter-partition", b"0"),
    ("dead-letter-offset", b"3"),
    ("delayed-retry-count", b"2"),
    ("delayed-retry-original-timestamp", b"1700000000000"),
    ("delayed-retry-first-processing-timestamp", b"1700000000500"),
    ("delayed-retry-topic", b"orders"),
    ("delayed-retry-partition", b"1"),
    ("delayed-retry-offset", b"99"),
    ("delayed-retry-reason", b"boom"),
];

#[test]
fn smallrye() {
    let plain = read("dead-letter-topic-orders", &SMALLRYE[..7]);
    assert_eq!(
        (plain.dialect, plain.origin().unwrap().to_string().as_str()),
        (Dialect::Smallrye, "orders_retry_10000/0/3")
    );
    assert_eq!(
        (plain.error_type.as_deref(), plain.message.as_deref()),
        (Some("java.lang.RuntimeException"), Some("boom"))
    );
    assert_eq!(plain.chain[1].message, "disk");
    let retried = read("dead-letter-topic-orders", SMALLRYE);
    assert_eq!((retried.origin().unwrap().to_string().as_str(), retried.attempts), ("orders/1/99", Some(2)));
    assert_eq!(retried.first_failed_at, Some(Timestamp::from_millis(1_700_000_000_500)));
    stripped(Dialect::Smallrye, SMALLRYE);
}

const SEEDS: &[Pair] = &[
    ("retry-count", b"1"),
    ("original-topic", b"orders"),
    ("failure-reason", b"timeout"),
    ("failure-time", b"2023-11-14T22:13:20Z"),
    ("retry-count", b"3"),
    ("original-topic", b"orders-retry-1"),
    ("dlq-reason", b"Max retries exceeded"),
    ("exception-class", b"java.net.SocketTimeoutException"),
    ("dlq-time", b"2023-11-14T22:13:21.500Z"),
    ("reprocessed-from", b"dlq"),
    ("reprocessed-at", b"2023-11-14T22:13:20Z"),
];

#[test]
fn seeds_a_hand_made_retry() {
    let letter = read("orders-dlq", SEEDS);
    assert_eq!((letter.dialect, letter.source.topic.as_deref()), (Dialect::Seeds, Some("orders")));
    assert_eq!((letter.attempts, letter.message.as_deref()), (Some(3), Some("timeout")));
    assert_eq!(letter.first_failed_at, Some(Timestamp::from_millis(1_700_000_000_000)));
    assert_eq!(letter.buried_at, Some(Timestamp::from_millis(1_700_000_001_500)));
    stripped(Dialect::Seeds, SEEDS);
    let bad = read("orders-dlq", &[("dlq-time", b"yesterday"), ("retry-count", b"many")]);
    assert_eq!((bad.buried_at, bad.attempts, bad.problems.len()), (None, None, 2));
    let plain: Headers =
        [("retry-count", Some(&b"1"[..])), ("original-topic", Some(b"x"))].into_iter().collect();
    assert_eq!(Dialect::of(&plain), Dialect::Unknown, "too plain to be taken for anybody's");
}

#[test]
fn seeds_a_delay_service() {
    let pairs: &[Pair] =
        &[("X_DELAY_ROUTE", b"delay.10s,orders"), ("X_DELAY_COUNTER", b"7"), ("X_DELAY_REASON", b"not yet")];
    let letter = read("orders-dlq", pairs);
    assert_eq!(
        (letter.dialect, letter.attempts, letter.message.as_deref()),
        (Dialect::Seeds, Some(7), Some("not yet"))
    );
    stripped(Dialect::Seeds, pairs);
}

const OURS: &[Pair] = &[
    ("redrive-origin", b"orders/3/1042"),
    ("redrive-origin-timestamp", b"1700000000000"),
    ("redrive-group", b"payments"),
    ("redrive-attempt", b"4"),
    ("redrive-first-failed-at", b"1700000001000"),
    ("redrive-lane", b"\x00\xff"),
    ("redrive-class", b"transient"),
    ("redrive-error-type", b"Timeout"),
    ("redrive-error-message", b"after 900ms"),
    (
        "redrive-error-chain",
        br#"[{"type":"Timeout","message":"after 900ms"},{"type":"Io","message":"x","status":504}]"#,
    ),
    ("redrive-error-stack", b"at main"),
    ("redrive-history", br#"[{"at":1700000001000,"class":"transient","type":"Timeout","instance":"one"}]"#),
    ("redrive-reason", b"follower"),
    ("redrive-leader", b"orders/3/1040"),
    ("redrive-service", b"shop"),
    ("redrive-instance", b"one"),
    ("redrive-handler", b"http"),
    ("redrive-content-type", b"application/json"),
    ("redrive-buried-at", b"1700000002000"),
    ("redrive-replay", b"job-1/5"),
    ("redrive-pointer", b"orders/3/1042"),
];

#[test]
fn ours_says_everything() {
    let letter = read("orders.payments.dlq", OURS);
    assert_eq!(
        (letter.dialect, letter.origin().unwrap().to_string().as_str()),
        (Dialect::Redrive, "orders/3/1042")
    );
    assert_eq!((letter.class, letter.reason), (Some(Class::Transient), Some(Reason::Follower)));
    assert_eq!((letter.attempts, letter.history.len(), letter.chain.len()), (Some(4), 1, 2));
    assert_eq!(letter.leader.as_ref().unwrap().offset, 1040);
    assert_eq!(letter.lane.as_deref(), Some(&[0, 0xff][..]));
    assert_eq!((letter.key.as_deref(), letter.filed_under.as_ref()), (Some(&b"customer-7"[..]), None));
    assert_eq!(letter.time(), Timestamp::from_millis(1_700_000_002_000));
    assert_eq!((letter.replay.as_deref(), letter.pointer.is_some()), (Some("job-1/5"), true));
    stripped(Dialect::Redrive, OURS);
}

#[test]
fn ours_what_a_wrapper_wraps_is_what_people_look_for() {
    let pairs: &[Pair] = &[
        ("redrive-origin", b"orders/3/1042"),
        ("redrive-error-type", b"redrive::Permanent"),
        ("redrive-error-message", b"permanent: no customer"),
        (
            "redrive-error-chain",
            br#"[{"type":"redrive::Permanent","message":"permanent: no customer"},{"type":"NoCustomer","message":"no customer"}]"#,
        ),
    ];
    let letter = read("orders.payments.dlq", pairs);
    assert_eq!(
        (letter.error_type.as_deref(), letter.message.as_deref()),
        (Some("NoCustomer"), Some("no customer"))
    );
    assert_eq!(letter.chain.len(), 2);
    let bare = read("orders.payments.dlq", &pairs[..3]);
    assert_eq!(bare.error_type.as_deref(), Some("redrive::Permanent"), "where there is nothing else");
}

#[test]
fn ours_filed_under_its_origin_has_its_own_key() {
    let mut filed = record("orders.payments.dlq", OURS);
    filed.key = Some(Bytes::from_static(b"orders/3/1042"));
    let letter = Letter::read(&filed);
    assert_eq!((letter.key, letter.filed_under.as_deref()), (None, Some(&b"orders/3/1042"[..])));
    filed.headers.push("redrive-key", Some(Bytes::from_static(b"k")));
    assert_eq!(Letter::read(&filed).key.as_deref(), Some(&b"k"[..]));
}

#[test]
fn ours_that_is_damaged_is_read_as_far_as_it_goes() {
    let letter = read(
        "orders.payments.dlq",
        &[
            ("redrive-origin", b"orders/3/1042"),
            ("redrive-attempt", b"many"),
            ("redrive-error-message", &[b'x', 0xc3, 0x28]),
            ("redrive-error-chain", b"["),
            ("redrive-reason", b"exhausted"),
        ],
    );
    assert_eq!((letter.reason, letter.attempts), (Some(Reason::Exhausted), None));
    assert_eq!(letter.message.as_deref(), Some("x\u{fffd}("));
    assert_eq!(letter.problems.len(), 3, "{:?}", letter.problems);
}

#[test]
fn a_letter_of_nobody_is_as_it_is() {
    let letter =
        read("anything", &[("trace-id", b"7"), ("redrive-replays", b"2"), ("redrive-replay", b"j/1")]);
    assert_eq!(
        (letter.dialect, letter.replays, letter.replay.as_deref()),
        (Dialect::Unknown, 2, Some("j/1"))
    );
    assert_eq!((letter.error_type, letter.group, letter.source.topic), (None, None, None));
}

#[test]
fn what_others_wrote_before_belongs_to_the_record_that_failed() {
    let mut pairs = OURS.to_vec();
    pairs.extend(CONNECT);
    let record = record("orders.payments.dlq", &pairs);
    assert_eq!(Dialect::of(&record.headers), Dialect::Redrive);
    assert_eq!(Dialect::Redrive.strip(&record.headers).iter().len(), CONNECT.len());
}
