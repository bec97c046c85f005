//! Against whoever else cuts the log: it is told, and the cuts of owners are not.

use super::bench::*;
use crate::class::Class;
use crate::lanes::Followers;
use crate::shelf::{Beginning, Deed, Entry, Missing};

/// A log in which three records wait, and where they stand.
fn three_wait() -> (Log, Vec<usize>) {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    for (offset, key) in [(0, "a"), (1, "b"), (2, "c")] {
        owner.arrive(offset, key);
        owner.fail(offset, Class::NotReady);
        owner.go_on(&mut log);
        owner.checkpoint(&mut log);
    }
    let is_wait = |(at, entry): (usize, &Entry)| matches!(entry, Entry::Wait(..)).then_some(at);
    let places = log.0.iter().enumerate().filter_map(is_wait).collect();
    (log, places)
}

/// A log of entries of a megabyte each, nearly all of them dead, whose owner has cut it.
fn cut_by_its_owner() -> (Log, Owner) {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    for offset in 0..30 {
        owner.arrive(offset, "b");
        owner.succeed(offset);
        owner.flow.checkpoint(0);
        owner.write(&mut log);
        owner.read_as(&log, 1 << 20);
        if !owner.trims.is_empty() {
            break;
        }
    }
    (log, owner)
}

fn missing(first: usize, log: &Log) -> Option<Missing> {
    let mut owner = Owner::new(9, Followers::Pass);
    owner.take_over_from(first, &mut Log(log.0.clone()));
    assert!(owner.locating, "it is asked whether to begin");
    owner.missing
}

#[test]
fn what_somebody_else_cut_off_is_told_until_somebody_accepts_it() {
    let (mut log, places) = three_wait();
    for first in 1..log.0.len() {
        // Behind the last checkpoint the log says nothing any more, not even how far it has come.
        if log.0[first..].iter().any(|entry| matches!(entry, Entry::Checkpoint(..))) {
            assert_eq!(missing(first, &log), Some(Missing { from: Some(0), to: first as i64 }));
        }
    }
    let first = places[1];
    let mut owner = Owner::new(2, Followers::Pass);
    owner.take_over_from(first, &mut log);
    assert!(owner.missing.is_some());
    assert!(missing(first, &log).is_some(), "it is told again, as nobody has accepted it");
    owner.locate(&log);
    owner.go_on(&mut log);
    assert_eq!(waiting(&fold(&log.0[first..]).0), [1, 2], "what is left waits");
    owner.checkpoint(&mut log);
    assert_eq!(missing(first, &log), None, "a checkpoint says that the log begins there now");
}

#[test]
fn a_cut_is_named_and_read_back_before_it_is_made() {
    let (log, owner) = cut_by_its_owner();
    let cut = *owner.trims.last().expect("most of the log is dead");
    let names = |entry: &Entry| match entry {
        Entry::Checkpoint(_, checkpoint) => checkpoint.log.and_then(|log| log.cut) == Some(cut),
        _ => false,
    };
    let named = log.0.iter().position(names).expect("it is named");
    assert!(named as i64 > cut && named < owner.at, "{cut} is named at {named}");
    assert_eq!(missing(cut as usize, &log), None, "made");
    assert_eq!(missing(0, &log), None, "or not made");
    assert!(missing(cut as usize + 1, &log).is_some());
}

#[test]
fn a_cut_of_a_former_owner_that_comes_late_is_its_own() {
    let (mut log, former) = cut_by_its_owner();
    let cut = *former.trims.last().unwrap() as usize;
    let mut owner = Owner::new(2, Followers::Pass);
    owner.take_over(&mut log);
    owner.arrive(40, "a");
    owner.fail(40, Class::NotReady);
    owner.go_on(&mut log);
    owner.checkpoint(&mut log);
    assert_eq!((missing(0, &log), missing(cut, &log)), (None, None));
}

#[test]
fn a_log_that_begins_with_what_never_counted_is_not_taken_for_one_that_was_cut_by_its_owner() {
    let says = |entry: Entry, at, cut| match entry {
        Entry::Checkpoint(stamp, mut checkpoint) => {
            checkpoint.log = Some(Beginning { at, cut });
            Entry::Checkpoint(stamp, checkpoint)
        }
        entry => entry,
    };
    let log = Log(vec![
        claimed(1),
        says(begins(stamp(1, 1, 0), 0), 0, None),
        claimed(2),
        // Of the former owner, and void; but first in a log that is cut here.
        says(checkpoint(stamp(1, 2, 1), 0, &[]), 0, None),
        wait(stamp(2, 1, 2), 7, "a", 1),
        says(checkpoint(stamp(2, 2, 4), 8, &[]), 0, Some(1)),
        claimed(3),
        says(checkpoint(stamp(3, 1, 6), 8, &[]), 0, None),
    ]);
    assert_eq!(waiting(&fold(&log.0).0), [7]);
    assert_eq!(waiting(&fold(&log.0[3..]).0), [0; 0], "it is void as well now");
    assert_eq!(missing(3, &log), Some(Missing { from: Some(1), to: 3 }));
    assert_eq!(missing(1, &log), None, "nothing lives below a place that was named");
}

#[test]
fn a_log_of_a_program_that_named_no_cuts_is_read_as_before() {
    let order = || order("o", 0, Deed::Release);
    let rest = [checkpoint(stamp(1, 5, 1), 1, &[]), wait(stamp(1, 6, 1), 1, "a", 1)];
    let log = |first: &[Entry]| Log([&[order(), order()], first, &rest].concat());
    assert_eq!(missing(2, &log(&[])), None, "a checkpoint is first");
    assert_eq!(missing(1, &log(&[])), None, "orders come from anyone");
    assert_eq!(missing(2, &log(&[Entry::Skipped])), None, "and what is no entry too");
    assert_eq!(missing(2, &log(&[claimed(1)])), None);
    let lost = log(&[wait(stamp(1, 4, 0), 0, "a", 1)]);
    assert_eq!(missing(2, &lost), Some(Missing { from: None, to: 2 }), "no owner leaves that in front");
    assert_eq!(missing(0, &lost), None, "unless the log was made anew");
}

#[test]
fn whoever_goes_on_with_such_a_log_says_where_it_begins() {
    let mut log = Log(vec![claimed(1), begins(stamp(1, 1, 0), 0)]);
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.checkpoint(&mut log);
    let Some(Entry::Checkpoint(_, last)) = log.0.last() else { panic!("nothing was written") };
    assert_eq!(last.log, Some(Beginning { at: 0, cut: None }));
}
