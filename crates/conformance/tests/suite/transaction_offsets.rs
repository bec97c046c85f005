//! Offsets in a transaction: they count when it commits, and only from a member of the present generation.

use kafka_protocol::ResponseError;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{FutureRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_conformance::{
    PATIENCE, Target, Voice, deliver, deliver_all, error, next_message, on_both, settle, text, values,
};

on_both!(
    offsets_count_with_the_records_of_their_transaction,
    offsets_of_an_aborted_transaction_do_not_count,
    offsets_of_an_open_transaction_are_unstable,
    offsets_from_a_stale_generation_are_refused,
    only_nobody_and_present_members_commit_offsets_in_a_transaction,
    a_member_commits_four_thousand_bytes_for_a_topic_it_does_not_subscribe_to,
    offsets_that_were_not_announced_are_refused,
);

fn offset(topic: &str, offset: i64, metadata: &str) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    let mut entry = list.add_partition(topic, 0);
    entry.set_offset(Offset::Offset(offset)).expect("an offset");
    entry.set_metadata(metadata);
    list
}

fn offsets_count_with_the_records_of_their_transaction(broker: &Target) {
    let (from, to, group) = (broker.topic("from", 1), broker.topic("to", 1), broker.name("exactly-once"));
    deliver_all(&broker.producer(&[]), &from, 0, ["a", "b", "c"]);
    let member = broker.member(&group, &[]);
    member.subscribe(&[&from]).expect("subscribed");
    let producer = broker.transactional(&broker.name("exactly-once"));
    producer.begin_transaction().expect("begun");
    for _ in 0..2 {
        let message = next_message(&member);
        let record = FutureRecord::<(), _>::to(&to).payload(message.payload().expect("a value"));
        deliver(&producer, record).expect("delivered");
    }
    let metadata = member.group_metadata().expect("a member");
    producer.send_offsets_to_transaction(&offset(&from, 2, "note"), &metadata, PATIENCE).expect("sent");
    producer.commit_transaction(PATIENCE).expect("committed");
    assert_eq!(values(&broker.read_decided(&to)), ["a", "b"]);
    let found = broker.group_coordinator(&group).committed_for_good(&group, &from);
    assert_eq!((found.error_code, found.committed_offset, found.metadata), (0, 2, Some(text("note"))));
    drop(member);
    let member = broker.member(&group, &[("isolation.level", "read_committed")]);
    member.subscribe(&[&from]).expect("subscribed");
    assert_eq!(next_message(&member).offset(), 2);
}

fn offsets_of_an_aborted_transaction_do_not_count(broker: &Target) {
    let (topic, group, id) = (broker.topic("void", 1), broker.name("void"), broker.name("void"));
    let mut connection = broker.group_coordinator(&group);
    let mut producer = broker.hand_producer(&id);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&topic, 1), 1, Some("kept")), [None]);
    assert_eq!(producer.add_offsets(&group), None);
    assert_eq!(producer.commit_offset((&group, &Voice::outsider()), &topic, 9, "void"), None);
    assert_eq!(producer.end(false), None);
    let found = connection.committed_for_good(&group, &topic);
    assert_eq!((found.committed_offset, found.metadata), (1, Some(text("kept"))));
}

fn offsets_of_an_open_transaction_are_unstable(broker: &Target) {
    let (topic, group, id) = (broker.topic("unstable", 1), broker.name("unstable"), broker.name("unstable"));
    let mut connection = broker.group_coordinator(&group);
    let mut producer = broker.hand_producer(&id);
    assert_eq!(connection.commit((&group, &Voice::outsider()), (&topic, 1), 1, None), [None]);
    assert_eq!(producer.add_offsets(&group), None);
    assert_eq!(producer.commit_offset((&group, &Voice::outsider()), &topic, 9, ""), None);
    let found = connection.committed(&group, &topic, true);
    assert_eq!(error(found.error_code), Some(ResponseError::UnstableOffsetCommit));
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, 1);
    assert_eq!(producer.end(true), None);
    let found = connection.committed_for_good(&group, &topic);
    assert_eq!(found.committed_offset, 9);
}

fn offsets_from_a_stale_generation_are_refused(broker: &Target) {
    let (topic, group) = (broker.topic("zombie", 2), broker.name("zombie"));
    let first = broker.member(&group, &[]);
    first.subscribe(&[&topic]).expect("subscribed");
    settle(&[&first], &[2]);
    let captured = first.group_metadata().expect("a member");
    let second = broker.member(&group, &[]);
    second.subscribe(&[&topic]).expect("subscribed");
    settle(&[&first, &second], &[1, 1]);
    let producer = broker.transactional(&broker.name("zombie"));
    producer.begin_transaction().expect("begun");
    let refused = producer.send_offsets_to_transaction(&offset(&topic, 5, ""), &captured, PATIENCE);
    match refused.expect_err("a stale generation") {
        KafkaError::Transaction(refused) => {
            assert_eq!(refused.code(), RDKafkaErrorCode::IllegalGeneration);
            assert!(refused.txn_requires_abort(), "only this transaction is lost");
        }
        other => panic!("{other}"),
    }
    producer.abort_transaction(PATIENCE).expect("aborted");
    producer.begin_transaction().expect("begun");
    let present = first.group_metadata().expect("a member");
    producer.send_offsets_to_transaction(&offset(&topic, 6, ""), &present, PATIENCE).expect("sent");
    producer.commit_transaction(PATIENCE).expect("committed");
    let found = broker.group_coordinator(&group).committed_for_good(&group, &topic);
    assert_eq!((found.error_code, found.committed_offset), (0, 6));
}

fn only_nobody_and_present_members_commit_offsets_in_a_transaction(broker: &Target) {
    let (topic, group, id) = (broker.topic("voices", 1), broker.name("voices"), broker.name("voices"));
    let mut connection = broker.group_coordinator(&group);
    let member = connection.join_alone(&group, &topic);
    let mut producer = broker.hand_producer(&id);
    assert_eq!(producer.add_offsets(&group), None);
    let mut commit = |voice: &Voice| producer.commit_offset((&group, voice), &topic, 1, "");
    assert_eq!(commit(&member), None);
    let stale = Voice { generation: member.generation - 1, ..member.clone() };
    assert_eq!(commit(&stale), Some(ResponseError::IllegalGeneration));
    let stranger = Voice { member: text("stranger"), ..member };
    assert_eq!(commit(&stranger), Some(ResponseError::UnknownMemberId));
    // Unlike a plain commit: whoever names no member passes unfenced, members or not.
    assert_eq!(commit(&Voice::outsider()), None);
    assert_eq!(producer.end(true), None);
}

fn a_member_commits_four_thousand_bytes_for_a_topic_it_does_not_subscribe_to(broker: &Target) {
    let (topic, other, group) = (broker.topic("own", 1), broker.topic("other", 1), broker.name("foreign"));
    let member = broker.member(&group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let producer = broker.transactional(&broker.name("foreign"));
    let present = member.group_metadata().expect("a member");
    let note = "m".repeat(4_000);
    producer.begin_transaction().expect("begun");
    producer.send_offsets_to_transaction(&offset(&other, 42, &note), &present, PATIENCE).expect("sent");
    producer.commit_transaction(PATIENCE).expect("committed");
    let mut connection = broker.group_coordinator(&group);
    let found = connection.committed_for_good(&group, &other);
    assert_eq!((found.committed_offset, found.metadata), (42, Some(text(&note))));

    producer.begin_transaction().expect("begun");
    let too_long = offset(&other, 43, &"m".repeat(4_097));
    let refused = producer.send_offsets_to_transaction(&too_long, &present, PATIENCE).expect_err("too long");
    assert_eq!(refused.rdkafka_error_code(), Some(RDKafkaErrorCode::OffsetMetadataTooLarge));
    producer.abort_transaction(PATIENCE).expect("aborted");
    assert_eq!(connection.committed_for_good(&group, &other).committed_offset, 42);
}

fn offsets_that_were_not_announced_are_refused(broker: &Target) {
    let (topic, group, id) = (broker.topic("sudden", 1), broker.name("sudden"), broker.name("sudden"));
    let mut connection = broker.group_coordinator(&group);
    let mut producer = broker.hand_producer(&id);
    let refused = producer.commit_offset((&group, &Voice::outsider()), &topic, 9, "");
    assert_eq!(refused, Some(ResponseError::InvalidTxnState));
    assert_eq!(connection.committed(&group, &topic, true).committed_offset, -1);
}
