use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn the_mark_waits_for_the_lowest_record_in_flight() {
    let mut offsets = Offsets::resume(Progress::at(10));
    for offset in 10..15 {
        assert_eq!(offsets.start(offset), Started::New);
    }
    offsets.finish(11);
    offsets.finish(12);
    offsets.finish(14);
    assert_eq!(offsets.mark(), 10);
    assert_eq!(*offsets.progress().ahead(), [11..13, 14..15].into_iter().collect());
    offsets.finish(10);
    assert_eq!(offsets.mark(), 13);
    offsets.finish(13);
    assert_eq!(offsets.mark(), 15);
}

#[test]
fn what_was_never_delivered_is_complete() {
    let mut offsets = Offsets::resume(Progress::at(0));
    offsets.start(3);
    offsets.start(900_000_000_000);
    assert_eq!(offsets.mark(), 3);
    offsets.finish(3);
    assert_eq!(offsets.mark(), 900_000_000_000);
    offsets.finish(900_000_000_000);
    offsets.pass(900_000_000_007);
    assert_eq!(offsets.mark(), 900_000_000_007);
}

#[test]
fn what_an_earlier_owner_finished_is_not_started_again() {
    let ahead = [12..14, 20..21].into_iter().collect();
    let mut offsets = Offsets::resume(Progress::new(10, ahead));
    let started: Vec<_> = (10..15).map(|offset| offsets.start(offset)).collect();
    assert_eq!(started, [Started::New, Started::New, Started::Complete, Started::Complete, Started::New]);
    assert_eq!(offsets.start(13), Started::Again);
    assert_eq!([10, 11, 14].map(|offset| offsets.finish(offset)), [true; 3]);
    assert_eq!(offsets.progress(), Progress::new(15, [20..21].into_iter().collect()));
}

#[test]
fn a_known_run_right_at_the_position_moves_the_mark() {
    let offsets = Offsets::resume(Progress::new(10, [10..15].into_iter().collect()));
    assert_eq!(offsets.progress(), Progress::at(15));
}

#[test]
fn the_reader_never_goes_back() {
    let mut offsets = Offsets::resume(Progress::at(10));
    offsets.pass(5);
    assert_eq!((offsets.position(), offsets.mark()), (10, 10));
}

#[test]
fn progress_that_makes_no_sense_is_put_right() {
    let progress = Progress::new(-5, [-9..-2, 0..3, 7..8].into_iter().collect());
    assert_eq!((progress.mark(), progress.ahead()), (3, &[7..8].into_iter().collect()));
    assert_eq!(Progress::decode(&progress.encode()), Ok(progress));
}

#[test]
fn ranges_beyond_the_last_offset_are_refused() {
    let most = Progress::at(i64::MAX).encode();
    assert_eq!(Progress::decode(&[&most[..], &[1, 1]].concat()), Err(BadProgress::Malformed(most.len() + 1)));
}

#[test]
fn a_run_of_a_million_takes_a_few_bytes() {
    let progress = Progress::new(5_000_000, [5_000_001..6_000_001].into_iter().collect());
    assert_eq!(progress.encode().len(), 9);
}

#[test]
fn bytes_of_another_version_are_named_as_such() {
    assert_eq!(Progress::decode(&[9, 1, 2]), Err(BadProgress::Version(9)));
    assert_eq!(Progress::decode(&[]), Err(BadProgress::Truncated));
    assert_eq!(Progress::decode(&[1, 0x80]), Err(BadProgress::Truncated));
    assert_eq!(Progress::decode(&[1, 5, 0, 1]), Err(BadProgress::Malformed(2)));
    assert_eq!(Progress::decode(&[1, 0x85, 0]), Err(BadProgress::Malformed(1)));
}

/// Every offset by itself, as one would write it without thinking of memory.
#[derive(Default)]
struct Naive {
    position: i64,
    in_flight: BTreeSet<i64>,
    complete: BTreeSet<i64>,
}

impl Naive {
    fn start(&mut self, offset: i64) -> Started {
        if offset < self.position {
            return Started::Again;
        }
        self.complete.extend(self.position..offset);
        self.position = offset + 1;
        if self.complete.contains(&offset) {
            return Started::Complete;
        }
        self.in_flight.insert(offset);
        Started::New
    }

    fn finish(&mut self, offset: i64) -> bool {
        let flying = self.in_flight.remove(&offset);
        if flying {
            self.complete.insert(offset);
        }
        flying
    }

    fn mark(&self) -> i64 {
        (0..).find(|offset| !self.complete.contains(offset)).unwrap()
    }
}

#[derive(Debug, Clone)]
enum Event {
    Read { gap: i64 },
    Finish(usize),
    Pass(i64),
    Move,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => prop_oneof![5 => Just(0), 1 => 1..4_i64].prop_map(|gap| Event::Read { gap }),
        6 => any::<usize>().prop_map(Event::Finish),
        1 => (0..3_i64).prop_map(Event::Pass),
        1 => Just(Event::Move),
    ];
    proptest::collection::vec(event, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_tracker_agrees_with_a_model_that_counts_every_offset(events in events()) {
        let mut offsets = Offsets::resume(Progress::at(0));
        let mut naive = Naive::default();
        for event in events {
            match event {
                Event::Read { gap } => {
                    let offset = naive.position + gap;
                    prop_assert_eq!(offsets.start(offset), naive.start(offset));
                }
                Event::Finish(which) if !naive.in_flight.is_empty() => {
                    let offset = *naive.in_flight.iter().nth(which % naive.in_flight.len()).unwrap();
                    prop_assert_eq!(offsets.finish(offset), naive.finish(offset));
                    prop_assert!(!offsets.finish(offset));
                }
                Event::Finish(_) => {}
                Event::Pass(by) => {
                    offsets.pass(naive.position + by);
                    naive.complete.extend(naive.position..naive.position + by);
                    naive.position += by;
                }
                Event::Move => {
                    let progress = Progress::decode(&offsets.progress().encode()).unwrap();
                    naive.position = progress.mark();
                    naive.in_flight.clear();
                    offsets = Offsets::resume(progress);
                }
            }
            let progress = offsets.progress();
            prop_assert_eq!(progress.mark(), naive.mark());
            prop_assert!(progress.ahead().iter().all(|range| range.start > progress.mark()));
            let ahead: BTreeSet<i64> = progress.ahead().iter().flat_map(Clone::clone).collect();
            let expected: BTreeSet<i64> = naive.complete.iter().copied().filter(|o| *o >= naive.mark()).collect();
            prop_assert_eq!(ahead, expected);
            prop_assert_eq!(offsets.in_flight(), naive.in_flight.len());
        }
    }

    #[test]
    fn progress_is_read_back_and_as_long_as_it_says(mark in 0..i64::MAX / 2, runs in proptest::collection::vec((1..1_i64 << 40, 1..1_i64 << 40), 0..50)) {
        let mut end = mark;
        let ahead = runs.into_iter().map(|(gap, length)| {
            let start = end + gap;
            end = start + length;
            start..end
        }).collect();
        let progress = Progress::new(mark, ahead);
        let bytes = progress.encode();
        prop_assert_eq!(bytes.len(), progress.encoded_len());
        prop_assert_eq!(Progress::decode(&bytes), Ok(progress));
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_have_one_spelling(tail in proptest::collection::vec(any::<u8>(), 0..40)) {
        let bytes = [vec![1], tail].concat();
        if let Ok(progress) = Progress::decode(&bytes) {
            prop_assert_eq!(progress.encode(), bytes);
        }
    }
}
