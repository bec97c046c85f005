//! Static members: one that comes back in time finds its place kept, and there is never a second one.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{DescribeGroupsRequest, LeaveGroupRequest};
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use redrive_conformance::{
    Member, Target, assigned, error, eventually, group_id, joining, next_error, on_both, settle, text,
};

on_both!(
    a_member_that_returns_in_time_has_its_partitions_and_disturbs_nobody,
    the_elder_of_two_with_one_name_is_fenced,
    a_member_that_stays_away_loses_its_place,
    a_member_is_removed_by_its_name,
    the_member_id_of_before_is_fenced,
);

fn join(broker: &Target, group: &str, topic: &str, name: &str) -> Member {
    let strategy = ("partition.assignment.strategy", "range");
    let member = broker.member(group, &[("group.instance.id", name), strategy]);
    member.subscribe(&[topic]).expect("subscribed");
    member
}

fn a_member_that_returns_in_time_has_its_partitions_and_disturbs_nobody(broker: &Target) {
    let (topic, group) = (broker.topic("static", 6), broker.name("static"));
    let first = join(broker, &group, &topic, "first");
    settle(&[&first], &[6]);
    let second = join(broker, &group, &topic, "second");
    settle(&[&first, &second], &[3, 3]);
    let (kept, before) = (assigned(&second), first.context().assignments());
    drop(second);
    let second = join(broker, &group, &topic, "second");
    settle(&[&first, &second], &[3, 3]);
    assert_eq!(assigned(&second), kept);
    assert_eq!(first.context().assignments(), before, "the other member was rebalanced");
}

fn the_elder_of_two_with_one_name_is_fenced(broker: &Target) {
    let (topic, group) = (broker.topic("double", 2), broker.name("double"));
    let elder = join(broker, &group, &topic, "double");
    settle(&[&elder], &[2]);
    let younger = join(broker, &group, &topic, "double");
    eventually("the younger has taken over", || {
        let _ = younger.poll(std::time::Duration::from_millis(20));
        (assigned(&younger).len() == 2).then_some(())
    });
    assert_eq!(next_error(&elder).rdkafka_error_code(), Some(RDKafkaErrorCode::FencedInstanceId));
}

fn a_member_that_stays_away_loses_its_place(broker: &Target) {
    let (topic, group) = (broker.topic("away", 2), broker.name("away"));
    let (stays, leaves) = (join(broker, &group, &topic, "stays"), join(broker, &group, &topic, "leaves"));
    settle(&[&stays, &leaves], &[1, 1]);
    drop(leaves);
    settle(&[&stays], &[2]);
}

fn a_member_is_removed_by_its_name(broker: &Target) {
    let (topic, group) = (broker.topic("removed", 2), broker.name("removed"));
    let (stays, goes) = (join(broker, &group, &topic, "stays"), join(broker, &group, &topic, "goes"));
    settle(&[&stays, &goes], &[1, 1]);
    let mut connection = broker.group_coordinator(&group);
    let described = connection.ask(&DescribeGroupsRequest::default().with_groups(vec![group_id(&group)]), 5);
    let mut names: Vec<_> =
        described.groups[0].members.iter().map(|member| member.group_instance_id.as_deref()).collect();
    names.sort_unstable();
    assert_eq!(names, [Some("goes"), Some("stays")]);
    // Its process is gone, or it would come back at once.
    drop(goes);
    let mut remove = |name| {
        let member = MemberIdentity::default().with_group_instance_id(Some(text(name)));
        let request = LeaveGroupRequest::default().with_group_id(group_id(&group)).with_members(vec![member]);
        error(connection.ask(&request, 4).members[0].error_code)
    };
    assert_eq!(remove("nobody"), Some(ResponseError::UnknownMemberId));
    assert_eq!(remove("goes"), None);
    settle(&[&stays], &[2]);
}

fn the_member_id_of_before_is_fenced(broker: &Target) {
    let (topic, group) = (broker.topic("fenced", 1), broker.name("fenced"));
    let mut connection = broker.group_coordinator(&group);
    let request = joining(&group, &topic, &text("")).with_group_instance_id(Some(text("name")));
    // A static member is not asked to come back with an id.
    let first = connection.ask(&request, 9);
    assert_eq!(error(first.error_code), None);
    assert_eq!(connection.sync(&group, &first), None);
    let second = connection.ask(&request, 9);
    assert_eq!((second.error_code, second.generation_id), (0, first.generation_id), "no rebalance");
    assert_ne!(first.member_id, second.member_id);
    let elder = request.with_member_id(first.member_id);
    assert_eq!(error(connection.ask(&elder, 9).error_code), Some(ResponseError::FencedInstanceId));
}
