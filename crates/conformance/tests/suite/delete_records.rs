//! DeleteRecords: the log begins later, wherever it is read; nothing is ever deleted beyond its end.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_conformance::{
    Isolation, Target, deliver_all, next_error, next_message, offsets, on_both, records,
};

on_both!(
    records_are_deleted_up_to_an_offset_inside_a_batch,
    all_records_are_deleted_and_the_next_goes_on_counting,
    reading_below_the_start_is_out_of_range,
    deleting_beyond_the_end_is_refused_and_again_is_harmless,
    times_are_not_found_below_the_start,
    a_topic_that_is_only_compacted_refuses,
    the_answer_of_produce_tells_the_new_start,
);

fn delete(broker: &Target, topic: &str, partition: i32, before: Offset) -> Result<Offset, RDKafkaErrorCode> {
    let mut wish = TopicPartitionList::new();
    wish.add_partition_offset(topic, partition, before).expect("an offset");
    let answer = broker.wait(broker.admin().delete_records(&wish, &broker.options())).expect("an answer");
    let partition = &answer.elements()[0];
    match partition.error() {
        Ok(()) => Ok(partition.offset()),
        Err(refused) => Err(refused.rdkafka_error_code().expect("an error of the broker's")),
    }
}

fn ten(broker: &Target, topic: &str) {
    deliver_all(&broker.producer(&[("linger.ms", "50")]), topic, 0, (0..10).map(|number| number.to_string()));
}

fn records_are_deleted_up_to_an_offset_inside_a_batch(broker: &Target) {
    let topic = broker.topic("cut", 1);
    ten(broker, &topic);
    assert_eq!(delete(broker, &topic, 0, Offset::Offset(4)), Ok(Offset::Offset(4)));
    assert_eq!(broker.watermarks(&topic, 0), (4, 10));
    assert_eq!(offsets(&broker.read(&topic, 0, "read_uncommitted")), (4..10).collect::<Vec<i64>>());
}

fn all_records_are_deleted_and_the_next_goes_on_counting(broker: &Target) {
    let topic = broker.topic("cleared", 1);
    ten(broker, &topic);
    assert_eq!(delete(broker, &topic, 0, Offset::End), Ok(Offset::Offset(10)));
    assert_eq!(broker.watermarks(&topic, 0), (10, 10));
    assert_eq!(deliver_all(&broker.producer(&[]), &topic, 0, ["next"]), [10]);
    assert_eq!(offsets(&broker.read(&topic, 0, "read_uncommitted")), [10]);
}

fn reading_below_the_start_is_out_of_range(broker: &Target) {
    let topic = broker.topic("below", 1);
    ten(broker, &topic);
    delete(broker, &topic, 0, Offset::Offset(6)).expect("deleted");
    let reader = broker.reader(&topic, 0, Offset::Offset(5), &[]);
    assert_eq!(next_error(&reader), KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset));
    let reader = broker.reader(&topic, 0, Offset::Offset(5), &[("auto.offset.reset", "earliest")]);
    assert_eq!(rdkafka::Message::offset(&next_message(&reader)), 6);
}

fn deleting_beyond_the_end_is_refused_and_again_is_harmless(broker: &Target) {
    let topic = broker.topic("beyond", 1);
    ten(broker, &topic);
    assert_eq!(delete(broker, &topic, 0, Offset::Offset(11)), Err(RDKafkaErrorCode::OffsetOutOfRange));
    assert_eq!(broker.watermarks(&topic, 0), (0, 10));
    assert_eq!(delete(broker, &topic, 0, Offset::Offset(7)), Ok(Offset::Offset(7)));
    assert_eq!(delete(broker, &topic, 0, Offset::Offset(3)), Ok(Offset::Offset(7)));
    assert_eq!(broker.watermarks(&topic, 0), (7, 10));
}

fn times_are_not_found_below_the_start(broker: &Target) {
    let (topic, mut connection) =
        (broker.topic_with("cut-times", 1, &[("retention.ms", "-1")]), broker.connect());
    let batch = records(&["a", "b", "c"], |place, record| record.timestamp = 1_000 + place as i64);
    connection.produce(&topic, -1, batch);
    delete(broker, &topic, 0, Offset::Offset(2)).expect("deleted");
    let found = connection.list_offset(&topic, 1_000, Isolation::Uncommitted);
    assert_eq!((found.offset, found.timestamp), (2, 1_002));
    assert_eq!(connection.list_offset(&topic, -2, Isolation::Uncommitted).offset, 2);
}

fn a_topic_that_is_only_compacted_refuses(broker: &Target) {
    let topic = broker.topic_with("compacted", 1, &[("cleanup.policy", "compact")]);
    let record = rdkafka::producer::FutureRecord::to(&topic).key("k").payload("v");
    redrive_conformance::deliver(&broker.producer(&[]), record).expect("delivered");
    assert_eq!(delete(broker, &topic, 0, Offset::Offset(1)), Err(RDKafkaErrorCode::PolicyViolation));
}

fn the_answer_of_produce_tells_the_new_start(broker: &Target) {
    let topic = broker.topic("start", 1);
    ten(broker, &topic);
    delete(broker, &topic, 0, Offset::Offset(8)).expect("deleted");
    let answer = broker.connect().produce(&topic, -1, records(&["x"], |_, _| {}));
    assert_eq!((answer.base_offset, answer.log_start_offset), (10, 8));
}
