//! Against pointers: originals that are gone, replaced, or about to go.

use std::sync::Arc;
use std::time::Duration;

use super::bench::*;
use crate::class::Class;
use crate::flow::{Id, Kept, Notice, Settings, Smaller};
use crate::lanes::Followers;
use crate::letter::{Letter, Writer};
use crate::record::Record;
use crate::settings::Payload;
use crate::shelf::{Deed, Entry, Wait};
use crate::time::Timestamp;

const MINUTE: i64 = 60_000;

fn pointing(process: u64, kept: Kept) -> Settings {
    let mut settings = settings(process, Followers::Pass, 1_000);
    let shelf = settings.shelf.as_mut().unwrap();
    (shelf.payload, shelf.originals) = (Payload::Pointer, Some(kept));
    settings
}

fn for_an_hour() -> Kept {
    Kept::For(Duration::from_hours(1))
}

fn produced(offset: i64, key: &str, at: i64) -> Record {
    Record { timestamp: Some(Timestamp::from_millis(at)), ..record(offset, key) }
}

/// An owner with one record on the shelf, which was produced when everything began.
fn with_one_waiting(kept: Kept, log: &mut Log) -> Owner {
    let mut owner = Owner::with(pointing(1, kept));
    owner.take_over(log);
    owner.flow.arrive(produced(0, "a", START));
    owner.act();
    owner.fail(0, Class::NotReady);
    owner.write(log);
    owner.read(log);
    owner
}

fn last_wait(log: &Log) -> Arc<Wait> {
    let waits = log.0.iter().rev().filter_map(|entry| match entry {
        Entry::Wait(_, wait) => Some(wait.clone()),
        _ => None,
    });
    waits.into_iter().next().expect("something waits")
}

impl Owner {
    /// What was asked for of the source is told, or that it is gone.
    fn recall(&mut self, original: Option<&Record>) {
        for offset in std::mem::take(&mut self.recalling) {
            self.flow.recalled(0, offset, original);
        }
        self.act();
    }

    fn letter(&self, id: Id) -> Letter {
        let writer = Writer {
            group: "g".into(),
            service: None,
            instance: "i".into(),
            handler: "h".into(),
            by_origin: false,
        };
        writer.letter(self.flow.ticket(id).unwrap(), Timestamp::from_millis(self.now))
    }

    /// Puts the record off, so that it waits for longer than anybody thought.
    fn put_off(&mut self, until: i64, log: &mut Log) {
        log.0.push(order("later", 0, Deed::Reschedule { due: until }));
        self.read(log);
        self.write(log);
        self.read(log);
    }
}

#[test]
fn a_record_that_waits_as_a_pointer_is_handled_as_it_was_produced() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(Kept::Always, &mut log);
    let wait = last_wait(&log);
    assert!(wait.is_pointer() && wait.record.value.is_none() && wait.record.key.is_none());
    owner.pass_time(20, &log);
    assert_eq!(
        (owner.recalling.as_slice(), owner.handling()),
        ([0].as_slice(), vec![]),
        "not without its payload"
    );
    let original = produced(0, "a", START);
    owner.recall(Some(&original));
    assert_eq!(*owner.running[0].record, original);
    owner.fail(0, Class::NotReady);
    owner.write(&mut log);
    owner.read(&log);
    assert!(last_wait(&log).is_pointer(), "and waits as one again");
    assert_eq!(owner.flow.waiting(0), 1);
}

#[test]
fn a_record_whose_original_is_gone_becomes_a_letter_that_says_so_and_its_lane_goes_on() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(for_an_hour(), &mut log);
    owner.flow.arrive(produced(1, "a", START));
    owner.act();
    owner.write(&mut log);
    owner.read(&log);
    assert_eq!(owner.flow.waiting(0), 2, "a follower waits as a pointer too");
    owner.pass_time(20, &log);
    owner.recall(None);
    let letter = owner.letter(owner.burying[0]);
    assert_eq!((letter.key, letter.value), (None, None));
    for (name, value) in [
        ("redrive-reason", "expired"),
        ("redrive-origin", "orders/0/0"),
        ("redrive-pointer", "orders/0/0"),
        ("redrive-attempt", "1"),
        ("redrive-lane", "a"),
        ("redrive-error-type", "OriginalGone"),
    ] {
        assert_eq!(letter.headers.text(name), Some(value), "{name}");
    }
    assert!(
        letter.headers.text("redrive-error-chain").unwrap().contains("it broke"),
        "nor is what failed lost"
    );
    owner.bury();
    owner.pass_time(20, &log);
    assert_eq!(owner.recalling, [1], "the next of its lane");
    owner.recall(None);
    let letter = owner.letter(owner.burying[0]);
    assert_eq!(letter.headers.text("redrive-attempt"), Some("0"), "one that was never tried");
    owner.bury();
    owner.checkpoint(&mut log);
    assert!(fold(&log.0).0.waiting.is_empty() && owner.flow.is_idle());
}

#[test]
fn another_record_with_the_offset_of_an_original_is_not_taken_for_it() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(for_an_hour(), &mut log);
    owner.pass_time(20, &log);
    owner.recall(Some(&produced(0, "a", START + 1)));
    assert!(owner.handling().is_empty() && owner.burying.len() == 1);
}

#[test]
fn a_record_that_its_source_may_remove_before_it_is_due_waits_whole() {
    let mut log = Log::default();
    let mut owner = Owner::with(pointing(1, for_an_hour()));
    owner.take_over(&mut log);
    for (offset, timestamp) in [(0, Some(START - 59 * MINUTE)), (1, None)] {
        let timestamp = timestamp.map(Timestamp::from_millis);
        owner.flow.arrive(Record { timestamp, ..record(offset, "a") });
        owner.act();
        if offset == 0 {
            owner.fail(offset, Class::NotReady);
        }
        owner.write(&mut log);
        assert!(!last_wait(&log).is_pointer() && last_wait(&log).record.value.is_some());
        owner.read(&log);
    }
}

#[test]
fn a_pointer_is_rolled_forward_with_its_payload_before_its_original_expires() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(for_an_hour(), &mut log);
    owner.put_off(START + 90 * MINUTE, &mut log);
    owner.pass_time(50 * MINUTE, &log);
    assert!(owner.recalling.is_empty(), "it is kept for long enough");
    owner.pass_time(5 * MINUTE, &log);
    assert_eq!(owner.recalling, [0]);
    owner.recall(Some(&produced(0, "a", START)));
    // It does not land, and is carried once more.
    let lost = owner.unwritten();
    assert_eq!(lost.len(), 1);
    owner.failed(&lost[0]);
    owner.pass_time(MINUTE, &log);
    assert_eq!(owner.recalling, [0], "looked for again");
    owner.recall(Some(&produced(0, "a", START)));
    owner.write(&mut log);
    owner.read(&log);
    let wait = last_wait(&log);
    assert_eq!(
        (wait.is_pointer(), wait.due().millis()),
        (false, START + 90 * MINUTE),
        "whole, and due as before"
    );
    owner.pass_time(10 * MINUTE, &log);
    assert!(owner.recalling.is_empty(), "and that is enough");
    owner.pass_time(30 * MINUTE, &log);
    assert_eq!(*owner.running[0].record, produced(0, "a", START), "handled without its source");
}

#[test]
fn whoever_takes_over_rolls_pointers_forward_too() {
    let mut log = Log::default();
    let mut first = with_one_waiting(for_an_hour(), &mut log);
    first.put_off(START + 90 * MINUTE, &mut log);
    let mut second = Owner::with(pointing(2, for_an_hour()));
    second.now = START + 30 * MINUTE;
    second.take_over(&mut log);
    assert!(second.recalling.is_empty());
    second.pass_time(25 * MINUTE, &log);
    second.fetch(&log);
    assert_eq!(second.recalling, [0]);
    second.recall(Some(&produced(0, "a", START)));
    second.write(&mut log);
    assert!(!last_wait(&log).is_pointer());
}

#[test]
fn a_pointer_that_is_cancelled_becomes_a_letter_with_its_payload() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(for_an_hour(), &mut log);
    log.0.push(order("no", 0, Deed::Cancel));
    owner.read(&log);
    owner.write(&mut log);
    owner.read(&log);
    owner.recall(Some(&produced(0, "a", START)));
    let letter = owner.letter(owner.burying[0]);
    assert_eq!(letter.value.as_deref(), Some(&b"v"[..]));
    assert_eq!(letter.headers.text("redrive-reason"), Some("cancelled"));
    assert_eq!(letter.headers.text("redrive-pointer"), None);
}

#[test]
fn a_record_that_does_not_fit_waits_as_a_pointer_and_is_not_carried_with_its_payload() {
    let mut log = Log::default();
    let mut settings = pointing(1, for_an_hour());
    settings.shelf.as_mut().unwrap().payload = Payload::Whole;
    let mut owner = Owner::with(settings);
    owner.take_over(&mut log);
    owner.flow.arrive(produced(0, "a", START));
    owner.act();
    owner.fail(0, Class::NotReady);
    let stamp = owner.unwritten()[0].stamp().unwrap();
    assert_eq!(owner.flow.too_large(0, stamp.claim, stamp.seq), Smaller::Pointer);
    owner.flow.append_failed(0, stamp.claim, stamp.seq);
    owner.write(&mut log);
    owner.read(&log);
    assert!(last_wait(&log).is_pointer());
    owner.put_off(START + 90 * MINUTE, &mut log);
    owner.pass_time(55 * MINUTE, &log);
    assert!(owner.recalling.is_empty(), "it would not fit");
    // Who takes over does not know that yet.
    let mut next = Owner::with(pointing(2, for_an_hour()));
    next.now = START + 55 * MINUTE;
    next.take_over(&mut log);
    next.pass_time(MINUTE, &log);
    assert_eq!(next.recalling, [0]);
    next.recall(Some(&produced(0, "a", START)));
    let stamp = next.unwritten()[0].stamp().unwrap();
    assert_eq!(next.flow.too_large(0, stamp.claim, stamp.seq), Smaller::Left);
    next.act();
    assert!(next.is_told(|notice| matches!(notice, Notice::Unfit { origin: 0, .. })));
    next.pass_time(3 * MINUTE, &log);
    assert!(next.recalling.is_empty() && next.unwritten().is_empty(), "once is enough");
    next.pass_time(40 * MINUTE, &log);
    next.recall(None);
    assert_eq!(next.burying.len(), 1, "its original is gone: a letter says so");
}

#[test]
fn a_pause_does_not_let_originals_expire() {
    let mut log = Log::default();
    let mut owner = with_one_waiting(for_an_hour(), &mut log);
    owner.flow.pause(true);
    owner.pass_time(55 * MINUTE, &log);
    assert_eq!((owner.recalling.as_slice(), owner.handling()), ([0].as_slice(), vec![]));
    owner.recall(Some(&produced(0, "a", START)));
    owner.write(&mut log);
    assert!(!last_wait(&log).is_pointer());
}
