//! Against owners: late, frozen, former, and two at a time.

use super::bench::*;
use crate::class::Class;
use crate::flow::{Located, Notice};
use crate::lanes::Followers;
use crate::shelf::{Entry, Identity, Phase};

#[test]
fn a_late_claim_voids_what_the_owner_writes_until_it_claims_again() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    log.0.push(claimed(2));
    owner.write(&mut log);
    assert!(fold(&log.0).0.waiting.is_empty(), "acknowledged, and void");
    owner.read(&log);
    assert!(owner.is_told(|notice| matches!(notice, Notice::Rival { .. })));
    assert_eq!(owner.flow.position(0), Some(1));
    owner.checkpoint(&mut log);
    assert_eq!(fold(&log.0).0.progress().unwrap().mark(), 0, "nothing counts before the claim does");
    while owner.flow.phase(0) != Some(Phase::Running) {
        owner.go_on(&mut log);
    }
    owner.go_on(&mut log);
    assert_eq!(waiting(&fold(&log.0).0), [0], "written again");
    assert_eq!(owner.starts.len(), 1, "the source goes on");
}

#[test]
fn nothing_is_written_before_a_commit_was_accepted() {
    let mut log = Log::default();
    let mut owner = Owner::new(1, Followers::Pass);
    owner.flow.take_over(0);
    owner.act();
    log.0.append(&mut owner.claims);
    owner.read(&log);
    assert_eq!(owner.flow.phase(0), Some(Phase::Proving));
    owner.flow.checkpoint(0);
    assert!(owner.unwritten().is_empty() && owner.starts.is_empty());
    owner.prove();
    owner.locate(&log);
    assert!(owner.starts.is_empty(), "where it begins has to be read back first");
    owner.write(&mut log);
    owner.read(&log);
    assert_eq!(owner.starts, [0]);
}

#[test]
fn a_refused_proof_ends_no_ownership_and_a_stale_one_starts_nothing() {
    let mut log = Log::default();
    let mut owner = Owner::new(1, Followers::Pass);
    owner.take_over(&mut log);
    let stale = claim(1);
    owner.flow.take_over(0);
    owner.at = 0;
    owner.act();
    log.0.append(&mut owner.claims);
    owner.read(&log);
    owner.flow.proven(0, stale, owner.time());
    assert_eq!(owner.flow.phase(0), Some(Phase::Proving), "that was another claim");
    owner.prove();
    owner.locating = false;
    owner.flow.proven(0, stale, owner.time());
    owner.act();
    assert!(!owner.locating, "it is located once");
    for _ in 0..2 {
        owner.flow.located(0, Located::GoesOn, owner.time());
        owner.act();
    }
    assert_eq!(owner.starts, [0, 0], "and started once for each time it was taken over");
}

#[test]
fn the_first_start_is_found_out_once() {
    let mut log = Log::default();
    let mut first = Owner::new(1, Followers::Pass);
    first.flow.take_over(0);
    first.act();
    log.0.append(&mut first.claims);
    first.read(&log);
    first.prove();
    first.flow.located(0, Located::BeginsAt(1000), first.time());
    first.write(&mut log);
    // It dies before it reads that, and before any commit; meanwhile the latest offset is 1005.
    let second = Owner::running(2, Followers::Pass, &mut log);
    assert_eq!(second.starts, [1000]);
}

#[test]
fn the_log_suffices_where_every_committed_offset_has_expired() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    for offset in 0..3 {
        owner.arrive(offset, "a");
        owner.succeed(offset);
    }
    owner.checkpoint(&mut log);
    assert!(owner.flow.is_written(0));
    assert_eq!(Owner::running(2, Followers::Pass, &mut log).starts, [3]);
}

#[test]
fn done_in_memory_is_not_committed_and_a_lost_checkpoint_takes_nothing_with_it() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    owner.go_on(&mut log);
    owner.pass_time(20, &log);
    owner.succeed(0);
    assert!(!owner.flow.is_written(0));
    owner.flow.checkpoint(0);
    let lost = owner.unwritten();
    assert_eq!(lost.len(), 1);
    owner.arrive(1, "a");
    owner.succeed(1);
    owner.checkpoint(&mut log);
    // The second landed and the first did not: what it says came after must not count alone.
    let (shelf, _) = fold(&log.0);
    assert!(shelf.waiting.is_empty() && shelf.progress().unwrap().mark() == 2);
}

#[test]
fn a_checkpoint_that_waits_to_be_written_knows_of_nothing_since_it_was_made() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.arrive(1, "b");
    owner.fail(1, Class::NotReady);
    owner.write(&mut log);
    owner.flow.checkpoint(0);
    owner.read(&log);
    owner.write(&mut log);
    let progress = fold(&log.0).0.progress().unwrap();
    assert!(progress.ahead().contains(1), "it waits, and is complete");
}

#[test]
fn results_of_a_partition_that_was_given_up_are_discarded() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.flow.abandon(0);
    owner.take_over(&mut log);
    owner.succeed(0);
    assert_eq!(owner.flow.running(), 0);
    owner.arrive(0, "a");
    assert_eq!(owner.handling(), [0], "it is handled again");
}

#[test]
fn what_nobody_has_begun_of_a_partition_that_was_given_up_is_not_begun() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.flow.arrive(record(0, "a"));
    owner.flow.advance(owner.time());
    assert!(owner.flow.abandon(0).is_empty(), "no handler has it");
    owner.act();
    assert_eq!((owner.handling(), owner.flow.running()), (vec![], 0));
}

#[test]
fn two_subscriptions_that_share_the_name_of_a_shelf() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    let mut settings = settings(2, Followers::Pass, 10);
    let other = Identity { topic: "a".into(), topic_id: None, group: "b.c".into() };
    settings.shelf.as_mut().unwrap().identity = other;
    let mut stranger = Owner::with(settings);
    stranger.flow.take_over(0);
    stranger.act();
    stranger.go_on(&mut log);
    assert!(stranger.is_told(|notice| matches!(notice, Notice::Foreign { .. })));
    assert!(stranger.starts.is_empty() && stranger.unwritten().is_empty());
    owner.read(&log);
    assert!(
        !owner.is_told(|notice| matches!(notice, Notice::Rival { .. })),
        "it took nothing from the owner"
    );
}

#[test]
fn a_source_that_was_deleted_and_made_anew() {
    let named = |id: &str| Identity { topic_id: Some(id.into()), ..identity() };
    let mut log = Log(vec![Entry::Claim(stamp(1, 0, -1), named("old")), begins(stamp(1, 1, 0), 50)]);
    let mut settings = settings(2, Followers::Pass, 10);
    settings.shelf.as_mut().unwrap().identity = named("new");
    let mut owner = Owner::with(settings);
    owner.flow.take_over(0);
    owner.act();
    owner.go_on(&mut log);
    assert!(owner.is_told(|notice| matches!(notice, Notice::Foreign { .. })) && owner.starts.is_empty());
}

#[test]
fn a_wait_that_landed_though_it_was_told_as_failed() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    let entries = owner.unwritten();
    entries.iter().for_each(|entry| owner.failed(entry));
    log.0.extend(entries);
    owner.read(&log);
    owner.pass_time(50, &log);
    assert!(owner.handling().is_empty(), "it is being written once more");
    owner.go_on(&mut log);
    owner.pass_time(50, &log);
    assert_eq!(owner.handling(), [0]);
    owner.succeed(0);
    assert_eq!((owner.flow.in_memory(), owner.flow.is_idle()), (0, true));
}

#[test]
fn an_entry_that_never_landed_and_nobody_told_of_is_written_again_when_a_later_one_is_read() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    for (offset, key) in [(0, "a"), (1, "b")] {
        owner.arrive(offset, key);
        owner.fail(offset, Class::NotReady);
    }
    let entries = owner.unwritten();
    assert_eq!(entries.len(), 2);
    log.0.push(entries[1].clone());
    owner.read(&log);
    let again = owner.unwritten();
    assert_eq!(again.len(), 1, "the first is missing");
    assert!(again[0].stamp().unwrap().seq > entries[1].stamp().unwrap().seq, "with a number that counts");
    log.0.extend(again);
    owner.read(&log);
    assert_eq!(waiting(&fold(&log.0).0), [0, 1]);
    owner.checkpoint(&mut log);
    assert_eq!(owner.flow.mark(0), Some(2), "nothing is on its way for ever");
}

#[test]
fn a_record_that_came_due_while_it_was_carried_is_released_though_the_carry_is_lost() {
    let mut log = Log::default();
    let mut owner = Owner::running(1, Followers::Pass, &mut log);
    owner.arrive(0, "a");
    owner.fail(0, Class::NotReady);
    owner.write(&mut log);
    owner.read(&log);
    // So much is dead that the rest is carried.
    let mut carried = None;
    for offset in 1..9 {
        owner.arrive(offset, "b");
        owner.succeed(offset);
        owner.flow.checkpoint(0);
        let mut entries = owner.unwritten();
        let is_wait = |entry: &Entry| matches!(entry, Entry::Wait(..));
        if let Some(at) = entries.iter().position(is_wait) {
            carried = Some(entries.remove(at));
            break;
        }
        log.0.append(&mut entries);
        owner.read_as(&log, 9 << 20);
    }
    let carried = carried.expect("it is carried");
    owner.pass_time(20, &log);
    assert!(owner.handling().is_empty(), "not while its entry is on its way");
    owner.failed(&carried);
    owner.pass_time(1, &log);
    assert_eq!(owner.handling(), [0]);
}

#[test]
fn a_waiting_record_is_released_when_the_end_of_its_source_is_reached() {
    // What was before it was aborted, and after it nothing comes.
    let mut log = Log(vec![claimed(1), begins(stamp(1, 1, 0), 3), wait(stamp(1, 2, 1), 5, "a", 1)]);
    let mut owner = Owner::running(2, Followers::Pass, &mut log);
    owner.pass_time(20, &log);
    assert!(owner.handling().is_empty(), "one of its lane may come before it");
    owner.flow.reached(0, 6);
    owner.pass_time(1, &log);
    assert_eq!(owner.handling(), [5]);
}
