use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The rules, as they are said: slow, and easy to believe.
#[derive(Default)]
struct Model {
    records: BTreeMap<i64, Waiting>,
    candidates: BTreeSet<i64>,
}

impl Model {
    fn lane(&self, lane: LaneTag) -> Vec<i64> {
        let stands = |record: &&Waiting| record.lane == Some(lane) && record.stage != Stage::Finished;
        self.records.values().filter(stands).map(|record| record.origin).collect()
    }

    /// Those at the head of their lanes, or without one.
    fn firsts(&self) -> BTreeSet<i64> {
        let mut lanes = Vec::new();
        let first = |record: &&Waiting| match (record.stage, record.lane) {
            (Stage::Finished, _) => false,
            (Stage::Waiting | Stage::Out | Stage::Held, None) => true,
            (Stage::Waiting | Stage::Out | Stage::Held, Some(lane)) => {
                let known = lanes.contains(&lane);
                lanes.push(lane);
                !known
            }
        };
        self.records.values().filter(first).map(|record| record.origin).collect()
    }

    /// Does `change` and offers `offered` and whoever became first by it.
    fn change(&mut self, offered: Option<i64>, change: impl FnOnce(&mut BTreeMap<i64, Waiting>)) {
        let before = self.firsts();
        change(&mut self.records);
        let firsts = self.firsts();
        self.candidates.extend(firsts.difference(&before).copied().chain(offered));
        let waits =
            |origin: &i64| self.records.get(origin).is_some_and(|record| record.stage == Stage::Waiting);
        self.candidates.retain(|origin| firsts.contains(origin) && waits(origin));
    }

    fn earliest(&self) -> Option<(Timestamp, i64)> {
        self.candidates.iter().map(|origin| (self.records[origin].due, *origin)).min()
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<i64> {
        let (_, origin) = self.earliest().filter(|(due, _)| *due <= now)?;
        self.candidates.remove(&origin);
        Some(origin)
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Put(Waiting),
    Remove(i64),
    Stage(i64, Stage),
    Due(i64, i64),
    Cancel(i64),
    Offer(i64),
    Pop(i64),
}

fn deed(origins: i64) -> impl Strategy<Value = Deed> {
    let stage = prop_oneof![
        3 => Just(Stage::Waiting),
        1 => Just(Stage::Out),
        1 => Just(Stage::Finished),
        1 => Just(Stage::Held),
    ];
    let (origin, due) = (0..origins, 0..30_i64);
    let lane = prop::option::weighted(0.8, (0..4_u64).prop_map(LaneTag::new));
    let put = (origin.clone(), due.clone(), lane, stage.clone(), 0..9000_u32).prop_map(
        |(origin, millis, lane, stage, size)| Waiting { lane, stage, size, ..self::due(origin, millis) },
    );
    prop_oneof![
        8 => put.prop_map(Deed::Put),
        3 => origin.clone().prop_map(Deed::Remove),
        5 => (origin.clone(), stage).prop_map(|(origin, stage)| Deed::Stage(origin, stage)),
        4 => (origin.clone(), due.clone()).prop_map(|(origin, due)| Deed::Due(origin, due)),
        1 => origin.clone().prop_map(Deed::Cancel),
        1 => origin.prop_map(Deed::Offer),
        4 => due.prop_map(Deed::Pop),
    ]
}

fn act(index: &mut Index, model: &mut Model, deed: &Deed) {
    match *deed {
        Deed::Put(record) => {
            index.put(record);
            let kept = Waiting { size: index.get(record.origin).unwrap().size, ..record };
            model.change(Some(record.origin), |records| {
                records.insert(record.origin, kept);
            });
        }
        Deed::Remove(origin) => {
            assert_eq!(index.remove(origin), model.records.get(&origin).copied());
            model.change(None, |records| {
                records.remove(&origin);
            });
        }
        Deed::Stage(origin, stage) => {
            index.set_stage(origin, stage);
            let old = model.records.get(&origin).map(|record| record.stage);
            let offered = (old != Some(stage)).then_some(origin);
            model.change(offered, |records| {
                records.entry(origin).and_modify(|record| record.stage = stage);
            });
        }
        Deed::Due(origin, millis) => {
            index.set_due(origin, at(millis));
            model.records.entry(origin).and_modify(|record| record.due = at(millis));
        }
        Deed::Cancel(origin) => {
            index.set_cancelled(origin);
            model.records.entry(origin).and_modify(|record| record.cancelled = true);
        }
        Deed::Offer(origin) => {
            index.offer(origin);
            model.change(Some(origin), |_| ());
        }
        Deed::Pop(now) => assert_eq!(index.pop_due(at(now)), model.pop_due(at(now))),
    }
}

fn compare(index: &mut Index, model: &Model) {
    assert_eq!(index.len(), model.records.len());
    assert_eq!(index.candidates, model.candidates.len());
    assert_eq!(index.next_due(), model.earliest().map(|(due, _)| due));
    assert_eq!(index.bytes(), model.records.values().map(|record| u64::from(record.size)).sum::<u64>());
    assert!(index.highest() >= model.records.keys().next_back().copied());
    assert_eq!(index.highest().is_none(), model.records.is_empty());
    assert!(index.heap.len() - index.candidates <= 16 + index.heap.len() / 8);
}

fn compare_all(index: &mut Index, model: &Model) {
    compare(index, model);
    let found: BTreeMap<i64, Waiting> = index.iter().map(|record| (record.origin, record)).collect();
    assert_eq!(found, model.records);
    assert!(model.records.iter().all(|(origin, record)| index.get(*origin) == Some(*record)));
    let mut upcoming: Vec<_> =
        model.candidates.iter().map(|origin| (model.records[origin].due, *origin)).collect();
    upcoming.sort_unstable();
    assert_eq!(index.upcoming().map(|record| (record.due, record.origin)).collect::<Vec<_>>(), upcoming);
    for lane in (0..4).map(LaneTag::new) {
        let expected = model.lane(lane);
        assert_eq!(index.first_of(lane), expected.first().copied());
        assert_eq!(index.of_lane(lane).collect::<Vec<_>>(), expected);
    }
}

fn drain(index: &mut Index, model: &mut Model) {
    while let Some(origin) = index.pop_due(at(30)) {
        assert_eq!(model.pop_due(at(30)), Some(origin));
        act(index, model, &Deed::Remove(origin));
    }
    compare_all(index, model);
    let left: Vec<i64> = model.records.keys().copied().collect();
    left.into_iter().for_each(|origin| act(index, model, &Deed::Remove(origin)));
    compare_all(index, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_index_keeps_the_rules_whatever_is_done(deeds in prop::collection::vec(deed(12), 1..120)) {
        let (mut index, mut model) = (Index::new(), Model::default());
        for deed in &deeds {
            act(&mut index, &mut model, deed);
            compare_all(&mut index, &model);
        }
        drain(&mut index, &mut model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Enough records for long lanes, for sweeps of the heap, and for the arena to be moved together.
    #[test]
    fn the_index_keeps_the_rules_with_many_records(deeds in prop::collection::vec(deed(900), 3000)) {
        let (mut index, mut model) = (Index::new(), Model::default());
        for (turn, deed) in deeds.iter().enumerate() {
            act(&mut index, &mut model, deed);
            compare(&mut index, &model);
            if turn % 100 == 0 {
                compare_all(&mut index, &model);
            }
        }
        drain(&mut index, &mut model);
    }
}
