//! Retention and compaction against what a naive reader of the rules would keep.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::Cleanup;
use super::*;

fn compacted(segment_bytes: u64) -> Settings {
    Settings { cleanup: Cleanup::Compact, segment_bytes, ..Settings::default() }
}

fn compact(log: &mut Log, settings: &Settings, now: i64) {
    log.roll().unwrap();
    let Some(plan) = log.plan_compaction(settings, now, true).unwrap() else {
        return;
    };
    let done = plan.carry_out(now).unwrap();
    log.swap(done).unwrap();
}

#[test]
fn old_segments_go_and_the_log_starts_later() {
    let mut log = memory();
    let settings = Settings { segment_bytes: 200, retention_ms: Some(1_000), ..Settings::default() };
    for i in 0..10 {
        append(&mut log, testing::batch(2).at(NOW + i * 500), &settings);
    }
    assert!(log.retain(&settings, NOW + 3_600).unwrap() > 0);
    assert_eq!(log.start(), 12);
    log.retain(&settings, NOW + 1_000_000).unwrap();
    assert_eq!((log.start(), log.next_offset()), (20, 20), "the active one goes too, once all of it is old");
    assert_eq!(append(&mut log, testing::batch(1), &settings).base_offset, 20);
}

#[test]
fn the_oldest_segments_go_when_there_are_too_many_bytes() {
    let mut log = memory();
    let settings = Settings {
        segment_bytes: 200,
        retention_bytes: Some(500),
        retention_ms: None,
        ..Settings::default()
    };
    for _ in 0..10 {
        append(&mut log, testing::batch(2), &settings);
    }
    log.retain(&settings, NOW).unwrap();
    let size = log.size().unwrap();
    assert!((500..700).contains(&size), "{size}");
    assert_eq!(offsets(&read_all(&log, log.start(), Isolation::Uncommitted)).last(), Some(&19));
}

#[test]
fn an_open_transaction_keeps_its_segment() {
    let mut log = memory();
    let settings = Settings { segment_bytes: 200, retention_ms: Some(1), ..Settings::default() };
    append(&mut log, testing::batch(2).at(5).sequence(1, 0, 0).transactional(), &settings);
    append(&mut log, testing::batch(2).at(5), &settings);
    assert_eq!(log.retain(&settings, NOW).unwrap(), 0);
    mark(&mut log, 1, true);
    assert!(log.retain(&settings, NOW).unwrap() > 0);
}

#[test]
fn a_tombstone_stays_for_its_time_after_it_was_first_met() {
    let mut log = memory();
    let settings = Settings { delete_retention_ms: 1_000, ..compacted(1 << 20) };
    append(&mut log, testing::record("a", Some("1")), &settings);
    append(&mut log, testing::record("b", Some("1")), &settings);
    append(&mut log, testing::record("a", None), &settings);
    compact(&mut log, &settings, NOW);
    assert_eq!(
        read_all(&log, 0, Isolation::Uncommitted),
        [(1, b"b".to_vec(), true), (2, b"a".to_vec(), false)]
    );
    compact(&mut log, &settings, NOW + 500);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), [1, 2]);
    compact(&mut log, &settings, NOW + 1_500);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), [1]);
    assert_eq!(log.next_offset(), 3);
}

#[test]
fn times_survive_compaction() {
    let mut log = memory();
    let settings = compacted(1 << 20);
    append(&mut log, testing::record("a", Some("1")).at(100), &settings);
    append(&mut log, testing::record("b", None).at(200), &settings);
    append(&mut log, testing::record("c", Some("1")).at(300), &settings);
    compact(&mut log, &settings, NOW);
    let stamped = |time| log.first_at(time, 10).unwrap().map(|at| (at.offset, at.timestamp));
    assert_eq!((stamped(0), stamped(150), stamped(250)), (Some((0, 100)), Some((1, 200)), Some((2, 300))));
}

#[test]
fn nothing_behind_an_open_transaction_is_compacted() {
    let mut log = memory();
    let settings = compacted(120);
    append(&mut log, testing::record("a", Some("1")), &settings);
    append(&mut log, testing::record("a", Some("2")).sequence(1, 0, 0).transactional(), &settings);
    append(&mut log, testing::record("a", Some("3")), &settings);
    compact(&mut log, &settings, NOW);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), [0, 1, 2]);
    mark(&mut log, 1, false);
    compact(&mut log, &settings, NOW);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Uncommitted)), [2], "aborted records go");
}

#[test]
fn a_compacted_log_is_the_same_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let settings = compacted(300);
    for i in 0..40 {
        append(&mut log, testing::record(&format!("k{}", i % 3), Some("v")), &settings);
    }
    compact(&mut log, &settings, NOW);
    let before = read_all(&log, 0, Isolation::Uncommitted);
    assert_eq!(offsets(&before), [37, 38, 39]);
    drop(log);
    let mut log = open(dir.path());
    assert_eq!(read_all(&log, 0, Isolation::Uncommitted), before);
    assert_eq!(append(&mut log, testing::batch(1), &settings).base_offset, 40);
}

#[test]
fn a_swap_that_a_crash_interrupted_is_finished_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let settings = compacted(150);
    for _ in 0..6 {
        append(&mut log, testing::record("k", Some("v")), &settings);
    }
    let closed: Vec<i64> = log.segments[..log.segments.len() - 1].iter().map(|s| s.base).collect();
    let end = log.active().base;
    drop(log);
    // The last closed segment alone stands for all: the others must go when it is put in place.
    let last = *closed.last().unwrap();
    let swap = dir.path().join(format!("{:020}-{end:020}.swap", closed[0]));
    std::fs::copy(dir.path().join(format!("{last:020}.log")), swap).unwrap();
    let log = open(dir.path());
    assert_eq!(log.segments.iter().map(|s| s.base).collect::<Vec<_>>(), [closed[0], end]);
    assert_eq!(read_all(&log, 0, Isolation::Uncommitted).first().map(|seen| seen.0), Some(last));
}

/// What a reader makes of a compacted log: the last of each key.
fn latest(log: &Log) -> BTreeMap<Vec<u8>, i64> {
    read_all(log, log.start(), Isolation::Uncommitted).into_iter().map(|(at, key, _)| (key, at)).collect()
}

/// A log of several segments, so that compaction makes more than one file.
fn to_be_compacted(dir: &Path) -> (Log, Settings) {
    let (mut log, settings) = (open(dir), compacted(300));
    for i in 0..60 {
        append(&mut log, testing::record(&format!("k{}", i % 17), Some("v")), &settings);
    }
    log.roll().unwrap();
    (log, settings)
}

fn copied(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    to
}

/// The steps of a swap, one file after the other: decided, each old segment gone, in place.
#[test]
fn a_crash_at_any_step_of_a_swap_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (log, settings) = to_be_compacted(dir.path());
    let (before, end) = (latest(&log), log.next_offset());
    let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base).collect();
    let done = log.plan_compaction(&settings, NOW, true).unwrap().unwrap().carry_out(NOW).unwrap();
    let made = done.ranges();
    assert!(made.len() > 1, "more than one file is put in place");
    let check = |step: &str| {
        let crashed = copied(dir.path());
        let log = open(crashed.path());
        assert_eq!((latest(&log), log.next_offset()), (before.clone(), end), "{step}");
        let left = std::fs::read_dir(crashed.path()).unwrap().map(|entry| entry.unwrap().path());
        let unfinished = |path: &std::path::PathBuf| {
            path.extension().is_some_and(|extension| extension == "swap" || extension == "cleaned")
        };
        assert_eq!(left.filter(unfinished).count(), 0, "{step}: finished or undone");
    };
    check("written");
    let file = |name: String| dir.path().join(name);
    for (from, to) in made {
        let swap = file(format!("{from:020}-{to:020}.swap"));
        std::fs::rename(file(format!("{from:020}.cleaned")), &swap).unwrap();
        check("decided");
        for base in bases.iter().filter(|base| (from..to).contains(*base)) {
            std::fs::remove_file(file(format!("{base:020}.log"))).unwrap();
            check("an old one gone");
        }
        std::fs::rename(swap, file(format!("{from:020}.log"))).unwrap();
        check("in place");
    }
}

#[test]
fn an_error_in_the_middle_of_a_swap_leaves_a_log_that_opens_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, settings) = to_be_compacted(dir.path());
    let (before, end) = (latest(&log), log.next_offset());
    let done = log.plan_compaction(&settings, NOW, true).unwrap().unwrap().carry_out(NOW).unwrap();
    // A folder in the way of the second file: the first is put in place, the second cannot be decided.
    let (from, to) = done.ranges()[1];
    let obstacle = dir.path().join(format!("{from:020}-{to:020}.swap"));
    std::fs::create_dir(&obstacle).unwrap();
    log.swap(done).unwrap_err();
    std::fs::remove_dir(&obstacle).unwrap();
    let mut log = open(dir.path());
    assert_eq!((latest(&log), log.next_offset()), (before.clone(), end));
    compact(&mut log, &settings, NOW);
    assert_eq!(latest(&log), before, "and it is compacted the next time");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn compaction_keeps_the_last_of_each_key_and_what_it_may_not_touch(
        writes in proptest::collection::vec((0..5u8, any::<bool>(), 0..5i16), 1..60),
        segment_bytes in 100..600u64, at in proptest::collection::vec(0..60usize, 0..4),
    ) {
        let settings = Settings { delete_retention_ms: i64::MAX / 4, ..compacted(segment_bytes) };
        let mut log = memory();
        let mut last: BTreeMap<Vec<u8>, (i64, bool)> = BTreeMap::new();
        for (i, (key, has_value, codec)) in writes.iter().enumerate() {
            let key = format!("key-{key}");
            let draft = testing::record(&key, has_value.then_some("value")).codec(*codec);
            let offset = append(&mut log, draft, &settings).base_offset;
            last.insert(key.into_bytes(), (offset, *has_value));
            if at.contains(&i) {
                compact(&mut log, &settings, NOW);
            }
        }
        compact(&mut log, &settings, NOW);
        let mut expected: Vec<Seen> = last.into_iter().map(|(key, (offset, has_value))| (offset, key, has_value)).collect();
        expected.sort();
        prop_assert_eq!(read_all(&log, 0, Isolation::Uncommitted), expected);
        prop_assert_eq!(log.next_offset(), writes.len() as i64);
    }
}
