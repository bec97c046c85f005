//! Transactions through librdkafka: seen when committed, never when aborted, and held back while open.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use redrive_conformance::{
    Appetite, Isolation, PATIENCE, Target, deliver, deliver_all, eventually, offsets, on_both, values,
};

on_both!(
    committed_records_are_seen_and_the_marker_takes_an_offset,
    aborted_records_are_seen_only_by_those_who_read_uncommitted,
    open_transactions_hold_back_readers_of_committed_records,
    a_transaction_spans_partitions_and_topics,
    transactions_follow_one_another,
    the_younger_producer_fences_the_elder_and_ends_its_transaction,
    a_transaction_that_takes_too_long_is_aborted,
    an_empty_transaction_is_committed_and_aborted,
);

fn send(producer: &FutureProducer, topic: &str, value: &str) -> i64 {
    let record = FutureRecord::<(), _>::to(topic).partition(0).payload(value);
    deliver(producer, record).expect("delivered").offset
}

/// The code of a transaction's error, and whether it is fatal.
fn refusal(refused: &KafkaError) -> (RDKafkaErrorCode, bool) {
    match refused {
        KafkaError::Transaction(refused) => (refused.code(), refused.is_fatal()),
        other => panic!("{other}"),
    }
}

fn committed(broker: &Target, topic: &str) -> Vec<String> {
    values(&broker.read_decided(topic))
}

fn uncommitted(broker: &Target, topic: &str) -> Vec<String> {
    values(&broker.read(topic, 0, "read_uncommitted"))
}

fn committed_records_are_seen_and_the_marker_takes_an_offset(broker: &Target) {
    let topic = broker.topic("commit", 1);
    let producer = broker.transactional(&broker.name("commit"));
    for value in ["one", "two"] {
        producer.begin_transaction().expect("begun");
        send(&producer, &topic, value);
        producer.commit_transaction(PATIENCE).expect("committed");
    }
    let read = broker.read_decided(&topic);
    assert_eq!((values(&read), offsets(&read)), (vec!["one".to_owned(), "two".to_owned()], vec![0, 2]));
    assert_eq!(broker.watermarks(&topic, 0), (0, 4));
}

fn aborted_records_are_seen_only_by_those_who_read_uncommitted(broker: &Target) {
    let topic = broker.topic("abort", 1);
    let producer = broker.transactional(&broker.name("abort"));
    producer.begin_transaction().expect("begun");
    send(&producer, &topic, "aborted");
    producer.abort_transaction(PATIENCE).expect("aborted");
    deliver_all(&broker.producer(&[]), &topic, 0, ["plain"]);
    producer.begin_transaction().expect("begun");
    send(&producer, &topic, "committed");
    producer.commit_transaction(PATIENCE).expect("committed");
    let read = broker.read_decided(&topic);
    assert_eq!(
        (values(&read), offsets(&read)),
        (vec!["plain".to_owned(), "committed".to_owned()], vec![2, 3])
    );
    assert_eq!(uncommitted(broker, &topic), ["aborted", "plain", "committed"]);
}

fn open_transactions_hold_back_readers_of_committed_records(broker: &Target) {
    let topic = broker.topic("open", 1);
    deliver_all(&broker.producer(&[]), &topic, 0, ["before"]);
    let producer = broker.transactional(&broker.name("open"));
    producer.begin_transaction().expect("begun");
    send(&producer, &topic, "open");
    deliver_all(&broker.producer(&[]), &topic, 0, ["after"]);
    assert_eq!(values(&broker.read(&topic, 0, "read_committed")), ["before"]);
    assert_eq!(uncommitted(broker, &topic), ["before", "open", "after"]);
    let mut connection = broker.connect();
    let stable = |connection: &mut redrive_conformance::Connection| {
        let fetched = connection.fetch((&topic, 0), 1, Isolation::Committed, Appetite::default());
        (fetched.last_stable_offset, fetched.high_watermark)
    };
    assert_eq!(stable(&mut connection), (1, 3));
    assert_eq!(connection.list_offset(&topic, -1, Isolation::Committed).offset, 1);
    assert_eq!(connection.list_offset(&topic, -1, Isolation::Uncommitted).offset, 3);
    producer.commit_transaction(PATIENCE).expect("committed");
    assert_eq!(committed(broker, &topic), ["before", "open", "after"]);
    assert_eq!(stable(&mut connection), (4, 4));
}

fn a_transaction_spans_partitions_and_topics(broker: &Target) {
    let (one, two) = (broker.topic("span", 3), broker.topic("span", 1));
    let producer = broker.transactional(&broker.name("span"));
    producer.begin_transaction().expect("begun");
    for partition in 0..3 {
        deliver_all(&producer, &one, partition, ["x"]);
    }
    send(&producer, &two, "x");
    for (topic, partition) in [(&one, 0), (&one, 2), (&two, 0)] {
        assert_eq!(broker.read(topic, partition, "read_committed").len(), 0);
    }
    producer.commit_transaction(PATIENCE).expect("committed");
    for (topic, partition) in [(&one, 0), (&one, 1), (&one, 2), (&two, 0)] {
        eventually("all or nothing", || {
            (values(&broker.read(topic, partition, "read_committed")) == ["x"]).then_some(())
        });
    }
}

fn transactions_follow_one_another(broker: &Target) {
    let topic = broker.topic("follow", 1);
    let producer = broker.transactional(&broker.name("follow"));
    let mut expected = Vec::new();
    for number in 0..20 {
        producer.begin_transaction().expect("begun");
        let value = number.to_string();
        send(&producer, &topic, &value);
        if number % 3 == 0 {
            producer.abort_transaction(PATIENCE).expect("aborted");
        } else {
            producer.commit_transaction(PATIENCE).expect("committed");
            expected.push(value);
        }
    }
    assert_eq!(committed(broker, &topic), expected);
}

fn the_younger_producer_fences_the_elder_and_ends_its_transaction(broker: &Target) {
    let (topic, id) = (broker.topic("fence", 1), broker.name("fence"));
    let elder = broker.transactional(&id);
    elder.begin_transaction().expect("begun");
    send(&elder, &topic, "of the elder");
    let younger = broker.transactional(&id);
    let refused = elder.commit_transaction(PATIENCE).expect_err("fenced");
    assert_eq!(refusal(&refused), (RDKafkaErrorCode::Fenced, true));
    younger.begin_transaction().expect("begun");
    send(&younger, &topic, "of the younger");
    younger.commit_transaction(PATIENCE).expect("committed");
    assert_eq!(committed(broker, &topic), ["of the younger"]);
    assert_eq!(uncommitted(broker, &topic), ["of the elder", "of the younger"]);
}

fn a_transaction_that_takes_too_long_is_aborted(broker: &Target) {
    let topic = broker.topic("slow", 1);
    let id = broker.name("slow");
    let limits = [
        ("transactional.id", id.as_str()),
        ("transaction.timeout.ms", "5000"),
        ("message.timeout.ms", "5000"),
        ("socket.timeout.ms", "5000"),
    ];
    let producer = broker.producer(&limits);
    producer.init_transactions(PATIENCE).expect("a transactional producer");
    producer.begin_transaction().expect("begun");
    send(&producer, &topic, "too late");
    deliver_all(&broker.producer(&[]), &topic, 0, ["after"]);
    // Kafka looks for such transactions every ten seconds.
    assert_eq!(committed(broker, &topic), ["after"]);
    let refused = producer.commit_transaction(PATIENCE).expect_err("too late");
    let (code, _) = refusal(&refused);
    assert_eq!(code, RDKafkaErrorCode::Fenced);
}

fn an_empty_transaction_is_committed_and_aborted(broker: &Target) {
    let topic = broker.topic("empty", 1);
    let producer = broker.transactional(&broker.name("empty"));
    producer.begin_transaction().expect("begun");
    producer.commit_transaction(PATIENCE).expect("committed");
    producer.begin_transaction().expect("begun");
    producer.abort_transaction(PATIENCE).expect("aborted");
    producer.begin_transaction().expect("begun");
    send(&producer, &topic, "x");
    producer.commit_transaction(PATIENCE).expect("committed");
    assert_eq!(committed(broker, &topic), ["x"]);
}
