//! Idempotent producers: a batch that is sent again is not appended again, and a gap is refused.

use kafka_protocol::ResponseError;
use redrive_conformance::{Target, deliver_all, error, on_both, records, values};

on_both!(
    an_idempotent_producer_delivers_everything_once_and_in_order,
    producers_get_ids_of_their_own,
    a_batch_sent_again_gets_its_first_answer_again,
    a_gap_in_the_sequence_is_refused,
    an_older_epoch_is_refused_and_a_newer_one_begins_at_zero,
    sequences_are_kept_for_each_partition_of_each_producer,
);

fn an_idempotent_producer_delivers_everything_once_and_in_order(broker: &Target) {
    let topic = broker.topic("idempotent", 1);
    let small = [("enable.idempotence", "true"), ("linger.ms", "0"), ("batch.num.messages", "7")];
    let sent: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
    let at = deliver_all(&broker.producer(&small), &topic, 0, &sent);
    assert_eq!(at, (0..1_000).collect::<Vec<i64>>());
    assert_eq!(values(&broker.read(&topic, 0, "read_uncommitted")), sent);
}

fn producers_get_ids_of_their_own(broker: &Target) {
    let mut connection = broker.connect();
    let (one, two) = (connection.init_producer(None), connection.init_producer(None));
    assert_eq!((one.error_code, one.producer_epoch, two.error_code, two.producer_epoch), (0, 0, 0, 0));
    assert_ne!(one.producer_id, two.producer_id);
}

/// A producer by hand: sends two records from this sequence on, in this epoch; the offset or the error.
fn hand(broker: &Target, topic: &str) -> impl FnMut(i16, i32) -> Result<i64, Option<ResponseError>> {
    let mut connection = broker.connect();
    let producer = connection.init_producer(None).producer_id;
    let topic = topic.to_owned();
    move |epoch, sequence| {
        let batch = records(&["a", "b"], |place, record| {
            record.producer_id = producer.0;
            record.producer_epoch = epoch;
            record.sequence = sequence + i32::try_from(place).expect("a small batch");
        });
        let answer = connection.produce(&topic, -1, batch);
        if answer.error_code == 0 { Ok(answer.base_offset) } else { Err(error(answer.error_code)) }
    }
}

fn a_batch_sent_again_gets_its_first_answer_again(broker: &Target) {
    let topic = broker.topic("duplicate", 1);
    let mut send = hand(broker, &topic);
    for number in 0..6 {
        assert_eq!(send(0, 2 * number), Ok(i64::from(2 * number)));
    }
    // The last five are remembered.
    for number in 1..6 {
        assert_eq!(send(0, 2 * number), Ok(i64::from(2 * number)), "batch {number} again");
    }
    assert_eq!(send(0, 0), Err(Some(ResponseError::OutOfOrderSequenceNumber)), "forgotten");
    assert_eq!(broker.watermarks(&topic, 0), (0, 12));
}

fn a_gap_in_the_sequence_is_refused(broker: &Target) {
    let topic = broker.topic("gap", 1);
    let mut send = hand(broker, &topic);
    assert_eq!(send(0, 0), Ok(0));
    assert_eq!(send(0, 4), Err(Some(ResponseError::OutOfOrderSequenceNumber)));
    assert_eq!(send(0, 1), Err(Some(ResponseError::OutOfOrderSequenceNumber)), "half a duplicate");
    assert_eq!(send(0, 2), Ok(2));
    assert_eq!(broker.watermarks(&topic, 0), (0, 4));
}

fn an_older_epoch_is_refused_and_a_newer_one_begins_at_zero(broker: &Target) {
    let topic = broker.topic("epochs", 1);
    let mut send = hand(broker, &topic);
    assert_eq!(send(1, 0), Ok(0));
    assert_eq!(send(0, 2), Err(Some(ResponseError::InvalidProducerEpoch)));
    assert_eq!(send(2, 2), Err(Some(ResponseError::OutOfOrderSequenceNumber)));
    assert_eq!(send(2, 0), Ok(2));
}

fn sequences_are_kept_for_each_partition_of_each_producer(broker: &Target) {
    let (one, two) = (broker.topic("sequence", 1), broker.topic("sequence", 1));
    let (mut first, mut second) = (hand(broker, &one), hand(broker, &one));
    assert_eq!((first(0, 0), second(0, 0)), (Ok(0), Ok(2)));
    // The first batch of a producer that the partition does not know may begin anywhere: what came
    // before may have been deleted.
    assert_eq!(hand(broker, &two)(0, 10), Ok(0));
}
