//! Against the order of lanes, and the limits.

use std::time::Duration;

use super::bench::*;
use crate::class::Class;
use crate::failure::{Cause, Failure};
use crate::flow::Notice;
use crate::lanes::Followers;
use crate::shelf::Deed;

/// A log in which a follower is durable and its leader is not.
fn follower_without_leader() -> Log {
    Log(vec![claimed(1), begins(stamp(1, 1, 0), 0), wait(stamp(1, 2, 1), 1, "a", 0)])
}

#[test]
fn a_follower_that_is_durable_before_its_leader() {
    let mut log = follower_without_leader();
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty(), "the reader has not passed it");
    owner.arrive(0, "a");
    owner.arrive(1, "a");
    owner.pass_time(100, &log);
    assert_eq!(owner.handling(), [0]);
    owner.succeed(0);
    assert_eq!(owner.handling(), [1]);
}

#[test]
fn what_came_back_behind_a_leader_on_its_way_to_the_shelf_goes_on_after_it() {
    let mut log = follower_without_leader();
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.arrive(1, "a");
    owner.pass_time(100, &log);
    owner.fail(0, Class::NotReady);
    owner.go_on(&mut log);
    owner.pass_time(100, &log);
    assert_eq!(owner.handling(), [0]);
    owner.succeed(0);
    owner.pass_time(100, &log);
    assert_eq!(owner.handling(), [1], "it is not forgotten on the shelf");
}

#[test]
fn a_full_shelf_does_not_stop_the_reader_or_the_leader_that_it_waits_for() {
    let mut log = follower_without_leader();
    let mut owner = Owner::with(settings(2, Followers::Pass, 1));
    owner.take_over(&mut log);
    assert!(!owner.paused, "the reader is below what waits");
    owner.arrive(0, "a");
    owner.arrive(1, "a");
    owner.arrive(2, "b");
    owner.pass_time(100, &log);
    assert_eq!(owner.handling(), [0], "what waits is behind it; the other is new, and the shelf full");
    assert!(owner.paused && owner.is_told(|notice| matches!(notice, Notice::Full { .. })));
    owner.succeed(0);
    owner.succeed(1);
    owner.checkpoint(&mut log);
    owner.act();
    assert!(!owner.paused && owner.handling() == [2]);
}

#[test]
fn followers_need_no_handler_to_fill_the_shelf_so_the_source_is_paused() {
    let mut log = Log::default();
    let mut owner = Owner::with(settings(1, Followers::Hold, 3));
    owner.take_over(&mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::Permanent);
    owner.bury();
    for offset in 1..4 {
        assert!(!owner.paused);
        owner.arrive(offset, "a");
        owner.go_on(&mut log);
    }
    assert!(owner.paused);
}

#[test]
fn a_letter_that_closed_its_lane_is_complete_when_it_is_read_again() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Hold, &mut log);
    owner.arrive(0, "a");
    owner.arrive(1, "a");
    owner.fail(0, Class::Permanent);
    assert!(owner.unwritten().is_empty(), "the letter comes first");
    owner.bury();
    owner.go_on(&mut log);
    // An operator resets the group.
    log.0.extend([claimed(9), begins(stamp(9, 1, log.0.len() as i64), 0)]);
    let mut next = Owner::running(2, Followers::Hold, &mut log);
    assert_eq!(next.starts, [0]);
    next.arrive(0, "a");
    next.arrive(1, "a");
    next.go_on(&mut log);
    next.pass_time(100, &log);
    assert!(next.handling().is_empty(), "neither the letter nor what is behind it");
    next.checkpoint(&mut log);
    assert_eq!(fold(&log.0).0.progress().unwrap().mark(), 2);
}

#[test]
fn a_lane_that_is_opened_while_letters_of_followers_are_on_their_way() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Bury, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::Permanent);
    owner.bury();
    owner.go_on(&mut log);
    owner.arrive(1, "a");
    log.0.push(order("o", 0, Deed::Resolve));
    owner.go_on(&mut log);
    owner.arrive(2, "a");
    assert!(owner.handling().is_empty(), "the letter before it is not confirmed");
    owner.bury();
    owner.go_on(&mut log);
    owner.pass_time(100, &log);
    owner.bury();
    owner.go_on(&mut log);
    assert!(owner.handling().is_empty(), "it follows that letter");
    let closing: Vec<_> = fold(&log.0).0.closures().map(|(letter, _)| letter).collect();
    assert_eq!(closing, [1, 2]);
}

#[test]
fn a_chain_of_records_that_name_each_other_goes_on_in_order() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    let follows = |offset: i64| Err(Failure::follows(record(offset, "").at));
    for (offset, key) in [(0, "a"), (1, "b"), (2, "c")] {
        owner.arrive(offset, key);
    }
    owner.fail(0, Class::NotReady);
    owner.end(1, follows(0));
    owner.end(2, follows(1));
    owner.go_on(&mut log);
    owner.pass_time(100, &log);
    assert_eq!(owner.handling(), [0]);
    // Somebody else takes over in between.
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.pass_time(100, &log);
    for offset in 0..3 {
        assert_eq!(owner.handling(), [offset]);
        owner.succeed(offset);
        owner.pass_time(1, &log);
    }
}

#[test]
fn what_named_a_letter_that_closes_a_lane_waits_until_it_is_opened() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Hold, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::Permanent);
    owner.bury();
    owner.go_on(&mut log);
    owner.arrive(1, "b");
    owner.end(1, Err(Failure::follows(record(0, "").at)));
    owner.go_on(&mut log);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty());
    log.0.push(order("o", 0, Deed::Resolve));
    owner.go_on(&mut log);
    owner.pass_time(1, &log);
    assert_eq!(owner.handling(), [1]);
}

#[test]
fn a_reader_that_finds_nothing_where_a_record_was_has_passed_it() {
    let mut log = follower_without_leader();
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty());
    owner.flow.reached(0, 2);
    owner.pass_time(1, &log);
    assert_eq!(owner.handling(), [1], "the source has deleted both, or they were markers");
}

#[test]
fn a_record_of_a_closed_lane_comes_back_once_and_not_over_and_over() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Hold, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::Permanent);
    owner.bury();
    owner.write(&mut log);
    owner.read(&log);
    owner.arrive(1, "a");
    owner.write(&mut log);
    owner.read(&log);
    for _ in 0..3 {
        owner.pass_time(20, &log);
    }
    assert_eq!((owner.flow.waiting(0), owner.flow.counts().released), (1, 1), "it is held");
    log.0.push(order("open", 0, Deed::Resolve));
    owner.read(&log);
    owner.write(&mut log);
    owner.read(&log);
    owner.pass_time(1, &log);
    assert_eq!(owner.handling(), [1]);
}

fn not_ready_for(millis: u64) -> Failure {
    let mut failure = Failure::new(Cause::new("Early", "not yet")).classed(Class::NotReady);
    failure.retry_after = Some(Duration::from_millis(millis));
    failure
}

#[test]
fn what_is_due_later_has_time_to_be_written_and_what_is_due_soon_has_none() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    assert!(owner.unwritten().is_empty());
    assert_eq!(owner.flow.slack(), None);
    for (offset, key) in [(0, "a"), (1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        owner.arrive(offset, key);
    }
    owner.end(2, Err(not_ready_for(60_000)));
    assert_eq!(owner.flow.slack(), Some(Duration::from_millis(200)));
    owner.end(0, Err(not_ready_for(800)));
    assert_eq!(owner.flow.slack(), Some(Duration::from_micros(12_500)), "what follows it has less");
    owner.end(3, Err(not_ready_for(0)));
    assert_eq!(owner.flow.slack(), Some(Duration::ZERO));
    assert_eq!(owner.unwritten().len(), 4);
    assert_eq!(owner.flow.slack(), None);
    owner.end(4, Err(not_ready_for(800)));
    assert_eq!(owner.flow.slack(), Some(Duration::from_millis(100)));
    owner.flow.drain(0);
    assert_eq!(owner.flow.slack(), Some(Duration::ZERO), "nothing waits when a partition is given up");
}
