//! Against the log: what counts of it, and what may be cut off.

use super::bench::*;
use crate::class::Class;
use crate::flow::Notice;
use crate::lanes::Followers;
use crate::shelf::{Closed, Deed, Entry, Folded, Outcome, Verdict};

#[test]
fn a_trimmed_claim() {
    let log = [checkpoint(stamp(1, 7, 3), 5, &[]), wait(stamp(1, 8, 3), 5, "a", 1)];
    let (shelf, folded) = fold(&log);
    assert_eq!(folded, [Folded::Counted; 2], "the log begins with a checkpoint that counted");
    assert_eq!((shelf.claim(), waiting(&shelf)), (Some(claim(1)), vec![5]));
}

#[test]
fn a_former_owner_whose_claim_was_trimmed_takes_nothing_over_with_a_late_checkpoint() {
    let log = [
        checkpoint(stamp(2, 7, 3), 5, &[]),
        checkpoint(stamp(1, 9, 2), 3, &[]),
        wait(stamp(2, 8, 3), 5, "a", 1),
    ];
    let (shelf, folded) = fold(&log);
    assert_eq!(folded, [Folded::Counted, Folded::Void, Folded::Counted]);
    assert_eq!(shelf.progress().unwrap().mark(), 6);
}

#[test]
fn an_append_that_lands_twice_and_a_claim_that_lands_twice() {
    let log = [
        claimed(1),
        wait(stamp(1, 1, 0), 0, "a", 1),
        checkpoint(stamp(1, 2, 1), 1, &[(0, 1)]),
        claimed(1),
        wait(stamp(1, 1, 0), 0, "a", 1),
    ];
    let (shelf, folded) = fold(&log);
    assert_eq!(folded[3..], [Folded::Void, Folded::Void], "the copy of the claim brings no number back");
    assert!(shelf.waiting.is_empty());
}

#[test]
fn done_names_the_attempt_and_not_one_that_waits_again() {
    let log = [
        claimed(1),
        wait(stamp(1, 1, 0), 0, "a", 1),
        wait(stamp(1, 2, 0), 0, "a", 2),
        checkpoint(stamp(1, 3, 0), 1, &[(0, 1)]),
    ];
    assert_eq!(waiting(&fold(&log).0), [0]);
}

#[test]
fn a_checkpoint_does_not_forget_what_its_writer_had_not_seen() {
    let log = [claimed(1), wait(stamp(1, 1, 0), 4, "a", 1), checkpoint(stamp(1, 2, 0), 4, &[])];
    assert_eq!(fold(&log).0.progress().unwrap().mark(), 5);
    let log = [claimed(1), wait(stamp(1, 1, 0), 4, "a", 1), checkpoint(stamp(1, 2, 1), 4, &[])];
    assert_eq!(fold(&log).0.progress().unwrap().mark(), 4, "what it had seen it would have said");
}

#[test]
fn a_reset_goes_down_and_forgets_what_was_complete_ahead() {
    let log = [
        claimed(1),
        checkpoint(stamp(1, 1, 0), 100, &[]),
        claimed(2),
        wait(stamp(2, 1, 1), 120, "a", 1),
        begins(stamp(2, 2, 2), 50),
    ];
    let progress = fold(&log).0.progress().unwrap();
    assert_eq!((progress.mark(), progress.ahead().len()), (50, 0));
    let mut log = Log(log.to_vec());
    let mut owner = Owner::running(3, Followers::Pass, &mut log);
    assert_eq!(owner.starts, [50]);
    for offset in 50..121 {
        owner.arrive(offset, &offset.to_string());
    }
    let of_120 = owner.running.iter().filter(|attempt| attempt.record.at.offset == 120);
    let tries: Vec<_> = of_120.map(|attempt| attempt.number).collect();
    assert_eq!(tries, [2], "what waits comes from the shelf, and not from the source as well");
}

#[test]
fn complete_and_closed_are_one_entry() {
    let closed = Closed { origin: 0, lane: "a".into(), completes: true, announced: None };
    let log = [claimed(1), wait(stamp(1, 1, 0), 0, "a", 1), Entry::Closed(stamp(1, 2, 1), closed)];
    let (before, _) = fold(&log[..2]);
    assert!(!before.is_closing(0) && waiting(&before) == [0]);
    let (after, _) = fold(&log);
    assert!(after.is_closing(0) && after.waiting.is_empty());
}

#[test]
fn nothing_live_is_cut_off_until_it_was_carried() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    owner.go_on(&mut log);
    // Entries of a megabyte each, all of them dead but the one.
    for offset in 1..30 {
        owner.arrive(offset, "b");
        owner.succeed(offset);
        owner.flow.checkpoint(0);
        owner.write(&mut log);
        owner.read_as(&log, 1 << 20);
        owner.go_on(&mut log);
    }
    let cut = *owner.trims.last().expect("most of the log is dead");
    let first = log.0.iter().position(|entry| matches!(entry, Entry::Wait(..))).unwrap() as i64;
    assert!(cut > first, "it was carried to the end");
    assert!(matches!(log.0[cut as usize], Entry::Checkpoint(..)));
    let rest = Log(log.0[cut as usize..].to_vec());
    let (shelf, _) = fold(&rest.0);
    assert_eq!(waiting(&shelf), [0], "a successor that begins there has it");
    assert_eq!(shelf.progress(), fold(&log.0).0.progress());
}

#[test]
fn a_cancelled_record_stays_cancelled_when_it_is_carried_and_the_log_cut() {
    let cancelled = Outcome::to("o", 0, Verdict::Cancelled);
    let mut log = Log(vec![
        claimed(1),
        begins(stamp(1, 1, 0), 0),
        wait(stamp(1, 2, 1), 0, "a", 1),
        order("o", 0, Deed::Cancel),
        Entry::Outcome(stamp(1, 3, 3), cancelled),
        checkpoint(stamp(1, 4, 4), 1, &[]),
    ]);
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    assert_eq!((owner.handling(), owner.burying.len()), (vec![], 1), "a letter, whoever takes over");
    owner.bury();
    owner.checkpoint(&mut log);
    assert!(fold(&log.0).0.waiting.is_empty());
}

#[test]
fn a_closure_is_live_and_an_order_too() {
    let closed = Closed { origin: 0, lane: "a".into(), completes: true, announced: None };
    let log = [
        claimed(1),
        Entry::Closed(stamp(1, 1, 0), closed.clone()),
        order("o", 0, Deed::Resolve),
        checkpoint(stamp(1, 2, 2), 1, &[]),
    ];
    assert_eq!(fold(&log).0.lowest_live(), Some(1));
    let carried = Entry::Closed(stamp(1, 3, 3), Closed { completes: false, ..closed });
    let opened = Outcome::to("o", 0, Verdict::Opened);
    let log = [&log[..], &[carried]].concat();
    assert_eq!(fold(&log).0.lowest_live(), Some(2), "the order is not answered");
    let log = [&log[..], &[Entry::Outcome(stamp(1, 4, 4), opened)]].concat();
    assert_eq!(fold(&log).0.lowest_live(), None);
}

#[test]
fn a_closure_is_carried_although_nothing_else_has_to_be_written() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Hold, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::Permanent);
    owner.bury();
    owner.go_on(&mut log);
    owner.checkpoint(&mut log);
    // Much that is over by now.
    owner.arrive(1, "b");
    owner.fail(1, Class::NotReady);
    owner.write(&mut log);
    owner.read_as(&log, 64 << 20);
    owner.pass_time(10, &log);
    owner.succeed(1);
    let is_carried = |entry: &Entry| matches!(entry, Entry::Closed(_, closed) if !closed.completes);
    let mut written = Vec::new();
    for _ in 0..3 {
        owner.checkpoint(&mut log);
        // Not only when the next checkpoint is, which may be never.
        let entries = owner.unwritten();
        written.extend(entries.iter().filter(|entry| is_carried(entry)).cloned());
        log.0.extend(entries);
        owner.read(&log);
    }
    assert_eq!(written.len(), 1);
}

#[test]
fn an_entry_that_must_be_there_and_is_not_is_told() {
    let mut log = Log(vec![claimed(1), begins(stamp(1, 1, 0), 1), wait(stamp(1, 2, 1), 0, "a", 1)]);
    let mut owner = Owner::new(2, Followers::Pass);
    owner.now -= 20_000;
    owner.take_over(&mut log);
    owner.pass_time(20_020, &Log::default());
    // Neither in the pass over what is due soon, nor when it is looked for.
    owner.fetch(&Log::default());
    assert!(owner.is_told(|notice| matches!(notice, Notice::Gone { at: 2, .. })));
}
