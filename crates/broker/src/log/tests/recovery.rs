//! What is there after the process died at the worst moment.

use std::fs;

use kafka_protocol::ResponseError;
use proptest::prelude::*;

use super::super::AppendError;
use super::*;

fn small_segments() -> Settings {
    Settings { segment_bytes: 300, ..Settings::default() }
}

#[test]
fn a_log_comes_back_with_its_offsets_and_goes_on_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    for _ in 0..20 {
        append(&mut log, testing::batch(2), &small_segments());
    }
    drop(log);
    let mut log = open(dir.path());
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), (0..40).collect::<Vec<_>>());
    assert_eq!(append(&mut log, testing::batch(1), &small_segments()).base_offset, 40);
}

#[test]
fn a_closed_log_needs_no_walk_and_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    for i in 0..5 {
        append(&mut log, testing::batch(2).sequence(9, 0, i * 2), &Settings::default());
    }
    log.close().unwrap();
    let mut log = open(dir.path());
    let repeated = append(&mut log, testing::batch(2).sequence(9, 0, 8), &Settings::default());
    assert_eq!(repeated.base_offset, 8, "the producer is remembered");
    assert_eq!(log.next_offset(), 10);
}

#[test]
fn a_repeated_batch_is_known_after_a_crash_and_a_gap_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    for i in 0..8 {
        append(&mut log, testing::batch(2).sequence(9, 0, i * 2), &small_segments());
    }
    drop(log);
    let mut log = open(dir.path());
    assert_eq!(append(&mut log, testing::batch(2).sequence(9, 0, 14), &small_segments()).base_offset, 14);
    let bytes = testing::batch(2).sequence(9, 0, 20).build();
    let refused = log.append(batch::check(&bytes).unwrap(), &bytes, &small_segments(), NOW);
    assert!(matches!(refused, Err(AppendError::Refused(ResponseError::OutOfOrderSequenceNumber))));
}

#[test]
fn open_and_aborted_transactions_are_known_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    append(&mut log, testing::batch(1).sequence(1, 0, 0).transactional(), &small_segments());
    mark(&mut log, 1, false);
    append(&mut log, testing::batch(1), &small_segments());
    append(&mut log, testing::batch(1).sequence(2, 0, 0).transactional(), &small_segments());
    append(&mut log, testing::batch(1), &small_segments());
    drop(log);
    let log = open(dir.path());
    assert_eq!(log.stable_offset(), 3);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Committed)), [2]);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), [0, 2, 3, 4]);
}

#[test]
fn deleted_records_stay_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    for _ in 0..20 {
        append(&mut log, testing::batch(2), &small_segments());
    }
    assert_eq!(log.delete_before(33).unwrap(), Some(33));
    assert_eq!(log.delete_before(99).unwrap(), None, "beyond the end");
    drop(log);
    let mut log = open(dir.path());
    assert_eq!((log.start(), log.next_offset()), (33, 40));
    assert_eq!(log.delete_before(40).unwrap(), Some(40));
    drop(log);
    let log = open(dir.path());
    assert_eq!((log.start(), log.next_offset()), (40, 40));
}

#[test]
fn marks_that_are_damaged_are_refused_rather_than_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    append(&mut log, testing::batch(4), &small_segments());
    log.delete_before(3).unwrap();
    drop(log);
    fs::write(dir.path().join("marks.json"), "{\"start\":").unwrap();
    let refused = Log::open(Place { dir: Some(dir.path().to_owned()), handles: Handles::new(8) });
    assert!(refused.unwrap_err().to_string().contains("marks.json is damaged"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Cut the last segment at any byte: the batches that are whole are there, in order, no others.
    #[test]
    fn a_torn_tail_leaves_the_acknowledged_prefix(
        sizes in proptest::collection::vec(1..6i32, 1..15), cut in 0.0..1.0f64, garbage in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = open(dir.path());
        let (mut ends, mut next) = (vec![(0u64, 0i64)], 0);
        for n in sizes {
            let draft = testing::batch(n);
            let size = draft.build_size();
            append(&mut log, testing::batch(n), &Settings::default());
            next += i64::from(n);
            ends.push((ends[ends.len() - 1].0 + size, next));
        }
        drop(log);
        let path = dir.path().join(format!("{:020}.log", 0));
        let bytes = fs::read(&path).unwrap();
        let kept = (bytes.len() as f64 * cut) as usize;
        fs::write(&path, [&bytes[..kept], &garbage].concat()).unwrap();
        let expected = ends.iter().rev().find(|(end, _)| *end <= kept as u64).unwrap().1;
        let mut log = open(dir.path());
        prop_assert_eq!(log.next_offset(), expected);
        prop_assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), (0..expected).collect::<Vec<_>>());
        prop_assert_eq!(append(&mut log, testing::batch(1), &Settings::default()).base_offset, expected);
        prop_assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)).len() as i64, expected + 1);
    }
}
