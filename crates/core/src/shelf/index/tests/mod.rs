mod memory;
mod model;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A record that is due at once and has no lane.
fn record(origin: i64) -> Waiting {
    Waiting {
        origin,
        at: origin,
        due: at(0),
        lane: None,
        attempt: 1,
        replay: 0,
        size: 100,
        cancelled: false,
        pointer: false,
        stage: Stage::Waiting,
    }
}

fn in_lane(origin: i64, lane: u64) -> Waiting {
    Waiting { lane: Some(LaneTag::new(lane)), ..record(origin) }
}

fn due(origin: i64, millis: i64) -> Waiting {
    Waiting { due: at(millis), ..record(origin) }
}

fn pop_all(index: &mut Index, now: i64) -> Vec<i64> {
    std::iter::from_fn(|| index.pop_due(at(now))).collect()
}

#[test]
fn a_record_comes_back_as_it_was_put_and_what_is_too_large_stops_at_its_end() {
    let mut index = Index::new();
    let kept = Waiting { attempt: 3, replay: 2, cancelled: true, stage: Stage::Held, ..in_lane(7, 1 << 39) };
    index.put(kept);
    assert_eq!(index.get(7), Some(kept));
    index.put(Waiting { attempt: 70_000, replay: 300, size: u32::MAX, due: at(i64::MAX), ..record(7) });
    let kept = index.get(7).unwrap();
    assert_eq!((kept.attempt, kept.replay, kept.due), (65_535, 255, at((1 << 47) - 1)));
    assert_eq!(index.bytes(), u64::from(kept.size));
    assert_eq!(index.remove(7), Some(kept));
    assert_eq!((index.bytes(), index.len(), index.highest()), (0, 0, None));
}

#[test]
#[should_panic(expected = "does not fit")]
fn an_origin_is_never_changed_to_make_it_fit() {
    Index::new().put(record(1 << 47));
}

#[test]
fn the_earliest_is_taken_first_and_each_once() {
    let mut index = Index::new();
    [due(4, 30), due(3, 10), due(2, 20), due(1, 20)].into_iter().for_each(|record| index.put(record));
    assert_eq!(index.next_due(), Some(at(10)));
    assert_eq!(pop_all(&mut index, 25), [3, 1, 2]);
    assert_eq!(index.next_due(), Some(at(30)));
    index.offer(2);
    assert_eq!(pop_all(&mut index, 30), [2, 4]);
    assert_eq!((index.next_due(), index.len()), (None, 4));
}

#[test]
fn a_candidate_is_found_at_its_new_due_be_it_earlier_or_later() {
    let mut index = Index::new();
    [due(1, 10), due(2, 20), due(3, 30)].into_iter().for_each(|record| index.put(record));
    index.set_due(3, at(5));
    index.set_due(1, at(40));
    assert_eq!(index.next_due(), Some(at(5)));
    assert_eq!(pop_all(&mut index, 39), [3, 2]);
    assert_eq!(pop_all(&mut index, 40), [1]);
    index.set_due(1, at(0));
    assert_eq!(index.next_due(), None, "it was taken");
}

#[test]
fn a_follower_is_a_candidate_when_all_before_it_are_finished_or_gone() {
    let mut index = Index::new();
    (1..=3).for_each(|origin| index.put(in_lane(origin, 9)));
    assert_eq!(pop_all(&mut index, 0), [1]);
    index.set_stage(1, Stage::Out);
    assert_eq!(index.pop_due(at(0)), None);
    index.set_stage(1, Stage::Finished);
    assert_eq!(index.first_of(LaneTag::new(9)), Some(2));
    assert_eq!(pop_all(&mut index, 0), [2]);
    index.remove(2);
    assert_eq!(pop_all(&mut index, 0), [3]);
    assert_eq!((index.contains(1), index.contains(2)), (true, false));
}

#[test]
fn one_that_is_put_before_the_first_of_its_lane_goes_before_it() {
    let mut index = Index::new();
    index.put(in_lane(5, 9));
    index.put(in_lane(4, 9));
    assert_eq!(pop_all(&mut index, 0), [4]);
    index.set_stage(4, Stage::Held);
    assert_eq!(index.pop_due(at(0)), None);
    index.set_stage(4, Stage::Waiting);
    assert_eq!(pop_all(&mut index, 0), [4]);
}

#[test]
fn a_lane_stays_in_order_as_it_becomes_long_and_short_again() {
    let (mut index, lane) = (Index::new(), LaneTag::new(9));
    // Every two change places, as records do that failed side by side.
    (0..100_000_i64).for_each(|origin| index.put(in_lane(origin ^ 1, 9)));
    assert!(index.of_lane(lane).eq(0..100_000));
    for origin in 0..100_000 {
        assert_eq!(index.pop_due(at(0)), Some(origin));
        assert_eq!(index.pop_due(at(0)), None);
        index.set_stage(origin, Stage::Finished);
        if origin % 2 == 0 {
            index.remove(origin);
        }
    }
    assert_eq!((index.first_of(lane), index.len()), (None, 50_000));
}
