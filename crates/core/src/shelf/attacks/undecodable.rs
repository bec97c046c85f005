//! Against records on the shelf that are no entries.

use super::bench::*;
use crate::class::Class;
use crate::lanes::Followers;
use crate::shelf::Entry;

/// Stands for a record that is no entry.
const NONE: Entry = Entry::Skipped;

#[test]
fn what_is_no_entry_becomes_a_letter_once_whoever_takes_over() {
    let mut log = Log(vec![NONE]);
    let mut first = Owner::running(1, Followers::Pass, &mut log);
    assert_eq!(first.undecodable, [0], "there before anybody");
    log.0.push(NONE);
    let second = log.0.len() as i64 - 1;
    first.read(&log);
    assert_eq!(first.undecodable, [0], "one at a time");
    first.arrive(0, "a");
    first.succeed(0);
    first.checkpoint(&mut log);
    assert_eq!(first.flow.mark(0), Some(1), "nothing waits for its letter");
    // It crashes before it hears of the letter.
    let mut next = Owner::running(2, Followers::Pass, &mut log);
    assert_eq!(next.undecodable, [0]);
    next.flow.buried_undecodable(0, 0);
    next.act();
    assert_eq!(next.undecodable, [0, second]);
    next.checkpoint(&mut log);
    let mut next = Owner::running(3, Followers::Pass, &mut log);
    assert_eq!(next.undecodable, [second], "a checkpoint says that the first has its letter");
    next.flow.buried_undecodable(0, second);
    assert!(!next.flow.is_written(0), "that has to be written, though nothing else was done");
    next.checkpoint(&mut log);
    for process in 4..6 {
        let mut next = Owner::running(process, Followers::Pass, &mut log);
        assert!(next.undecodable.is_empty(), "never again");
        next.checkpoint(&mut log);
    }
}

#[test]
fn the_log_is_not_cut_above_what_has_no_letter_yet() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    log.0.push(NONE);
    let at = log.0.len() as i64 - 1;
    owner.read_as(&log, 9 << 20);
    for offset in 0..3 {
        owner.arrive(offset, "a");
        owner.fail(offset, Class::Permanent);
        owner.bury();
        owner.flow.checkpoint(0);
        owner.write(&mut log);
        owner.read_as(&log, 9 << 20);
    }
    assert!(owner.trims.iter().all(|to| *to <= at), "{:?}", owner.trims);
    owner.flow.buried_undecodable(0, at);
    for _ in 0..2 {
        owner.arrive(owner.flow.position(0).unwrap(), "a");
        owner.succeed(owner.flow.position(0).unwrap() - 1);
        owner.flow.checkpoint(0);
        owner.write(&mut log);
        owner.read_as(&log, 9 << 20);
    }
    assert!(owner.trims.last().is_some_and(|to| *to > at), "{:?}", owner.trims);
}
