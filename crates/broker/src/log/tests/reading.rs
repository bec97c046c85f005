//! What readers get: by offset, by time, by isolation, within their limits.

use super::super::{At, ReadError, TimestampType};
use super::*;

#[test]
fn offsets_outside_the_log_are_out_of_range_and_its_end_is_empty() {
    let mut log = memory();
    append(&mut log, testing::batch(3), &Settings::default());
    assert!(
        log.window(3, 100, true, Isolation::Uncommitted)
            .unwrap()
            .slice
            .is_none()
    );
    for outside in [-1, 4] {
        assert!(matches!(
            log.window(outside, 100, true, Isolation::Uncommitted),
            Err(ReadError::OutOfRange)
        ));
    }
}

#[test]
fn a_reader_with_a_small_limit_gets_one_whole_batch_or_nothing() {
    let mut log = memory();
    append(&mut log, testing::batch(9), &Settings::default());
    let size = testing::batch(9).build().len();
    let first = log
        .window(4, 10, true, Isolation::Uncommitted)
        .unwrap()
        .slice
        .unwrap();
    assert_eq!(first.len, size);
    assert!(
        log.window(4, 10, false, Isolation::Uncommitted)
            .unwrap()
            .slice
            .is_none()
    );
}

#[test]
fn a_time_points_to_a_record_inside_a_batch() {
    for codec in 0..=4 {
        let mut log = memory();
        append(
            &mut log,
            testing::batch(10).codec(codec).at(5_000),
            &Settings::default(),
        );
        append(
            &mut log,
            testing::batch(10).codec(codec).at(6_000),
            &Settings::default(),
        );
        assert_eq!(
            log.first_at(5_004, 20).unwrap(),
            Some(At {
                offset: 4,
                timestamp: 5_004
            })
        );
        assert_eq!(
            log.first_at(5_500, 20).unwrap(),
            Some(At {
                offset: 10,
                timestamp: 6_000
            })
        );
        assert_eq!(log.first_at(7_000, 20).unwrap(), None);
        assert_eq!(
            log.latest_stamped().unwrap(),
            Some(At {
                offset: 19,
                timestamp: 6_009
            })
        );
    }
}

#[test]
fn times_before_the_logs_start_point_to_what_is_left() {
    let mut log = memory();
    append(&mut log, testing::batch(10).at(5_000), &Settings::default());
    append(&mut log, testing::batch(10).at(6_000), &Settings::default());
    log.delete_before(3).unwrap();
    assert_eq!(
        log.first_at(0, 20).unwrap(),
        Some(At {
            offset: 3,
            timestamp: 5_003
        })
    );
    log.delete_before(15).unwrap();
    assert_eq!(
        log.first_at(0, 20).unwrap(),
        Some(At {
            offset: 15,
            timestamp: 6_005
        })
    );
}

#[test]
fn the_brokers_time_is_stamped_without_touching_the_records() {
    let mut log = memory();
    let settings = Settings {
        timestamp_type: TimestampType::LogAppend,
        ..Settings::default()
    };
    let appended = append(&mut log, testing::batch(3), &settings);
    assert_eq!(appended.timestamp, NOW);
    let bytes = log
        .window(0, 1, true, Isolation::Uncommitted)
        .unwrap()
        .slice
        .unwrap()
        .read()
        .unwrap();
    let header = batch::check(&bytes).expect("the checksum was made anew");
    assert!(header.is_log_append_time());
    assert_eq!((header.max_timestamp, header.base_timestamp), (NOW, 1_000));
    assert_eq!(
        log.first_at(NOW, 3).unwrap(),
        Some(At {
            offset: 0,
            timestamp: NOW
        })
    );
}

#[test]
fn committed_readers_stop_at_the_first_open_transaction() {
    let mut log = memory();
    append(&mut log, testing::batch(1), &Settings::default());
    append(
        &mut log,
        testing::batch(1).sequence(1, 0, 0).transactional(),
        &Settings::default(),
    );
    append(&mut log, testing::batch(1), &Settings::default());
    assert_eq!((log.stable_offset(), log.next_offset()), (1, 3));
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Committed)), [0]);
    assert_eq!(mark(&mut log, 1, true), 3);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Committed)), [0, 1, 2]);
}

#[test]
fn aborted_transactions_are_named_to_committed_readers() {
    let mut log = memory();
    append(
        &mut log,
        testing::batch(2).sequence(1, 0, 0).transactional(),
        &Settings::default(),
    );
    append(
        &mut log,
        testing::batch(1).sequence(2, 0, 0).transactional(),
        &Settings::default(),
    );
    mark(&mut log, 1, false);
    mark(&mut log, 2, true);
    assert_eq!(offsets(&read_all(&log, 0, Isolation::Committed)), [2]);
    let window = log.window(0, 10_000, true, Isolation::Committed).unwrap();
    assert_eq!(
        window
            .aborted
            .iter()
            .map(|a| (a.producer_id, a.first_offset))
            .collect::<Vec<_>>(),
        [(1, 0)]
    );
}
