use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn follow(offset: i64, leader: i64) -> Step {
    Step::Follow { offset, leader }
}

/// Lanes beside a shelf: what is on it, and which of that is out.
struct Bench {
    lanes: Lanes,
    shelf: BTreeMap<(Bytes, i64), bool>,
}

impl Shelved for BTreeMap<(Bytes, i64), bool> {
    fn of(&self, lane: &Bytes) -> Option<Ahead> {
        let mut here = self.iter().filter(|((key, _), _)| key == lane);
        let ((_, first), out) = here.next()?;
        Some(Ahead { first: *first, is_out: *out && here.next().is_none() })
    }
}

impl Bench {
    fn new(followers: Followers) -> Self {
        Self { lanes: Lanes::new(followers), shelf: BTreeMap::new() }
    }

    fn take(
        &mut self,
        event: impl FnOnce(&mut Lanes, &BTreeMap<(Bytes, i64), bool>, &mut Vec<Step>),
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        event(&mut self.lanes, &self.shelf, &mut steps);
        steps
    }

    fn arrive(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.take(|lanes, shelf, steps| lanes.arrive(Some(key), offset, shelf, steps))
    }

    fn done(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.shelf.remove(&(key.clone(), offset));
        self.take(|lanes, shelf, steps| lanes.done(Some(key), offset, shelf, steps))
    }

    fn shelve(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.take(|lanes, shelf, steps| lanes.shelve(Some(key), offset, shelf, steps))
    }

    fn shelved(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.shelf.insert((key.clone(), offset), false);
        self.take(|lanes, shelf, steps| lanes.shelved(Some(key), offset, shelf, steps))
    }

    /// Comes back from the shelf.
    fn back(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.shelf.insert((key.clone(), offset), true);
        self.take(|lanes, shelf, steps| lanes.come_back(Some(key), offset, shelf, steps))
    }

    fn bury(&mut self, key: &Bytes, offset: i64) -> Vec<Step> {
        self.shelf.remove(&(key.clone(), offset));
        self.take(|lanes, shelf, steps| lanes.bury(Some(key), offset, shelf, steps))
    }

    fn resolve(&mut self, key: &Bytes, letter: i64) -> Vec<Step> {
        self.take(|lanes, shelf, steps| lanes.resolve(key, letter, shelf, steps))
    }
}

#[test]
fn records_of_one_key_run_one_after_the_other_and_others_beside_them() {
    let (a, b) = (key("a"), key("b"));
    let mut bench = Bench::new(Followers::Pass);
    assert_eq!(bench.arrive(&a, 0), [Step::Run(0)]);
    assert_eq!(bench.arrive(&a, 1), []);
    assert_eq!(bench.arrive(&b, 2), [Step::Run(2)]);
    assert_eq!(bench.take(|lanes, shelf, steps| lanes.arrive(None, 3, shelf, steps)), [Step::Run(3)]);
    assert_eq!(bench.done(&a, 0), [Step::Run(1)]);
    assert_eq!(bench.done(&b, 2), []);
    assert_eq!(bench.done(&a, 1), []);
    assert!(bench.lanes.is_empty());
}

#[test]
fn a_follower_waits_behind_a_leader_that_is_shelved_twice() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Pass);
    bench.arrive(&a, 0);
    bench.arrive(&a, 1);
    assert_eq!(bench.shelve(&a, 0), [follow(1, 0)]);
    assert_eq!(bench.arrive(&a, 2), [follow(2, 1)], "the leader is on its way to the shelf");
    for offset in 0..3 {
        assert_eq!(bench.shelved(&a, offset), []);
    }
    assert_eq!(bench.arrive(&a, 3), [follow(3, 0)], "and now it is there");
    bench.shelved(&a, 3);
    assert_eq!(bench.back(&a, 0), [Step::Run(0)]);
    assert_eq!(bench.shelve(&a, 0), []);
    assert_eq!(bench.shelved(&a, 0), []);
    assert_eq!(bench.back(&a, 0), [Step::Run(0)]);
    assert_eq!(bench.done(&a, 0), [], "the next is on the shelf");
    assert_eq!(bench.back(&a, 1), [Step::Run(1)]);
}

#[test]
fn behind_a_lone_retry_that_is_in_memory_a_record_stays_in_memory() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Pass);
    assert_eq!(bench.back(&a, 0), [Step::Run(0)]);
    assert_eq!(bench.arrive(&a, 1), []);
    assert_eq!(bench.done(&a, 0), [Step::Run(1)]);
}

#[test]
fn nothing_overtakes_what_is_on_the_shelf() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Pass);
    bench.shelf.insert((a.clone(), 4), true);
    bench.shelf.insert((a.clone(), 5), false);
    assert_eq!(bench.arrive(&a, 4), [Step::Run(4)]);
    assert_eq!(bench.arrive(&a, 6), [follow(6, 4)]);
    assert_eq!(bench.done(&a, 4), [], "the next one is on the shelf");
}

#[test]
fn followers_of_a_letter_pass_or_are_held_or_buried() {
    let a = key("a");
    let buried = |followers| {
        let mut bench = Bench::new(followers);
        (0..3).for_each(|offset| drop(bench.arrive(&a, offset)));
        let steps = bench.bury(&a, 0);
        (bench, steps)
    };
    assert_eq!(buried(Followers::Pass).1, [Step::Run(1)]);

    let (mut bench, steps) = buried(Followers::Hold);
    assert_eq!(steps, [follow(1, 0), follow(2, 0)]);
    assert_eq!(bench.arrive(&a, 3), [follow(3, 0)]);
    bench.shelved(&a, 1);
    assert_eq!(bench.back(&a, 1), [follow(1, 0)], "the lane is closed");
    bench.shelved(&a, 1);
    assert_eq!(bench.resolve(&a, 7), [], "another letter");
    assert_eq!(bench.resolve(&a, 0), []);
    assert_eq!(bench.back(&a, 1), [Step::Run(1)]);

    let (mut bench, steps) = buried(Followers::Bury);
    let follower = |offset| Step::BuryFollower { offset, leader: 0 };
    assert_eq!(steps, [follower(1), follower(2)]);
    assert_eq!(bench.arrive(&a, 3), [follower(3)]);
    assert_eq!(bench.arrive(&a, 0), [Step::Known(0)]);
    assert_eq!(bench.resolve(&a, 0), []);
    assert_eq!(bench.arrive(&a, 4), [follow(4, 3)], "their letters are on their way");
    (1..4).for_each(|offset| drop((bench.bury(&a, offset), bench.resolve(&a, offset))));
    bench.shelved(&a, 4);
    assert_eq!(bench.back(&a, 4), [Step::Run(4)]);
}

#[test]
fn each_letter_closes_the_lane_for_itself() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Hold);
    bench.bury(&a, 0);
    bench.bury(&a, 2);
    assert_eq!(bench.lanes.letters(&a), [0, 2]);
    assert_eq!(bench.arrive(&a, 1), [follow(1, 0)]);
    bench.resolve(&a, 2);
    assert_eq!(bench.arrive(&a, 3), [follow(3, 0)], "the first letter still holds");
    bench.resolve(&a, 0);
    assert!(bench.lanes.letters(&a).is_empty());
}

#[test]
fn a_closed_lane_stays_closed_over_a_take_over_and_a_change_of_configuration() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Bury);
    bench.lanes.restore_closed(&a, 3);
    assert_eq!(bench.arrive(&a, 5), [Step::BuryFollower { offset: 5, leader: 3 }]);
    let mut bench = Bench::new(Followers::Pass);
    bench.lanes.restore_closed(&a, 3);
    assert_eq!(bench.lanes.closed_by(3), Some(a.clone()));
    assert_eq!(bench.arrive(&a, 5), [follow(5, 3)]);
}

#[derive(Debug, Clone)]
enum Event {
    Arrive(usize),
    Done(usize),
    Shelve(usize),
    Shelved(usize),
    Back(usize),
    Bury(usize),
    Resolve(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let which = any::<usize>;
    let event = prop_oneof![
        6 => (0..4_usize).prop_map(Event::Arrive),
        4 => which().prop_map(Event::Done),
        3 => which().prop_map(Event::Shelve),
        6 => which().prop_map(Event::Shelved),
        5 => which().prop_map(Event::Back),
        2 => which().prop_map(Event::Bury),
        1 => which().prop_map(Event::Resolve),
    ];
    proptest::collection::vec(event, 0..150)
}

/// Where a record is, as a model without lanes sees it: one flat list, searched from the start each time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Memory,
    Handler,
    OnTheWay,
    Shelf,
    Burying,
    Letter,
    Gone,
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn lanes_agree_with_a_model_that_searches_one_flat_list(
        events in events(),
        followers in proptest::sample::select(vec![Followers::Pass, Followers::Hold, Followers::Bury]),
    ) {
        let mut bench = Bench::new(followers);
        let mut all: BTreeMap<i64, (usize, At)> = BTreeMap::new();
        let mut closing: BTreeSet<(usize, i64)> = BTreeSet::new();
        for event in events {
            let pick = |which: usize, wanted: At| {
                let found: Vec<_> = all.iter().filter(|(_, (_, at))| *at == wanted).collect();
                (!found.is_empty()).then(|| { let (o, (k, _)) = found[which % found.len()]; (*k, *o) })
            };
            let (lane, steps) = match event {
                Event::Arrive(k) => {
                    let offset = all.len() as i64;
                    all.insert(offset, (k, At::Memory));
                    (k, bench.arrive(&key(KEYS[k]), offset))
                }
                Event::Done(which) => {
                    let Some((k, offset)) = pick(which, At::Handler) else { continue };
                    all.insert(offset, (k, At::Gone));
                    (k, bench.done(&key(KEYS[k]), offset))
                }
                Event::Shelve(which) => {
                    let Some((k, offset)) = pick(which, At::Handler) else { continue };
                    all.insert(offset, (k, At::OnTheWay));
                    (k, bench.shelve(&key(KEYS[k]), offset))
                }
                Event::Shelved(which) => {
                    let Some((k, offset)) = pick(which, At::OnTheWay) else { continue };
                    all.insert(offset, (k, At::Shelf));
                    (k, bench.shelved(&key(KEYS[k]), offset))
                }
                Event::Back(which) => {
                    // Only the first of its lane on the shelf ever comes back.
                    let Some((k, _)) = pick(which, At::Shelf) else { continue };
                    let ahead = bench.shelf.of(&key(KEYS[k])).unwrap();
                    if all[&ahead.first].1 != At::Shelf { continue }
                    all.insert(ahead.first, (k, At::Memory));
                    (k, bench.back(&key(KEYS[k]), ahead.first))
                }
                Event::Bury(which) => {
                    let buried = pick(which, At::Burying).or_else(|| pick(which, At::Handler));
                    let Some((k, offset)) = buried else { continue };
                    all.insert(offset, (k, At::Letter));
                    if followers.closes() { closing.insert((k, offset)); }
                    (k, bench.bury(&key(KEYS[k]), offset))
                }
                Event::Resolve(which) => {
                    let Some((k, letter)) = closing.iter().nth(which % closing.len().max(1)).copied() else { continue };
                    closing.remove(&(k, letter));
                    (k, bench.resolve(&key(KEYS[k]), letter))
                }
            };
            for step in steps {
                match step {
                    Step::Run(offset) => {
                        let earlier = all.iter().any(|(other, (k, at))| {
                            *k == lane && *other < offset && !matches!(at, At::Gone | At::Letter)
                        });
                        prop_assert!(!earlier, "{offset} overtakes in {all:?}");
                        prop_assert_eq!(all[&offset], (lane, At::Memory));
                        let held = closing.iter().any(|(k, letter)| *k == lane && *letter < offset);
                        prop_assert!(!held, "{offset} passes a letter");
                        all.insert(offset, (lane, At::Handler));
                    }
                    Step::Follow { offset, leader } => {
                        prop_assert!(leader < offset && all[&offset] == (lane, At::Memory));
                        all.insert(offset, (lane, At::OnTheWay));
                    }
                    Step::BuryFollower { offset, leader } => {
                        prop_assert!(closing.contains(&(lane, leader)) && leader < offset);
                        prop_assert_eq!(all[&offset], (lane, At::Memory));
                        all.insert(offset, (lane, At::Burying));
                    }
                    Step::Known(offset) => prop_assert!(false, "{offset} was not here before"),
                }
            }
            // Nothing that could run is left lying.
            for (k, name) in KEYS.iter().enumerate() {
                let open = |at: &At| !matches!(at, At::Gone | At::Letter);
                let first = all.iter().find(|(_, (other, at))| *other == k && open(at));
                if let Some((offset, (_, At::Memory))) = first {
                    let held = closing.iter().any(|(other, letter)| *other == k && letter < offset);
                    prop_assert!(held, "{offset} of {name} does not run");
                }
            }
        }
    }
}

#[test]
fn a_letter_that_is_sent_back_waits_for_the_one_that_runs_and_goes_before_the_rest() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Pass);
    (1..4).for_each(|offset| drop(bench.arrive(&a, offset)));
    assert_eq!(bench.lanes.running(&a), Some(1));
    bench.shelf.insert((a.clone(), 0), false);
    let sent_back = |lanes: &mut Lanes, shelf: &BTreeMap<_, _>, steps: &mut Vec<Step>| {
        lanes.sent_back(Some(&a), 0, None, shelf, steps);
    };
    assert_eq!(bench.take(sent_back), [follow(2, 0), follow(3, 0)]);
    [2, 3].into_iter().for_each(|offset| drop(bench.shelved(&a, offset)));
    assert_eq!(bench.back(&a, 0), [], "one at a time");
    assert_eq!(bench.done(&a, 1), [Step::Run(0)]);
    assert_eq!(bench.done(&a, 0), []);
    assert_eq!(bench.back(&a, 2), [Step::Run(2)]);
}

#[test]
fn what_was_to_run_and_has_not_begun_goes_behind_a_letter_that_is_sent_back() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Pass);
    bench.arrive(&a, 1);
    bench.shelf.insert((a.clone(), 0), false);
    let steps = bench.take(|lanes, shelf, steps| lanes.sent_back(Some(&a), 0, Some(1), shelf, steps));
    assert_eq!((steps, bench.lanes.running(&a)), (vec![follow(1, 0)], None));
}

#[test]
fn an_announced_lane_holds_everything_from_its_leader_on() {
    let a = key("a");
    let mut bench = Bench::new(Followers::Bury);
    bench.arrive(&a, 0);
    bench.bury(&a, 0);
    assert_eq!(bench.arrive(&a, 1), [Step::BuryFollower { offset: 1, leader: 0 }]);
    bench.bury(&a, 1);
    assert_eq!(bench.take(|lanes, _, steps| lanes.announce(&a, 0, steps)), []);
    assert_eq!(bench.arrive(&a, 2), [follow(2, 0)]);
    bench.shelved(&a, 2);
    assert_eq!(bench.back(&a, 0), [follow(0, 0)], "its leader too");
    bench.shelved(&a, 0);
    let letters = [(0, false), (1, false)];
    let open = |lanes: &mut Lanes, shelf: &BTreeMap<_, _>, steps: &mut Vec<Step>| {
        lanes.resolve_all(&a, letters.into_iter(), shelf, steps);
    };
    assert_eq!(bench.take(open), []);
    assert_eq!(bench.back(&a, 0), [Step::Run(0)]);
}
