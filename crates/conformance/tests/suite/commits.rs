//! Committed offsets: where a group goes on, what it noted beside them, who may write them.

use kafka_protocol::ResponseError;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_conformance::{PATIENCE, Target, Voice, deliver_all, next_message, on_both, settle, text};

on_both!(
    a_group_resumes_at_its_commit,
    metadata_of_a_commit_comes_back,
    without_a_commit_reading_begins_where_the_reset_says,
    a_member_commits_four_thousand_bytes_for_a_topic_it_does_not_subscribe_to,
    more_metadata_than_allowed_is_refused,
    too_many_full_commits_at_once_are_refused_together,
    a_topic_that_does_not_exist_cannot_be_committed,
    an_outsider_commits_only_while_the_group_is_empty,
    a_stale_generation_or_an_unknown_member_cannot_commit,
    commits_of_one_group_are_not_seen_by_another,
);

fn commit(topic: &str, partition: i32, offset: i64, metadata: &str) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    let mut entry = list.add_partition(topic, partition);
    entry.set_offset(Offset::Offset(offset)).expect("an offset");
    entry.set_metadata(metadata);
    list
}

fn committed(consumer: &impl Consumer<redrive_conformance::Rebalances>, topic: &str) -> (Offset, String) {
    let mut wanted = TopicPartitionList::new();
    wanted.add_partition(topic, 0);
    let found = consumer.committed_offsets(wanted, PATIENCE).expect("offsets");
    (found.elements()[0].offset(), found.elements()[0].metadata().to_owned())
}

fn a_group_resumes_at_its_commit(broker: &Target) {
    let (topic, group) = (broker.topic("resume", 1), broker.name("resume"));
    deliver_all(&broker.producer(&[]), &topic, 0, (0..10).map(|number| number.to_string()));
    let first = broker.member(&group, &[]);
    first.subscribe(&[&topic]).expect("subscribed");
    let read: Vec<_> = (0..7).map(|_| next_message(&first).offset()).collect();
    assert_eq!(read, (0..7).collect::<Vec<i64>>());
    first.commit(&commit(&topic, 0, 4, ""), CommitMode::Sync).expect("committed");
    assert_eq!(committed(&first, &topic).0, Offset::Offset(4));
    drop(first);
    let second = broker.member(&group, &[]);
    second.subscribe(&[&topic]).expect("subscribed");
    assert_eq!(next_message(&second).offset(), 4);
}

fn metadata_of_a_commit_comes_back(broker: &Target) {
    let (topic, group) = (broker.topic("noted", 1), broker.name("noted"));
    let consumer = broker.member(&group, &[]);
    for metadata in ["a note", "", "späte Größe {\"x\": 1}\n"] {
        consumer.commit(&commit(&topic, 0, 3, metadata), CommitMode::Sync).expect("committed");
        assert_eq!(committed(&consumer, &topic), (Offset::Offset(3), metadata.to_owned()));
    }
    let mut connection = broker.group_coordinator(&group);
    let refused = connection.commit((&group, &Voice::outsider()), (&topic, 1), 5, None);
    assert_eq!(refused, [None]);
    let found = connection.committed(&group, &topic, false);
    assert_eq!((found.error_code, found.committed_offset, found.metadata), (0, 5, Some(text(""))));
}

fn without_a_commit_reading_begins_where_the_reset_says(broker: &Target) {
    let topic = broker.topic("reset", 1);
    let producer = broker.producer(&[]);
    deliver_all(&producer, &topic, 0, ["old"]);
    let earliest = broker.member(&broker.name("earliest"), &[]);
    assert_eq!(committed(&earliest, &topic), (Offset::Invalid, String::new()));
    earliest.subscribe(&[&topic]).expect("subscribed");
    assert_eq!(next_message(&earliest).payload(), Some(&b"old"[..]));
    let latest = broker.member(&broker.name("latest"), &[("auto.offset.reset", "latest")]);
    latest.subscribe(&[&topic]).expect("subscribed");
    settle(&[&latest], &[1]);
    // Its position shows that the end was looked up; what comes then is new.
    redrive_conformance::eventually("a position", || {
        deliver_all(&producer, &topic, 0, ["new"]);
        let message = latest.poll(std::time::Duration::from_millis(50))?.expect("a record");
        assert_eq!(message.payload(), Some(&b"new"[..]));
        Some(())
    });
}

fn a_member_commits_four_thousand_bytes_for_a_topic_it_does_not_subscribe_to(broker: &Target) {
    let (topic, other, group) = (broker.topic("own", 1), broker.topic("other", 1), broker.name("foreign"));
    let member = broker.member(&group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let metadata = "m".repeat(4_000);
    member.commit(&commit(&other, 0, 42, &metadata), CommitMode::Sync).expect("committed");
    assert_eq!(committed(&member, &other), (Offset::Offset(42), metadata));
    assert_eq!(committed(&member, &topic).0, Offset::Invalid);
}

fn more_metadata_than_allowed_is_refused(broker: &Target) {
    let (topic, group) = (broker.topic("too-much", 1), broker.name("too-much"));
    let consumer = broker.member(&group, &[]);
    consumer.commit(&commit(&topic, 0, 1, &"m".repeat(4_096)), CommitMode::Sync).expect("committed");
    let refused = consumer.commit(&commit(&topic, 0, 2, &"m".repeat(4_097)), CommitMode::Sync);
    let code = refused.expect_err("too much").rdkafka_error_code();
    assert_eq!(code, Some(RDKafkaErrorCode::OffsetMetadataTooLarge));
    assert_eq!(committed(&consumer, &topic).0, Offset::Offset(1));
}

fn too_many_full_commits_at_once_are_refused_together(broker: &Target) {
    let (topic, group) = (broker.topic("full", 300), broker.name("full"));
    let mut connection = broker.group_coordinator(&group);
    let metadata = "m".repeat(4_096);
    let mut commit = |partitions| {
        connection.commit((&group, &Voice::outsider()), (&topic, partitions), 1, Some(&metadata))
    };
    let mut alike = |partitions| {
        let mut refused = commit(partitions);
        refused.dedup();
        refused
    };
    assert_eq!(alike(200), [None]);
    // One batch of the offsets topic must hold them all. Kafka 4 has lost the error that was made for it.
    let refused = alike(300);
    let right = [ResponseError::InvalidCommitOffsetSize, ResponseError::UnknownServerError];
    assert!(matches!(refused[..], [Some(refused)] if right.contains(&refused)), "{refused:?}");
}

fn a_topic_that_does_not_exist_cannot_be_committed(broker: &Target) {
    let (absent, group) = (broker.name("absent"), broker.name("absent"));
    let mut connection = broker.group_coordinator(&group);
    let refused = connection.commit((&group, &Voice::outsider()), (&absent, 1), 1, None);
    assert_eq!(refused, [Some(ResponseError::UnknownTopicOrPartition)]);
}

fn an_outsider_commits_only_while_the_group_is_empty(broker: &Target) {
    let (topic, group) = (broker.topic("outsider", 1), broker.name("outsider"));
    let mut connection = broker.group_coordinator(&group);
    let outsider = Voice::outsider();
    assert_eq!(connection.commit((&group, &outsider), (&topic, 1), 1, None), [None]);
    let member = broker.member(&group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let refused = connection.commit((&group, &outsider), (&topic, 1), 2, None);
    assert_eq!(refused, [Some(ResponseError::UnknownMemberId)]);
    drop(member);
    assert_eq!(connection.commit((&group, &outsider), (&topic, 1), 3, None), [None]);
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, 3);
}

fn a_stale_generation_or_an_unknown_member_cannot_commit(broker: &Target) {
    let (topic, group) = (broker.topic("stale", 1), broker.name("stale"));
    let mut connection = broker.group_coordinator(&group);
    let member = connection.join_alone(&group, &topic);
    assert_eq!(connection.commit((&group, &member), (&topic, 1), 1, None), [None]);
    let stale = Voice { generation: member.generation - 1, ..member.clone() };
    let refused = connection.commit((&group, &stale), (&topic, 1), 2, None);
    assert_eq!(refused, [Some(ResponseError::IllegalGeneration)]);
    let stranger = Voice { member: text("stranger"), ..member };
    let refused = connection.commit((&group, &stranger), (&topic, 1), 2, None);
    assert_eq!(refused, [Some(ResponseError::UnknownMemberId)]);
    assert_eq!(connection.committed(&group, &topic, false).committed_offset, 1);
}

fn commits_of_one_group_are_not_seen_by_another(broker: &Target) {
    let (topic, one, two) = (broker.topic("apart", 1), broker.name("one"), broker.name("two"));
    let mut connection = broker.group_coordinator(&one);
    assert_eq!(connection.commit((&one, &Voice::outsider()), (&topic, 1), 9, Some("mine")), [None]);
    let found = broker.group_coordinator(&two).committed(&two, &topic, false);
    assert_eq!((found.error_code, found.committed_offset, found.metadata), (0, -1, Some(text(""))));
}
