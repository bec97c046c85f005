use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn follow(offset: i64, leader: i64) -> Step {
    Step::Follow { offset, leader }
}

#[test]
fn records_of_one_key_run_one_after_the_other_and_others_beside_them() {
    let (a, b) = (key("a"), key("b"));
    let mut lanes = Lanes::new(Followers::Pass, 0);
    assert_eq!(lanes.arrive(Some(&a), 0), [Step::Run(0)]);
    assert_eq!(lanes.arrive(Some(&a), 1), []);
    assert_eq!(lanes.arrive(Some(&b), 2), [Step::Run(2)]);
    assert_eq!(lanes.arrive(None, 3), [Step::Run(3)]);
    assert_eq!(lanes.done(Some(&a), 0), [Step::Run(1)]);
    assert_eq!(lanes.done(Some(&b), 2), []);
    assert_eq!(lanes.done(None, 3), []);
    assert_eq!(lanes.done(Some(&a), 1), []);
    assert!(lanes.is_empty());
}

#[test]
fn a_follower_waits_behind_a_leader_that_is_shelved_twice() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 0);
    lanes.arrive(Some(&a), 0);
    lanes.arrive(Some(&a), 1);
    assert_eq!(lanes.shelve(Some(&a), 0), [follow(1, 0)]);
    assert_eq!(lanes.arrive(Some(&a), 2), [follow(2, 1)]);
    assert_eq!(lanes.release(Some(&a), 0), [Step::Run(0)]);
    assert_eq!(lanes.shelve(Some(&a), 0), []);
    assert_eq!(lanes.release(Some(&a), 0), [Step::Run(0)]);
    assert_eq!(lanes.done(Some(&a), 0), [Step::Run(1)]);
    assert_eq!(lanes.done(Some(&a), 1), [Step::Run(2)]);
}

#[test]
fn followers_of_a_letter_pass_or_are_held_or_buried() {
    let a = key("a");
    let buried = |followers| {
        let mut lanes = Lanes::new(followers, 0);
        (0..3).for_each(|offset| drop(lanes.arrive(Some(&a), offset)));
        let steps = lanes.bury(Some(&a), 0);
        (lanes, steps)
    };
    assert_eq!(buried(Followers::Pass).1, [Step::Run(1)]);

    let (mut lanes, steps) = buried(Followers::Hold);
    assert_eq!(steps, [follow(1, 0), follow(2, 0)]);
    assert_eq!(lanes.arrive(Some(&a), 3), [follow(3, 0)]);
    assert_eq!(lanes.release(Some(&a), 1), []);
    assert_eq!(lanes.resolve(&a, 7), [], "another letter");
    assert_eq!(lanes.resolve(&a, 0), [Step::Run(1)]);
    assert_eq!(lanes.done(Some(&a), 1), [Step::Run(2)]);

    let (mut lanes, steps) = buried(Followers::Bury);
    let follower = |offset| Step::BuryFollower { offset, leader: 0 };
    assert_eq!(steps, [follower(1), follower(2)]);
    assert_eq!(lanes.arrive(Some(&a), 3), [follower(3)]);
    assert_eq!(lanes.arrive(Some(&a), 0), [Step::Known(0)]);
    assert_eq!(lanes.resolve(&a, 0), []);
    assert_eq!(lanes.arrive(Some(&a), 4), [Step::Run(4)]);
}

#[test]
fn a_restored_follower_is_not_released_before_the_reader_has_passed_it() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 10);
    lanes.restore(Some(&a), 12);
    assert_eq!(lanes.release(Some(&a), 12), []);
    assert_eq!(lanes.arrive(Some(&a), 11), [Step::Run(11)]);
    assert_eq!(lanes.arrive(Some(&a), 12), [Step::Known(12)]);
    assert_eq!(lanes.done(Some(&a), 11), [Step::Run(12)]);
}

#[test]
fn a_restored_record_runs_once_the_reader_has_passed_it_without_a_word() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 10);
    lanes.restore(Some(&a), 12);
    assert_eq!(lanes.release(Some(&a), 12), []);
    assert_eq!(lanes.pass(12), []);
    assert_eq!(lanes.pass(13), [Step::Run(12)]);
}

#[test]
fn a_cancelled_follower_holds_what_is_behind_it_and_not_what_is_before() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Hold, 0);
    (0..4).for_each(|offset| drop(lanes.arrive(Some(&a), offset)));
    lanes.shelve(Some(&a), 0);
    assert_eq!(lanes.bury(Some(&a), 2), []);
    assert_eq!(lanes.release(Some(&a), 0), [Step::Run(0)]);
    assert_eq!(lanes.done(Some(&a), 0), [Step::Run(1)]);
    assert_eq!(lanes.done(Some(&a), 1), []);
    assert_eq!(lanes.resolve(&a, 2), [Step::Run(3)]);
}

#[test]
fn a_closed_lane_stays_closed_over_a_take_over() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Bury, 5);
    lanes.restore_closed(&a, 3);
    assert_eq!(lanes.letters(&a), [3]);
    assert_eq!(lanes.arrive(Some(&a), 5), [Step::BuryFollower { offset: 5, leader: 3 }]);
}

#[test]
fn each_letter_closes_the_lane_for_itself() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Hold, 0);
    (0..4).for_each(|offset| drop(lanes.arrive(Some(&a), offset)));
    lanes.shelve(Some(&a), 0);
    lanes.bury(Some(&a), 2);
    lanes.release(Some(&a), 0);
    lanes.bury(Some(&a), 0);
    assert_eq!(lanes.letters(&a), [0, 2]);
    assert_eq!(lanes.arrive(Some(&a), 2), [Step::Known(2)]);
    assert_eq!(lanes.resolve(&a, 2), [], "the first letter still holds 1");
    assert_eq!(lanes.resolve(&a, 0), [Step::Run(1)]);
}

#[test]
fn a_restored_record_waits_for_its_release() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 10);
    lanes.restore(Some(&a), 4);
    lanes.restore(Some(&a), 10);
    assert_eq!(lanes.pass(11), [], "neither is due");
    assert_eq!(lanes.release(Some(&a), 4), [Step::Run(4)]);
    assert_eq!(lanes.release(Some(&a), 4), [], "it runs already");
    lanes.restore(Some(&a), 4);
    assert_eq!(lanes.release(Some(&a), 4), [], "and restoring it changes nothing");
    assert_eq!(lanes.release(Some(&a), 10), []);
    assert_eq!(lanes.done(Some(&a), 4), [Step::Run(10)]);
}

#[test]
fn a_restored_record_right_at_the_position_waits_until_the_reader_has_passed_it() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 10);
    lanes.restore(Some(&a), 10);
    assert_eq!(lanes.release(Some(&a), 10), []);
    assert_eq!(lanes.pass(10), []);
    assert_eq!(lanes.pass(3), [], "a reader never goes back");
    assert_eq!(lanes.pass(11), [Step::Run(10)]);
}

#[test]
fn a_lane_that_an_earlier_configuration_closed_stays_closed_under_pass() {
    let a = key("a");
    let mut lanes = Lanes::new(Followers::Pass, 5);
    lanes.restore_closed(&a, 3);
    assert_eq!(lanes.arrive(Some(&a), 5), [follow(5, 3)]);
}

/// The same rules without lanes: one flat list of records, searched from the start each time.
struct Naive {
    followers: Followers,
    records: BTreeMap<i64, (usize, At)>,
    letters: BTreeSet<(usize, i64)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Memory,
    Handler,
    Shelf { due: bool },
}

impl Naive {
    fn before(&self, key: usize, offset: i64, shelf_only: bool) -> Option<i64> {
        let earlier = self.records.iter().filter(|(other, (k, _))| *k == key && **other < offset);
        let wanted = earlier.filter(|(_, (_, at))| !shelf_only || matches!(at, At::Shelf { .. }));
        wanted.map(|(other, _)| *other).max()
    }

    fn letter_before(&self, key: usize, offset: i64) -> Option<i64> {
        self.letters
            .iter()
            .filter(|(k, letter)| *k == key && *letter < offset)
            .map(|(_, letter)| *letter)
            .max()
    }

    fn arrive(&mut self, key: usize, offset: i64) -> Vec<Step> {
        if let Some(leader) = self.letter_before(key, offset) {
            if self.followers == Followers::Bury {
                return vec![Step::BuryFollower { offset, leader }];
            }
            self.records.insert(offset, (key, At::Shelf { due: true }));
            return vec![follow(offset, leader)];
        }
        let leader = self.before(key, offset, true);
        let at = if leader.is_some() { At::Shelf { due: true } } else { At::Memory };
        self.records.insert(offset, (key, at));
        leader.map_or(vec![], |leader| vec![follow(offset, leader)])
    }

    fn aside(&mut self, key: usize, leader: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        for (offset, (k, at)) in &mut self.records {
            if *k == key && *offset > leader && *at == At::Memory {
                *at = At::Shelf { due: true };
                steps.push(follow(*offset, leader));
            }
        }
        steps
    }

    fn bury(&mut self, key: usize, offset: i64) -> Vec<Step> {
        self.records.remove(&offset);
        if self.followers == Followers::Pass {
            return vec![];
        }
        self.letters.insert((key, offset));
        if self.followers == Followers::Hold {
            return self.aside(key, offset);
        }
        let behind: Vec<i64> =
            self.records.iter().filter(|(o, (k, _))| *k == key && **o > offset).map(|(o, _)| *o).collect();
        self.records.retain(|offset, _| !behind.contains(offset));
        behind.into_iter().map(|behind| Step::BuryFollower { offset: behind, leader: offset }).collect()
    }

    /// Everything that may run now, started.
    fn run(&mut self) -> Vec<Step> {
        let offsets: Vec<i64> = self.records.keys().copied().collect();
        let mut steps = Vec::new();
        for offset in offsets {
            let (key, at) = self.records[&offset];
            let first = self.before(key, offset, false).is_none();
            let held = self.letter_before(key, offset).is_some();
            if first && !held && matches!(at, At::Memory | At::Shelf { due: true }) {
                self.records.insert(offset, (key, At::Handler));
                steps.push(Step::Run(offset));
            }
        }
        steps
    }
}

#[derive(Debug, Clone)]
enum Event {
    Arrive(usize),
    Done(usize),
    Shelve(usize),
    Bury(usize),
    Cancel(usize),
    Release(usize),
    Resolve(usize),
    Reread(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let which = any::<usize>;
    let event = prop_oneof![
        6 => (0..4_usize).prop_map(Event::Arrive),
        4 => which().prop_map(Event::Done),
        3 => which().prop_map(Event::Shelve),
        1 => which().prop_map(Event::Bury),
        1 => which().prop_map(Event::Cancel),
        4 => which().prop_map(Event::Release),
        1 => which().prop_map(Event::Resolve),
        1 => which().prop_map(Event::Reread),
    ];
    proptest::collection::vec(event, 0..150)
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn lanes_agree_with_a_model_that_searches_one_flat_list(
        events in events(),
        followers in proptest::sample::select(vec![Followers::Pass, Followers::Hold, Followers::Bury]),
    ) {
        let mut lanes = Lanes::new(followers, 0);
        let mut naive = Naive { followers, records: BTreeMap::new(), letters: BTreeSet::new() };
        let mut next = 0;
        let mut ran: [Vec<i64>; 4] = Default::default();
        for event in events {
            let pick = |naive: &Naive, which: usize, wanted: fn(At) -> bool| {
                let found: Vec<_> = naive.records.iter().filter(|(_, (_, at))| wanted(*at)).collect();
                (!found.is_empty()).then(|| { let (o, (k, _)) = found[which % found.len()]; (*k, *o) })
            };
            let running = |at| at == At::Handler;
            let aside = |at| matches!(at, At::Shelf { .. });
            let (seen, mut expected) = match event {
                Event::Arrive(k) => {
                    next += 1;
                    (lanes.arrive(Some(&key(KEYS[k])), next - 1), naive.arrive(k, next - 1))
                }
                Event::Done(which) => {
                    let Some((k, offset)) = pick(&naive, which, running) else { continue };
                    naive.records.remove(&offset);
                    (lanes.done(Some(&key(KEYS[k])), offset), vec![])
                }
                Event::Shelve(which) => {
                    let Some((k, offset)) = pick(&naive, which, running) else { continue };
                    naive.records.insert(offset, (k, At::Shelf { due: false }));
                    (lanes.shelve(Some(&key(KEYS[k])), offset), naive.aside(k, offset))
                }
                Event::Bury(which) => {
                    let Some((k, offset)) = pick(&naive, which, running) else { continue };
                    (lanes.bury(Some(&key(KEYS[k])), offset), naive.bury(k, offset))
                }
                Event::Cancel(which) => {
                    let Some((k, offset)) = pick(&naive, which, aside) else { continue };
                    (lanes.bury(Some(&key(KEYS[k])), offset), naive.bury(k, offset))
                }
                Event::Release(which) => {
                    let Some((k, offset)) = pick(&naive, which, aside) else { continue };
                    naive.records.insert(offset, (k, At::Shelf { due: true }));
                    (lanes.release(Some(&key(KEYS[k])), offset), vec![])
                }
                Event::Resolve(which) => {
                    let letters: Vec<_> = naive.letters.iter().copied().collect();
                    if letters.is_empty() { continue }
                    let (k, letter) = letters[which % letters.len()];
                    naive.letters.remove(&(k, letter));
                    (lanes.resolve(&key(KEYS[k]), letter), vec![])
                }
                // What waits, runs or closes a lane may be read again after a move, and means nothing new.
                Event::Reread(which) => {
                    let known = naive.records.iter().map(|(offset, (k, _))| (*k, *offset));
                    let known: Vec<_> = known.chain(naive.letters.iter().copied()).collect();
                    if known.is_empty() { continue }
                    let (k, offset) = known[which % known.len()];
                    (lanes.arrive(Some(&key(KEYS[k])), offset), vec![Step::Known(offset)])
                }
            };
            expected.extend(naive.run());
            prop_assert_eq!(&seen, &expected);
            for step in seen {
                if let Step::Run(offset) = step {
                    let lane = &mut ran[naive.records[&offset].0];
                    prop_assert!(lane.last().is_none_or(|last| *last <= offset), "order");
                    lane.push(offset);
                }
            }
            let busy: BTreeSet<usize> = naive.records.values().map(|(k, _)| *k).chain(naive.letters.iter().map(|(k, _)| *k)).collect();
            prop_assert_eq!(lanes.len(), busy.len(), "an idle lane is forgotten");
        }
    }

    #[test]
    fn everything_that_arrived_is_handled_in_order_once_all_is_released_and_resolved(
        keys in proptest::collection::vec(0..3_usize, 1..60),
        fate in proptest::collection::vec(0..4_u8, 200),
    ) {
        let mut lanes = Lanes::new(Followers::Hold, 0);
        let mut fate = fate.into_iter();
        let mut handled: [Vec<i64>; 3] = Default::default();
        let mut work: Vec<Step> = Vec::new();
        let lane_of = |offset: i64| keys[usize::try_from(offset).unwrap()];
        for (offset, k) in (0..).zip(&keys) {
            work.extend(lanes.arrive(Some(&key(KEYS[*k])), offset));
        }
        while let Some(step) = work.pop() {
            let Step::Run(offset) = step else { continue };
            let k = key(KEYS[lane_of(offset)]);
            match fate.next().unwrap_or(0) {
                0 | 1 => {
                    handled[lane_of(offset)].push(offset);
                    work.extend(lanes.done(Some(&k), offset));
                }
                2 => {
                    work.extend(lanes.shelve(Some(&k), offset));
                    work.extend(lanes.release(Some(&k), offset));
                }
                _ => {
                    work.extend(lanes.bury(Some(&k), offset));
                    handled[lane_of(offset)].push(offset);
                    work.extend(lanes.resolve(&k, offset));
                }
            }
        }
        for (k, handled) in handled.iter().enumerate() {
            let arrived: Vec<i64> = (0..).zip(&keys).filter(|(_, other)| **other == k).map(|(offset, _)| offset).collect();
            prop_assert_eq!(handled, &arrived);
        }
        prop_assert!(lanes.is_empty());
    }
}
