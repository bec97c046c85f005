//! Members of a group: they share its partitions, hand them over cleanly, and are missed when they die.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::ResponseError;
use rdkafka::consumer::Consumer;
use rdkafka::message::Message;
use redrive_conformance::{
    Member, Target, Voice, assigned, deliver_all, error, eventually, joining, on_both, settle, text,
};

on_both!(
    members_hand_over_under_range_and_nothing_is_seen_twice,
    members_hand_over_under_cooperative_sticky_and_nothing_is_seen_twice,
    only_what_moves_is_revoked_under_cooperative_sticky,
    a_member_that_goes_silent_loses_its_partitions,
    a_new_partition_is_noticed_by_the_group,
    the_rules_of_joining_hold,
    members_learn_of_a_rebalance_by_their_heartbeat,
);

/// What was read: by partition, the offsets in the order in which they came.
type Seen = BTreeMap<i32, Vec<i64>>;

/// Reads at most one record each; what is read is handled, and will be committed when it is given up.
fn handle(members: &[&Member], seen: &mut Seen) {
    for member in members {
        if let Some(Ok(message)) = member.poll(Duration::from_millis(10)) {
            seen.entry(message.partition()).or_default().push(message.offset());
            member.store_offset_from_message(&message).expect("stored");
        }
    }
}

fn read_until(members: &[&Member], seen: &mut Seen, total: usize) {
    eventually("all records are read", || {
        handle(members, seen);
        let read: usize = seen.values().map(Vec::len).sum();
        assert!(read <= total, "more than there is: {seen:?}");
        (read == total).then_some(())
    });
}

/// Reads on, where there is anything left, until each member has this many partitions.
fn share(members: &[&Member], seen: &mut Seen, counts: &[usize]) {
    eventually("the group settles", || {
        handle(members, seen);
        members.iter().zip(counts).all(|(member, count)| assigned(member).len() == *count).then_some(())
    });
}

fn hand_over(broker: &Target, strategy: &str) {
    let (topic, group) = (broker.topic("hand-over", 6), broker.name("hand-over"));
    let producer = broker.producer(&[]);
    let produce = |from: i64| {
        for partition in 0..6 {
            let at = deliver_all(&producer, &topic, partition, (0..10).map(|number| number.to_string()));
            assert_eq!(at[0], from);
        }
    };
    let join = || {
        let member = broker.member(&group, &[("partition.assignment.strategy", strategy)]);
        member.subscribe(&[&topic]).expect("subscribed");
        member
    };
    let mut seen = Seen::new();
    produce(0);
    let first = join();
    read_until(&[&first], &mut seen, 60);
    produce(10);
    // The second joins while the first is reading.
    let second = join();
    share(&[&first, &second], &mut seen, &[3, 3]);
    let both: BTreeSet<_> = assigned(&first).into_iter().chain(assigned(&second)).collect();
    assert_eq!(both.len(), 6, "no partition has two owners");
    read_until(&[&first, &second], &mut seen, 120);
    produce(20);
    drop(first);
    share(&[&second], &mut seen, &[6]);
    read_until(&[&second], &mut seen, 180);
    let expected: Seen = (0..6).map(|partition| (partition, (0..30).collect())).collect();
    assert_eq!(seen, expected);
}

fn members_hand_over_under_range_and_nothing_is_seen_twice(broker: &Target) {
    hand_over(broker, "range");
}

fn members_hand_over_under_cooperative_sticky_and_nothing_is_seen_twice(broker: &Target) {
    hand_over(broker, "cooperative-sticky");
}

fn only_what_moves_is_revoked_under_cooperative_sticky(broker: &Target) {
    for (strategy, revoked) in [("cooperative-sticky", 3), ("range", 6)] {
        let (topic, group) = (broker.topic("moves", 6), broker.name("moves"));
        let join = || {
            let member = broker.member(&group, &[("partition.assignment.strategy", strategy)]);
            member.subscribe(&[&topic]).expect("subscribed");
            member
        };
        let first = join();
        settle(&[&first], &[6]);
        let second = join();
        settle(&[&first, &second], &[3, 3]);
        assert_eq!(first.context().revoked(), revoked, "{strategy}");
    }
}

fn a_member_that_goes_silent_loses_its_partitions(broker: &Target) {
    let (topic, group) = (broker.topic("silent", 2), broker.name("silent"));
    let mut connection = broker.group_coordinator(&group);
    // By hand: it joins, gets its assignment and is never heard of again.
    let silent = connection.join_alone(&group, &topic);
    let member = broker.member(&group, &[("partition.assignment.strategy", "range")]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[2]);
    assert_eq!(connection.heartbeat(&group, &silent), Some(ResponseError::UnknownMemberId));
}

fn a_new_partition_is_noticed_by_the_group(broker: &Target) {
    let (topic, group) = (broker.topic("wider", 1), broker.name("wider"));
    let member = broker.member(&group, &[("topic.metadata.refresh.interval.ms", "500")]);
    member.subscribe(&[&topic]).expect("subscribed");
    settle(&[&member], &[1]);
    let wish = rdkafka::admin::NewPartitions::new(&topic, 3);
    broker.wait(broker.admin().create_partitions([&wish], &broker.options())).expect("an answer");
    settle(&[&member], &[3]);
}

fn the_rules_of_joining_hold(broker: &Target) {
    let (topic, group) = (broker.topic("rules", 1), broker.name("rules"));
    let mut connection = broker.group_coordinator(&group);
    let mut join = |request: &kafka_protocol::messages::JoinGroupRequest| {
        let answer = connection.ask(request, 9);
        (error(answer.error_code), answer.member_id)
    };
    let fresh = joining(&group, &topic, &text(""));
    for (wrong, refused) in [
        (fresh.clone().with_session_timeout_ms(10), ResponseError::InvalidSessionTimeout),
        (fresh.clone().with_session_timeout_ms(3_600_000), ResponseError::InvalidSessionTimeout),
        (fresh.clone().with_member_id(text("nobody")), ResponseError::UnknownMemberId),
        (fresh.clone().with_protocols(Vec::new()), ResponseError::InconsistentGroupProtocol),
        (fresh.clone().with_group_id(redrive_conformance::group_id("")), ResponseError::InvalidGroupId),
    ] {
        assert_eq!(join(&wrong).0, Some(refused));
    }
    let member = connection.join_alone(&group, &topic);
    let mut other = fresh.clone();
    other.protocols[0].name = text("unheard-of");
    assert_eq!(error(connection.ask(&other, 9).error_code), Some(ResponseError::InconsistentGroupProtocol));
    let connect = fresh.with_protocol_type(text("connect"));
    assert_eq!(error(connection.ask(&connect, 9).error_code), Some(ResponseError::InconsistentGroupProtocol));
    assert_eq!(connection.heartbeat(&group, &member), None);
    let stale = Voice { generation: member.generation + 1, ..member };
    assert_eq!(connection.heartbeat(&group, &stale), Some(ResponseError::IllegalGeneration));
}

fn members_learn_of_a_rebalance_by_their_heartbeat(broker: &Target) {
    let (topic, group) = (broker.topic("rebalance", 1), broker.name("rebalance"));
    let (mut one, mut two) = (broker.group_coordinator(&group), broker.group_coordinator(&group));
    let first = one.join_alone(&group, &topic);
    let invited = two.ask(&joining(&group, &topic, &text("")), 9);
    two.send(&joining(&group, &topic, &invited.member_id), 9);
    eventually("a rebalance", || {
        (one.heartbeat(&group, &first) == Some(ResponseError::RebalanceInProgress)).then_some(())
    });
    // The commit of a member is accepted until it has joined again.
    assert_eq!(one.commit((&group, &first), (&topic, 1), 7, None), [None]);
    let joined = one.ask(&joining(&group, &topic, &first.member), 9);
    assert_eq!((joined.error_code, joined.generation_id), (0, first.generation + 1));
    assert_eq!(joined.members.len(), 2, "the leader knows both");
    assert_eq!(one.commit((&group, &first), (&topic, 1), 8, None), [Some(ResponseError::IllegalGeneration)]);
    let again = Voice { generation: joined.generation_id, ..first };
    assert_eq!(
        one.commit((&group, &again), (&topic, 1), 8, None),
        [Some(ResponseError::RebalanceInProgress)]
    );
    assert_eq!(one.sync(&group, &joined), None);
    assert_eq!(one.commit((&group, &again), (&topic, 1), 9, None), [None]);
}
