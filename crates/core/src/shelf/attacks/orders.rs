//! Against orders: late, twice, and racing with what the owner writes.

use super::bench::*;
use crate::class::Class;
use crate::lanes::Followers;
use crate::shelf::{Deed, Entry, Verdict};

fn verdicts(log: &Log) -> Vec<Verdict> {
    let outcomes = log.0.iter().filter_map(|entry| match entry {
        Entry::Outcome(_, outcome) => Some(outcome.verdict),
        _ => None,
    });
    outcomes.collect()
}

/// An owner with one record on the shelf, and the log.
fn one_waits() -> (Owner, Log) {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    owner.go_on(&mut log);
    (owner, log)
}

#[test]
fn a_cancel_that_the_owner_has_not_read_when_it_shelves_the_record_again() {
    let (mut owner, mut log) = one_waits();
    owner.pass_time(20, &log);
    log.0.push(order("o", 0, Deed::Cancel));
    owner.fail(0, Class::NotReady);
    owner.write(&mut log);
    owner.go_on(&mut log);
    assert_eq!(verdicts(&log), [Verdict::Cancelled], "answered when it was there again");
    owner.pass_time(100, &log);
    assert_eq!((owner.handling(), owner.burying.len()), (vec![], 1));
}

#[test]
fn an_entry_that_lands_once_more_does_not_undo_an_answer() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    let first = owner.unwritten();
    first.iter().for_each(|entry| owner.failed(entry));
    log.0.extend(first);
    log.0.push(order("o", 0, Deed::Cancel));
    owner.read(&log);
    let second = owner.unwritten();
    assert!(matches!(second[..], [Entry::Wait(..)]), "no answer while it is being written");
    second.iter().for_each(|entry| owner.failed(entry));
    owner.go_on(&mut log);
    owner.go_on(&mut log);
    assert_eq!(verdicts(&log), [Verdict::Cancelled]);
    assert!(fold(&log.0).0.waiting.get(0).unwrap().cancelled);
}

#[test]
fn an_order_about_a_record_that_is_with_the_handler_comes_too_late() {
    let (mut owner, mut log) = one_waits();
    owner.arrive(1, "b");
    owner.pass_time(20, &log);
    for (id, origin) in [("shelved", 0), ("new", 1), ("unread", 7)] {
        log.0.push(order(id, origin, Deed::Cancel));
    }
    owner.go_on(&mut log);
    assert_eq!(verdicts(&log), [Verdict::TooLate, Verdict::TooLate, Verdict::Unknown]);
    owner.succeed(0);
    log.0.push(order("again", 0, Deed::Cancel));
    owner.go_on(&mut log);
    assert_eq!(verdicts(&log)[3], Verdict::Finished);
}

#[test]
fn a_record_is_not_released_between_an_answer_and_its_reading() {
    let (mut owner, mut log) = one_waits();
    log.0.push(order("o", 0, Deed::Reschedule { due: owner.now + 500 }));
    owner.read(&log);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty());
    owner.go_on(&mut log);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty(), "it is due later now");
    owner.pass_time(400, &log);
    assert_eq!(owner.handling(), [0]);
}

#[test]
fn two_cancels_and_a_release_of_what_was_cancelled() {
    let (mut owner, mut log) = one_waits();
    log.0.push(order("one", 0, Deed::Cancel));
    log.0.push(order("two", 0, Deed::Cancel));
    log.0.push(order("three", 0, Deed::Release));
    for _ in 0..4 {
        owner.go_on(&mut log);
    }
    assert_eq!(verdicts(&log), [Verdict::Cancelled, Verdict::TooLate, Verdict::TooLate]);
    assert_eq!(owner.burying.len(), 1, "one letter");
    owner.bury();
    owner.checkpoint(&mut log);
    assert!(fold(&log.0).0.waiting.is_empty());
}

#[test]
fn every_order_is_answered_whoever_owns_the_partition_then() {
    let (_, mut log) = one_waits();
    log.0.push(order("o", 0, Deed::Release));
    let mut next = Owner::running(2, Followers::Pass, &mut log);
    next.go_on(&mut log);
    assert!(matches!(verdicts(&log)[..], [Verdict::Due { .. }]));
    assert_eq!(fold(&log.0).0.orders().count(), 0);
}

#[test]
fn a_resolve_of_what_closes_no_lane_says_so() {
    let (mut owner, mut log) = one_waits();
    log.0.push(order("o", 0, Deed::Resolve));
    owner.go_on(&mut log);
    assert_eq!(verdicts(&log), [Verdict::Unknown]);
}

#[test]
fn orders_race_with_a_carry_and_both_count() {
    let (mut owner, mut log) = one_waits();
    log.0.push(order("o", 0, Deed::Cancel));
    owner.read(&log);
    owner.flow.checkpoint(0);
    owner.write(&mut log);
    owner.read(&log);
    let (shelf, _) = fold(&log.0);
    assert!(shelf.waiting.get(0).is_some_and(|waiting| waiting.cancelled));
}
