//! Offsets by time: the first record that is not older, inside a batch too; the start, the end, the latest.

use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_conformance::{Connection, Isolation, PATIENCE, Target, on_both, records};

on_both!(
    the_first_record_that_is_not_older_is_found_inside_a_batch,
    times_out_of_order_are_searched_from_the_start,
    an_empty_partition_has_no_time,
    librdkafka_finds_offsets_by_time,
);

/// Times are old: kept for ever, or retention would remove them at any moment.
const KEPT: [(&str, &str); 1] = [("retention.ms", "-1")];

fn produce(connection: &mut Connection, topic: &str, times: &[i64]) {
    let values = vec!["value"; times.len()];
    let answer =
        connection.produce(topic, -1, records(&values, |place, record| record.timestamp = times[place]));
    assert_eq!(answer.error_code, 0);
}

fn at(connection: &mut Connection, topic: &str, time: i64) -> (i64, i64) {
    let answer = connection.list_offset(topic, time, Isolation::Uncommitted);
    assert_eq!(answer.error_code, 0);
    (answer.offset, answer.timestamp)
}

fn the_first_record_that_is_not_older_is_found_inside_a_batch(broker: &Target) {
    let (topic, mut connection) = (broker.topic_with("times", 1, &KEPT), broker.connect());
    produce(&mut connection, &topic, &[1_000, 2_000, 3_000]);
    produce(&mut connection, &topic, &[4_000, 5_000, 6_000]);
    for (time, found) in [
        (0, (0, 1_000)),
        (1_000, (0, 1_000)),
        (1_001, (1, 2_000)),
        (3_000, (2, 3_000)),
        (3_500, (3, 4_000)),
        (5_999, (5, 6_000)),
        (6_000, (5, 6_000)),
        (6_001, (-1, -1)),
        (-1, (6, -1)),
        (-2, (0, -1)),
        (-3, (5, 6_000)),
    ] {
        assert_eq!(at(&mut connection, &topic, time), found, "{time}");
    }
}

fn times_out_of_order_are_searched_from_the_start(broker: &Target) {
    let (topic, mut connection) = (broker.topic_with("disorder", 1, &KEPT), broker.connect());
    produce(&mut connection, &topic, &[5_000, 1_000]);
    produce(&mut connection, &topic, &[3_000, 9_000, 2_000]);
    for (time, found) in [(1_000, (0, 5_000)), (4_000, (0, 5_000)), (5_001, (3, 9_000)), (-3, (3, 9_000))] {
        assert_eq!(at(&mut connection, &topic, time), found, "{time}");
    }
}

fn an_empty_partition_has_no_time(broker: &Target) {
    let (topic, mut connection) = (broker.topic("timeless", 1), broker.connect());
    for (time, found) in [(0, (-1, -1)), (-1, (0, -1)), (-2, (0, -1)), (-3, (-1, -1))] {
        assert_eq!(at(&mut connection, &topic, time), found, "{time}");
    }
}

fn librdkafka_finds_offsets_by_time(broker: &Target) {
    let (topic, mut connection) = (broker.topic_with("client-times", 1, &KEPT), broker.connect());
    produce(&mut connection, &topic, &[1_000, 2_000, 3_000]);
    let reader = broker.reader(&topic, 0, Offset::Beginning, &[]);
    for (time, offset) in [(1_500, Offset::Offset(1)), (9_999, Offset::End)] {
        let mut wanted = TopicPartitionList::new();
        wanted.add_partition_offset(&topic, 0, Offset::Offset(time)).expect("a time");
        let found = reader.offsets_for_times(wanted, PATIENCE).expect("offsets");
        assert_eq!(found.elements()[0].offset(), offset, "{time}");
    }
    assert_eq!(broker.watermarks(&topic, 0), (0, 3));
}
