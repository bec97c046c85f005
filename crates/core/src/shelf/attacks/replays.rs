//! Against letters that are sent back: twice, late, amid a change of owners, and by tools that die.

use super::bench::*;
use crate::class::Class;
use crate::flow::{Fate, Notice, Smaller};
use crate::headers::Trail;
use crate::lanes::Followers;
use crate::shelf::{Announced, Deed, Entry, Order, Outcome, Verdict, Wait};

/// An order to try this record of lane "a" again.
fn replay(offset: i64, replays: u32) -> Entry {
    let record = record(offset, "a");
    let trail = Trail {
        origin: Some(record.at.clone()),
        lane: record.key.clone(),
        replay: Some(format!("job/{offset}")),
        replays: Some(replays),
        ..Trail::default()
    };
    Entry::Replay(Wait { record: record.into(), trail: trail.into() }.into())
}

fn of_job(id: &str, origin: i64, deed: Deed, job: &str) -> Entry {
    let job = Some(job.to_owned());
    Entry::Order(Order { id: id.into(), origin, deed, by: "me".into(), reason: "why".into(), job })
}

fn outcomes(log: &Log) -> Vec<(i64, Verdict)> {
    let outcomes = log.0.iter().filter_map(|entry| match entry {
        Entry::Outcome(_, Outcome { origin, verdict, .. }) => Some((*origin, *verdict)),
        _ => None,
    });
    outcomes.collect()
}

fn waits_of(log: &Log, offset: i64) -> usize {
    let is_it = |entry: &&Entry| matches!(entry, Entry::Wait(_, wait) if wait.record.at.offset == offset);
    log.0.iter().filter(is_it).count()
}

/// An owner whose record 0 of lane "a" is a letter, with so many behind it.
fn leader_is_buried(followers: Followers, behind: i64) -> (Owner, Log) {
    let mut log = Log::default();
    let mut owner = Owner::running(1, followers, &mut log);
    (0..=behind).for_each(|offset| owner.arrive(offset, "a"));
    owner.fail(0, Class::Permanent);
    owner.bury();
    for _ in 0..3 {
        owner.bury();
        owner.go_on(&mut log);
    }
    owner.checkpoint(&mut log);
    owner.go_on(&mut log);
    (owner, log)
}

fn all_done(owner: &mut Owner, log: &mut Log, expected: &[i64]) {
    for offset in expected {
        owner.pass_time(20, log);
        owner.go_on(log);
        assert_eq!(owner.handling(), [*offset], "in the order of their origins");
        owner.succeed(*offset);
        owner.checkpoint(log);
        owner.go_on(log);
    }
    owner.pass_time(20, log);
    assert_eq!((owner.handling(), waiting(&fold(&log.0).0)), (vec![], vec![]));
}

#[test]
fn a_leader_that_is_replayed_while_its_followers_are_held() {
    let (mut owner, mut log) = leader_is_buried(Followers::Hold, 2);
    owner.pass_time(100, &log);
    assert!(owner.handling().is_empty(), "the lane is closed");
    log.0.push(replay(0, 1));
    owner.read(&log);
    owner.write(&mut log);
    assert_eq!((waits_of(&log, 0), outcomes(&log).len()), (1, 0), "it waits before the lane is open");
    owner.pass_time(10, &log);
    assert!(owner.handling().is_empty());
    owner.go_on(&mut log);
    owner.go_on(&mut log);
    assert_eq!(outcomes(&log), [(0, Verdict::Replayed)]);
    assert_eq!(fold(&log.0).0.closures().count(), 0);
    owner.arrive(3, "a");
    owner.go_on(&mut log);
    all_done(&mut owner, &mut log, &[0, 1, 2, 3]);
    assert!(owner.is_told(|notice| matches!(notice, Notice::SentBack { fate: Fate::Handled, .. })));
}

#[test]
fn the_owner_dies_between_the_wait_and_the_outcome() {
    let (mut owner, mut log) = leader_is_buried(Followers::Hold, 1);
    log.0.push(replay(0, 1));
    owner.read(&log);
    owner.write(&mut log);
    assert_eq!((waits_of(&log, 0), outcomes(&log).len()), (1, 0));
    let mut next = Owner::running(2, Followers::Hold, &mut log);
    next.pass_time(100, &log);
    next.go_on(&mut log);
    assert_eq!((waits_of(&log, 0), outcomes(&log)), (1, vec![(0, Verdict::Replayed)]), "it is there already");
    assert_eq!(fold(&log.0).0.closures().count(), 0, "and its lane is open");
    all_done(&mut next, &mut log, &[0, 1]);
}

#[test]
fn an_order_that_is_read_by_two_owners() {
    let (mut owner, mut log) = leader_is_buried(Followers::Hold, 1);
    log.0.push(replay(0, 1));
    owner.read(&log);
    // Written by one who does not know that it is not the owner any more.
    let late = owner.unwritten();
    assert!(matches!(late[..], [Entry::Wait(..)]));
    let mut next = Owner::running(2, Followers::Hold, &mut log);
    log.0.extend(late);
    next.go_on(&mut log);
    next.go_on(&mut log);
    assert_eq!(outcomes(&log), [(0, Verdict::Replayed)]);
    assert_eq!(waiting(&fold(&log.0).0), [0, 1], "once: what came late is void");
    all_done(&mut next, &mut log, &[0, 1]);
}

#[test]
fn an_order_that_is_there_twice() {
    let (mut owner, mut log) = leader_is_buried(Followers::Pass, 0);
    log.0.extend([replay(0, 1), replay(0, 1)]);
    (0..3).for_each(|_| owner.go_on(&mut log));
    assert_eq!(waits_of(&log, 0), 1);
    all_done(&mut owner, &mut log, &[0]);
    // And once more when all is over.
    log.0.push(replay(0, 1));
    (0..3).for_each(|_| owner.go_on(&mut log));
    assert_eq!(outcomes(&log).last(), Some(&(0, Verdict::Already)));
    assert_eq!((waits_of(&log, 0), fold(&log.0).0.replays.len()), (1, 0));
    log.0.push(replay(0, 2));
    (0..3).for_each(|_| owner.go_on(&mut log));
    all_done(&mut owner, &mut log, &[0]);
}

#[test]
fn a_replay_of_an_origin_that_is_still_waiting_or_in_hand_or_was_never_read() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    log.0.extend([replay(0, 1), replay(7, 1)]);
    owner.go_on(&mut log);
    assert_eq!(outcomes(&log), [(0, Verdict::StillWaiting), (7, Verdict::Unknown)]);
    owner.fail(0, Class::NotReady);
    owner.go_on(&mut log);
    log.0.push(replay(0, 1));
    owner.go_on(&mut log);
    assert_eq!(outcomes(&log)[2], (0, Verdict::StillWaiting));
    let refused = |notice: &Notice| matches!(notice, Notice::SentBack { fate: Fate::Refused(_), .. });
    assert!(owner.is_told(refused));
    all_done(&mut owner, &mut log, &[0]);
}

#[test]
fn a_letter_that_is_replayed_behind_one_that_runs_waits_for_it() {
    let (mut owner, mut log) = leader_is_buried(Followers::Pass, 1);
    assert_eq!(owner.handling(), [1]);
    owner.arrive(2, "a");
    log.0.push(replay(0, 1));
    (0..3).for_each(|_| owner.go_on(&mut log));
    owner.pass_time(20, &log);
    assert_eq!(owner.handling(), [1], "one of a lane at a time");
    owner.succeed(1);
    owner.checkpoint(&mut log);
    all_done(&mut owner, &mut log, &[0, 2]);
}

#[test]
fn a_shelf_that_is_full_takes_the_letter_that_opens_its_lane_and_others_later() {
    let mut log = Log::default();
    let mut owner = Owner::with(settings(1, Followers::Hold, 2));
    owner.take_over(&mut log);
    owner.arrive(0, "b");
    owner.fail(0, Class::Permanent);
    owner.bury();
    owner.go_on(&mut log);
    log.0.push(order("open", 0, Deed::Resolve));
    owner.go_on(&mut log);
    for offset in 1..4 {
        owner.arrive(offset, "a");
    }
    owner.fail(1, Class::Permanent);
    owner.bury();
    owner.go_on(&mut log);
    owner.checkpoint(&mut log);
    log.0.extend([replay(0, 1), replay(1, 1)]);
    (0..3).for_each(|_| owner.go_on(&mut log));
    assert_eq!(outcomes(&log)[1..], [(1, Verdict::Replayed)], "two wait: there is no room for the other");
    for offset in 1..4 {
        owner.pass_time(20, &log);
        owner.succeed(offset);
        owner.checkpoint(&mut log);
        owner.go_on(&mut log);
    }
    owner.go_on(&mut log);
    assert_eq!(outcomes(&log)[2..], [(0, Verdict::Replayed)], "later, not never");
}

#[test]
fn a_letter_of_a_follower_that_is_in_flight_when_its_lane_is_announced() {
    let (mut owner, mut log) = leader_is_buried(Followers::Bury, 0);
    owner.arrive(1, "a");
    assert_eq!(owner.burying.len(), 1);
    let deadline = owner.now + 1_000;
    log.0.push(of_job("o", 0, Deed::Announce { deadline }, "job"));
    owner.go_on(&mut log);
    assert!(outcomes(&log).is_empty(), "its letter is not there yet");
    owner.arrive(2, "a");
    assert_eq!(owner.burying.len(), 1, "what arrives is held from now on");
    owner.bury();
    (0..3).for_each(|_| owner.go_on(&mut log));
    owner.act();
    owner.go_on(&mut log);
    assert_eq!(outcomes(&log), [(0, Verdict::Announced { deadline })]);
    log.0.extend([replay(0, 1), replay(1, 1)]);
    (0..3).for_each(|_| owner.go_on(&mut log));
    owner.pass_time(20, &log);
    assert!(owner.handling().is_empty(), "not before all of them are there");
    log.0.push(of_job("other", 0, Deed::Resolve, "another"));
    log.0.push(of_job("open", 0, Deed::Resolve, "job"));
    (0..3).for_each(|_| owner.go_on(&mut log));
    assert_eq!(outcomes(&log)[3..], [(0, Verdict::Taken { deadline }), (0, Verdict::Opened)]);
    all_done(&mut owner, &mut log, &[0, 1, 2]);
    assert_eq!(fold(&log.0).0.closures().count(), 0);
}

#[test]
fn a_lane_is_opened_after_the_letters_that_were_sent_back_before() {
    let (mut owner, mut log) = leader_is_buried(Followers::Hold, 1);
    log.0.extend([replay(0, 1), order("open", 0, Deed::Resolve)]);
    owner.read(&log);
    let first = owner.unwritten();
    assert!(matches!(first[..], [Entry::Wait(..)]), "nothing may pass it");
    log.0.extend(first);
    (0..3).for_each(|_| owner.go_on(&mut log));
    all_done(&mut owner, &mut log, &[0, 1]);
}

#[test]
fn a_tool_that_dies_half_way() {
    let (mut owner, mut log) = leader_is_buried(Followers::Bury, 2);
    let deadline = owner.now + 1_000;
    log.0.push(of_job("o", 0, Deed::Announce { deadline }, "job"));
    log.0.push(replay(0, 1));
    (0..3).for_each(|_| owner.go_on(&mut log));
    // Its owner dies, too, and the log is cut as far as it goes.
    let mut next = Owner::running(2, Followers::Bury, &mut log);
    let announced = Announced { job: "job".to_owned(), deadline };
    assert_eq!(fold(&log.0).0.announced(0), Some(&announced));
    next.arrive(3, "a");
    next.go_on(&mut log);
    next.pass_time(900, &log);
    assert!(next.handling().is_empty() && next.burying.is_empty(), "held");
    log.0.push(of_job("late", 0, Deed::Announce { deadline: deadline + 500 }, "another"));
    (0..2).for_each(|_| next.go_on(&mut log));
    assert_eq!(outcomes(&log).last(), Some(&(0, Verdict::Taken { deadline })));
    next.pass_time(200, &log);
    (0..2).for_each(|_| next.go_on(&mut log));
    let told = |notice: &Notice| matches!(notice, Notice::Overdue { leader: 0, left: 2, .. });
    assert!(next.is_told(told), "{:?}", next.notices);
    all_done(&mut next, &mut log, &[0, 3]);
}

#[test]
fn another_job_takes_over_when_the_time_of_the_first_is_over() {
    let (mut owner, mut log) = leader_is_buried(Followers::Bury, 1);
    let deadline = owner.now + 100;
    log.0.push(of_job("o", 0, Deed::Announce { deadline }, "job"));
    (0..2).for_each(|_| owner.go_on(&mut log));
    // Nobody owns the partition when the time is over; the order of the other is read with the rest.
    log.0.push(of_job("again", 0, Deed::Announce { deadline: deadline + 900 }, "another"));
    let mut next = Owner::new(2, Followers::Bury);
    next.now = deadline + 1;
    next.take_over(&mut log);
    (0..3).for_each(|_| next.go_on(&mut log));
    let held = fold(&log.0).0.announced(0).map(|announced| announced.job.clone());
    let opened = next.is_told(|notice| matches!(notice, Notice::Overdue { .. }));
    assert!(held.as_deref() == Some("another") || opened, "one of both, never neither");
    assert!(fold(&log.0).0.orders().count() == 0);
}

#[test]
fn an_announced_lane_is_carried_to_the_end_of_the_log_as_that() {
    let (mut owner, mut log) = leader_is_buried(Followers::Bury, 0);
    let deadline = owner.now + 1_000;
    log.0.push(of_job("o", 0, Deed::Announce { deadline }, "job"));
    (0..2).for_each(|_| owner.go_on(&mut log));
    // Entries of a megabyte each, all of them dead but what closes the lane.
    for offset in 1..30 {
        owner.arrive(offset, "b");
        owner.succeed(offset);
        owner.flow.checkpoint(0);
        owner.write(&mut log);
        owner.read_as(&log, 1 << 20);
        owner.go_on(&mut log);
    }
    let cut = *owner.trims.last().expect("most of the log is dead") as usize;
    let (whole, rest) = (fold(&log.0).0, fold(&log.0[cut..]).0);
    let announced = Announced { job: "job".to_owned(), deadline };
    assert_eq!((whole.announced(0), rest.announced(0)), (Some(&announced), Some(&announced)));
}

#[test]
fn a_letter_that_does_not_fit_as_a_record_that_waits_is_refused_and_holds_nothing() {
    let (mut owner, mut log) = leader_is_buried(Followers::Hold, 1);
    log.0.push(replay(0, 1));
    owner.read(&log);
    let written = owner.unwritten();
    let stamp = written[0].stamp().unwrap();
    assert_eq!(owner.flow.too_large(0, stamp.claim, stamp.seq), Smaller::Left);
    (0..2).for_each(|_| owner.go_on(&mut log));
    assert_eq!(outcomes(&log), [(0, Verdict::TooLarge)]);
    assert!(fold(&log.0).0.is_closing(0) && fold(&log.0).0.replays.is_empty(), "the lane is as it was");
    log.0.push(replay(0, 1));
    (0..3).for_each(|_| owner.go_on(&mut log));
    all_done(&mut owner, &mut log, &[0, 1]);
}
