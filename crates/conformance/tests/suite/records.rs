//! Records: what is produced comes back byte for byte, at the place and with the time it was given.

use rdkafka::Timestamp;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::FutureRecord;
use redrive_conformance::{Delivery, Target, deliver, deliver_all, now_ms, offsets, on_both, values};

on_both!(
    headers_come_back_in_order_with_duplicates_bytes_null_and_empty,
    a_null_key_is_not_an_empty_one_and_a_tombstone_not_an_empty_value,
    a_record_goes_to_the_partition_and_has_the_time_it_was_given,
    a_record_without_a_time_has_that_of_its_production,
    the_broker_sets_the_time_where_the_topic_says_so,
    a_record_of_the_far_future_is_refused,
    every_acknowledgement_level_delivers,
    a_record_above_the_limit_is_refused_and_one_below_is_read_whole,
    a_compacted_topic_refuses_a_record_without_a_key,
);

type Copied = (String, Option<Vec<u8>>);

fn headers(message: &OwnedMessage) -> Vec<Copied> {
    let copy = |header: Header<'_, &[u8]>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
    message.headers().map(|headers| headers.iter().map(copy).collect()).unwrap_or_default()
}

fn headers_come_back_in_order_with_duplicates_bytes_null_and_empty(broker: &Target) {
    let topic = broker.topic("headers", 1);
    let given: Vec<(&str, Option<&[u8]>)> = vec![
        ("trace", Some(b"1")),
        ("binary", Some(&[0, 0xff, 0xfe, 0x80])),
        ("trace", Some(b"2")),
        ("empty", Some(b"")),
        ("null", None),
        ("", Some(b"a key of no length")),
        ("schlüssel", Some("wert".as_bytes())),
    ];
    let insert = |headers: OwnedHeaders, (key, value): &(&str, Option<&[u8]>)| {
        headers.insert(Header { key, value: *value })
    };
    let built = given.iter().fold(OwnedHeaders::new(), insert);
    deliver(&broker.producer(&[]), FutureRecord::to(&topic).key("k").payload("v").headers(built))
        .expect("delivered");
    let read = broker.read(&topic, 0, "read_uncommitted");
    let expected: Vec<Copied> =
        given.iter().map(|(key, value)| ((*key).to_owned(), value.map(<[u8]>::to_vec))).collect();
    assert_eq!(headers(&read[0]), expected);
}

fn a_null_key_is_not_an_empty_one_and_a_tombstone_not_an_empty_value(broker: &Target) {
    let topic = broker.topic("nulls", 1);
    let producer = broker.producer(&[]);
    let record = || FutureRecord::<str, str>::to(&topic).partition(0);
    deliver(&producer, record()).expect("delivered");
    deliver(&producer, record().key("").payload("")).expect("delivered");
    deliver(&producer, record().key("key")).expect("delivered");
    deliver(&producer, record().payload("value")).expect("delivered");
    let read = broker.read(&topic, 0, "read_uncommitted");
    let both: Vec<_> = read.iter().map(|message| (message.key(), message.payload())).collect();
    let (empty, key, value) = (&b""[..], &b"key"[..], &b"value"[..]);
    assert_eq!(both, [(None, None), (Some(empty), Some(empty)), (Some(key), None), (None, Some(value))]);
}

fn a_record_goes_to_the_partition_and_has_the_time_it_was_given(broker: &Target) {
    // Kept for ever: retention would remove so old a record at any moment.
    let topic = broker.topic_with("placed", 4, &[("retention.ms", "-1")]);
    let record = FutureRecord::to(&topic).partition(3).key("k").payload("v").timestamp(1_700_000_000_123);
    let at = deliver(&broker.producer(&[]), record).expect("delivered");
    assert_eq!(at, Delivery { partition: 3, offset: 0 });
    let read = broker.read(&topic, 3, "read_uncommitted");
    assert_eq!(read[0].timestamp(), Timestamp::CreateTime(1_700_000_000_123));
    assert_eq!((0..3).map(|partition| broker.watermarks(&topic, partition)).collect::<Vec<_>>(), [(0, 0); 3]);
}

fn a_record_without_a_time_has_that_of_its_production(broker: &Target) {
    let topic = broker.topic("now", 1);
    let before = now_ms();
    deliver_all(&broker.producer(&[]), &topic, 0, ["v"]);
    let read = broker.read(&topic, 0, "read_uncommitted");
    let Timestamp::CreateTime(time) = read[0].timestamp() else { panic!("{:?}", read[0].timestamp()) };
    assert!((before..=now_ms()).contains(&time));
}

fn the_broker_sets_the_time_where_the_topic_says_so(broker: &Target) {
    let topic = broker.topic_with("append-time", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let before = now_ms();
    let producer = broker.producer(&[("compression.type", "gzip")]);
    for value in ["a", "b"] {
        let record = FutureRecord::<(), _>::to(&topic).payload(value).timestamp(1_000);
        deliver(&producer, record).expect("delivered");
    }
    for message in broker.read(&topic, 0, "read_uncommitted") {
        let Timestamp::LogAppendTime(time) = message.timestamp() else { panic!("{:?}", message.timestamp()) };
        assert!((before..=now_ms()).contains(&time), "{before} {time}");
    }
}

fn a_record_of_the_far_future_is_refused(broker: &Target) {
    let topic = broker.topic_with("future", 1, &[("message.timestamp.before.max.ms", "60000")]);
    let producer = broker.producer(&[]);
    let at = |time| deliver(&producer, FutureRecord::<(), _>::to(&topic).payload("v").timestamp(time));
    assert_eq!(at(now_ms() + 2 * 3_600_000), Err(RDKafkaErrorCode::InvalidTimestamp));
    assert_eq!(at(now_ms() - 120_000), Err(RDKafkaErrorCode::InvalidTimestamp));
    assert!(at(now_ms() - 30_000).is_ok());
}

fn every_acknowledgement_level_delivers(broker: &Target) {
    for acks in ["0", "1", "all"] {
        let topic = broker.topic("acks", 1);
        let producer = broker.producer(&[("acks", acks)]);
        let at = deliver_all(&producer, &topic, 0, ["a", "b", "c"]);
        match acks {
            // Nobody answers, so nobody tells the offsets.
            "0" => assert_eq!(at.len(), 3),
            _ => assert_eq!(at, [0, 1, 2]),
        }
        redrive_conformance::eventually("all records", || {
            (broker.watermarks(&topic, 0) == (0, 3)).then_some(())
        });
        assert_eq!(values(&broker.read(&topic, 0, "read_uncommitted")), ["a", "b", "c"]);
    }
}

fn a_record_above_the_limit_is_refused_and_one_below_is_read_whole(broker: &Target) {
    let (standard, raised) =
        (broker.topic("limit", 1), broker.topic_with("raised", 1, &[("max.message.bytes", "4000000")]));
    let producer = broker.producer(&[("message.max.bytes", "10000000")]);
    let send = |topic: &str, size: usize| {
        let value = vec![b'x'; size];
        deliver(&producer, FutureRecord::<(), _>::to(topic).partition(0).payload(&value)).map(|at| at.offset)
    };
    assert_eq!(send(&standard, 1_100_000), Err(RDKafkaErrorCode::MessageSizeTooLarge));
    assert_eq!(send(&standard, 1_000_000), Ok(0));
    assert_eq!(send(&raised, 4_100_000), Err(RDKafkaErrorCode::MessageSizeTooLarge));
    assert_eq!(send(&raised, 3_900_000), Ok(0));
    assert_eq!(send(&raised, 3), Ok(1));
    // More than the reader asks for at once: the first batch comes whole all the same.
    let from = rdkafka::Offset::Beginning;
    let limits =
        [("fetch.message.max.bytes", "1000"), ("fetch.max.bytes", "10000"), ("message.max.bytes", "10000")];
    let reader = broker.reader(&raised, 0, from, &limits);
    let read = [redrive_conformance::next_message(&reader), redrive_conformance::next_message(&reader)];
    assert_eq!(read.each_ref().map(|message| message.payload().map(<[u8]>::len)), [Some(3_900_000), Some(3)]);
    assert_eq!(offsets(&read), [0, 1]);
}

fn a_compacted_topic_refuses_a_record_without_a_key(broker: &Target) {
    let topic = broker.topic_with("keyed", 1, &[("cleanup.policy", "compact")]);
    let producer = broker.producer(&[]);
    let without = deliver(&producer, FutureRecord::<(), _>::to(&topic).payload("v"));
    assert_eq!(without, Err(RDKafkaErrorCode::InvalidRecord));
    assert!(deliver(&producer, FutureRecord::to(&topic).key("k").payload("v")).is_ok());
}
