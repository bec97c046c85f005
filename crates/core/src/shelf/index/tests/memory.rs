use super::*;

/// The most bytes a record while `records` are put, from ten thousand on.
fn most(records: impl Iterator<Item = Waiting>) -> f64 {
    let (mut index, mut most, mut next) = (Index::new(), 0.0_f64, 10_000);
    for record in records {
        index.put(record);
        // At many sizes, and at all sizes that follow each other for a while.
        if index.len() >= next {
            most = most.max(index.memory() as f64 / index.len() as f64);
            next += if index.len() % 1024 < 32 { 1 } else { index.len() / 512 };
        }
    }
    most
}

#[test]
fn a_record_takes_at_most_48_bytes_when_every_lane_is_its_own() {
    let most = most((0..3_000_000).map(|origin| in_lane(origin, origin as u64 * 0x9e37_79b9)));
    assert!(most <= 48.0, "{most}");
}

#[test]
fn a_record_takes_at_most_48_bytes_when_all_are_in_one_lane() {
    let most = most((0..3_000_000).map(|origin| in_lane(origin, 1)));
    assert!(most <= 48.0, "{most}");
}

#[test]
fn a_record_takes_at_most_48_bytes_however_many_share_a_lane() {
    for share in [2, 3, 8, 15, 16, 17, 18, 25, 26, 33, 49, 50, 100, 1000] {
        let records = (0..150_000).map(|origin| in_lane(origin, origin as u64 / share));
        let bytes = most(records);
        assert!(bytes <= 48.0, "{bytes} with {share} in a lane");
    }
    // Side by side: all lanes become long at about the same time, and the map of them has just grown.
    let bytes = most((0..180_000).map(|origin| in_lane(origin, origin as u64 % 3600)));
    assert!(bytes <= 48.0, "{bytes} with all lanes alike");
}

#[test]
fn memory_is_given_back_when_most_have_gone() {
    let mut index = Index::new();
    (0..1_000_000).for_each(|origin| index.put(in_lane(origin, origin as u64 / 2)));
    let full = index.memory();
    // One in a hundred stays, so that every chunk has some left.
    (0..1_000_000)
        .filter(|origin| origin % 100 != 0)
        .for_each(|origin| assert!(index.remove(origin).is_some()));
    assert_eq!(index.len(), 10_000);
    assert!(index.memory() < full / 20, "{} of {full}", index.memory());
    assert_eq!(pop_all(&mut index, 0), (0..1_000_000).step_by(100).collect::<Vec<_>>());
    (0..1_000_000).step_by(100).for_each(|origin| assert!(index.remove(origin).is_some()));
    assert!(index.memory() < full / 1000, "{} of {full}", index.memory());
}

#[test]
fn what_is_stale_in_the_heap_stays_an_eighth_of_it() {
    let mut index = Index::new();
    (0..10_000).for_each(|origin| index.put(due(origin, origin)));
    let full = index.memory();
    for turn in 0..200_000_i64 {
        let origin = turn * 7919 % 10_000;
        match turn % 4 {
            0 => index.set_due(origin, at(1_000_000 + turn)),
            1 => index.put(due(origin, 1_000_000 - turn)),
            2 => {
                index.set_stage(origin, Stage::Held);
                index.set_stage(origin, Stage::Waiting);
            }
            _ => {
                index.remove(origin);
                index.put(due(origin, turn));
            }
        }
        assert!(index.heap.len() - index.candidates <= 16 + index.heap.len() / 8);
    }
    assert_eq!((index.len(), index.candidates), (10_000, 10_000));
    assert!(index.memory() < full * 6 / 5, "{} after {full}", index.memory());
}
