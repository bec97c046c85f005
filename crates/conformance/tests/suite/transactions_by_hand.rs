//! Transactions request by request: the coordinator's answers to what is late, repeated or out of place.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, ProducerId};
use redrive_conformance::{Appetite, Isolation, Target, error, eventually, on_both, transactional_id};

on_both!(
    an_initialisation_raises_the_epoch,
    an_end_is_answered_again_and_never_turned_around,
    what_was_not_begun_cannot_end,
    a_partition_that_was_not_added_cannot_be_written_to,
    the_elder_epoch_is_refused_everywhere,
    a_foreign_producer_id_is_refused,
    a_timeout_above_the_limit_is_refused,
    aborted_transactions_are_listed_to_readers_of_committed_records,
);

fn an_initialisation_raises_the_epoch(broker: &Target) {
    let id = broker.name("epoch");
    let (first, second) = (broker.hand_producer(&id), broker.hand_producer(&id));
    assert_eq!(first.producer, second.producer);
    assert_eq!(second.epoch, first.epoch + 1);
    assert_ne!(broker.hand_producer(&broker.name("epoch")).producer, first.producer);
}

fn an_end_is_answered_again_and_never_turned_around(broker: &Target) {
    let topic = broker.topic("again", 1);
    let mut producer = broker.hand_producer(&broker.name("again"));
    assert_eq!(producer.add_partition(&topic), None);
    assert_eq!(producer.produce(&topic, 0), None);
    assert_eq!(producer.end(true), None);
    assert_eq!(producer.end(true), None, "the answer was lost");
    assert_eq!(producer.end(false), Some(ResponseError::InvalidTxnState));
    assert_eq!(producer.add_partition(&topic), None);
    assert_eq!(producer.end(false), None);
    assert_eq!(producer.end(false), None);
    assert_eq!(producer.end(true), Some(ResponseError::InvalidTxnState));
}

fn what_was_not_begun_cannot_end(broker: &Target) {
    let mut producer = broker.hand_producer(&broker.name("nothing"));
    assert_eq!(producer.end(true), Some(ResponseError::InvalidTxnState));
    assert_eq!(producer.end(false), Some(ResponseError::InvalidTxnState));
}

fn a_partition_that_was_not_added_cannot_be_written_to(broker: &Target) {
    let (added, other) = (broker.topic("added", 1), broker.topic("not-added", 1));
    let mut producer = broker.hand_producer(&broker.name("not-added"));
    assert_eq!(producer.produce(&other, 0), Some(ResponseError::InvalidTxnState));
    assert_eq!(producer.add_partition(&added), None);
    assert_eq!(producer.produce(&other, 0), Some(ResponseError::InvalidTxnState));
    assert_eq!(producer.produce(&added, 0), None);
    assert_eq!(producer.end(true), None);
    assert_eq!(broker.watermarks(&other, 0), (0, 0));
    // Nor once it has ended.
    eventually("the end is written", || (broker.watermarks(&added, 0) == (0, 2)).then_some(()));
    assert_eq!(producer.produce(&added, 1), Some(ResponseError::InvalidTxnState));
    let absent = broker.name("absent");
    assert_eq!(producer.add_partition(&absent), Some(ResponseError::UnknownTopicOrPartition));
}

fn the_elder_epoch_is_refused_everywhere(broker: &Target) {
    let (topic, group, id) = (broker.topic("elder", 1), broker.name("elder"), broker.name("elder"));
    let _ready = broker.group_coordinator(&group);
    let mut elder = broker.hand_producer(&id);
    assert_eq!(elder.add_partition(&topic), None);
    assert_eq!(elder.produce(&topic, 0), None);
    let mut younger = broker.hand_producer(&id);
    assert_eq!(elder.add_partition(&topic), Some(ResponseError::ProducerFenced));
    assert_eq!(elder.add_offsets(&group), Some(ResponseError::ProducerFenced));
    assert_eq!(elder.end(true), Some(ResponseError::ProducerFenced));
    assert_eq!(elder.produce(&topic, 1), Some(ResponseError::InvalidProducerEpoch));
    assert_eq!(younger.add_partition(&topic), None);
    assert_eq!(younger.produce(&topic, 0), None);
    assert_eq!(younger.end(true), None);
}

fn a_foreign_producer_id_is_refused(broker: &Target) {
    let (topic, group) = (broker.topic("foreign", 1), broker.name("foreign"));
    let _ready = broker.group_coordinator(&group);
    let mut producer = broker.hand_producer(&broker.name("foreign"));
    producer.producer = ProducerId(producer.producer.0 + 1_000_000);
    assert_eq!(producer.add_partition(&topic), Some(ResponseError::InvalidProducerIdMapping));
    assert_eq!(producer.add_offsets(&group), Some(ResponseError::InvalidProducerIdMapping));
    assert_eq!(producer.end(true), Some(ResponseError::InvalidProducerIdMapping));
    let mut unknown = broker.hand_producer(&broker.name("known"));
    unknown.id = broker.name("unknown");
    assert_eq!(unknown.add_partition(&topic), Some(ResponseError::InvalidProducerIdMapping));
}

fn a_timeout_above_the_limit_is_refused(broker: &Target) {
    let id = broker.name("timeout");
    let mut connection = broker.hand_producer(&broker.name("ready")).connection;
    let mut init = |timeout| {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(transactional_id(&id)))
            .with_transaction_timeout_ms(timeout);
        error(connection.ask(&request, 4).error_code)
    };
    for timeout in [900_001, 0, -1] {
        assert_eq!(init(timeout), Some(ResponseError::InvalidTransactionTimeout), "{timeout}");
    }
    assert_eq!(init(900_000), None);
}

fn aborted_transactions_are_listed_to_readers_of_committed_records(broker: &Target) {
    let topic = broker.topic("aborted", 1);
    let mut producer = broker.hand_producer(&broker.name("aborted"));
    for (sequence, committed) in [(0, false), (1, true), (2, false)] {
        assert_eq!(producer.add_partition(&topic), None);
        assert_eq!(producer.produce(&topic, sequence), None);
        assert_eq!(producer.end(committed), None);
    }
    let mut connection = broker.connect();
    let mut aborted = |from, isolation| {
        let fetched = connection.fetch((&topic, 0), from, isolation, Appetite::default());
        assert_eq!(fetched.error_code, 0);
        let list = fetched.aborted_transactions.unwrap_or_default();
        list.iter().map(|aborted| (aborted.producer_id, aborted.first_offset)).collect::<Vec<_>>()
    };
    eventually("the last end is written", || (broker.watermarks(&topic, 0) == (0, 6)).then_some(()));
    let id = producer.producer;
    assert_eq!(aborted(0, Isolation::Committed), [(id, 0), (id, 4)]);
    assert_eq!(aborted(2, Isolation::Committed), [(id, 4)]);
    assert_eq!(aborted(0, Isolation::Uncommitted), []);
}
