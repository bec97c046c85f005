use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::classify::Classifier;
use crate::failure::{Cause, Failure};
use crate::headers::Headers;
use crate::policy::Policy;
use crate::route::{Exhausted, PerClass, Strategy as Waiting};

fn settings(concurrency: u32) -> Settings {
    let policies = PerClass::from_fn(|class| {
        let text = match class {
            Class::Permanent => "never",
            Class::Transient => "list(100ms x2)",
            Class::Outage => "exponential(1s..60s x2)",
            Class::NotReady => "list(5s x3)",
        };
        text.parse().unwrap()
    });
    Settings {
        group: "g".into(),
        instance: "i".into(),
        rules: Rules {
            classifier: Classifier::always(Class::Transient),
            policies,
            exhausted: PerClass::default(),
            strategy: Waiting::Shelf,
        },
        order_by: OrderBy::Key,
        followers: Followers::Pass,
        blocking: Blocking::Subscription,
        concurrency: NonZeroU32::new(concurrency).unwrap(),
        retry_concurrency: NonZeroU32::new(concurrency).unwrap(),
        surge_guard: None,
        max_loss: None,
        limits: Limits { records: 1_000, bytes: 1 << 20 },
        shelf: None,
    }
}

fn record(partition: i32, offset: i64, key: Option<&str>) -> Record {
    Record {
        at: Origin { topic: "orders".parse().unwrap(), partition, offset },
        timestamp: None,
        key: key.map(|key| Bytes::from(key.to_owned())),
        value: Some(Bytes::from_static(b"v")),
        headers: Headers::default(),
    }
}

fn at(millis: u64) -> Now {
    Now { steady: Duration::from_millis(millis), wall: Timestamp::from_millis(1_000_000 + millis as i64) }
}

fn failure(class: Class) -> Result<(), Failure> {
    Err(Failure::new(Cause::new("Broken", "it broke")).classed(class))
}

/// A flow with a clock of its own, and everything it ever said.
struct Bench {
    flow: Flow,
    now: u64,
    told: Vec<Notice>,
    burying: Vec<Id>,
    running: Vec<Attempt>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let mut flow = Flow::new(settings);
        flow.begin(0, 0);
        Self { flow, now: 0, told: Vec::new(), burying: Vec::new(), running: Vec::new() }
    }

    fn arrive(&mut self, offset: i64, key: &str) {
        self.flow.arrive(record(0, offset, Some(key)));
        self.go();
    }

    /// Lets the flow act, and time pass.
    fn go(&mut self) {
        self.flow.advance(at(self.now));
        while let Some(action) = self.flow.next_action() {
            match action {
                Action::Handle(attempt) => self.running.push(attempt),
                Action::Bury(id) => self.burying.push(id),
                Action::Tell(notice) => self.told.push(notice),
                Action::Pause(_) | Action::Resume(_) => {}
                other => panic!("{other:?} without a shelf"),
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += millis;
        self.go();
    }

    fn offsets(&self) -> Vec<i64> {
        self.running.iter().map(|attempt| attempt.record.at.offset).collect()
    }

    fn end(&mut self, offset: i64, outcome: Result<(), Failure>) {
        let found = self.running.iter().position(|attempt| attempt.record.at.offset == offset);
        let attempt = self.running.remove(found.unwrap_or_else(|| panic!("{offset} does not run")));
        self.flow.handled(attempt.id, attempt.slot, outcome, at(self.now));
        self.go();
    }

    fn bury_all(&mut self) -> usize {
        let burying = std::mem::take(&mut self.burying);
        for id in &burying {
            self.flow.buried(*id, at(self.now));
        }
        self.go();
        burying.len()
    }
}

#[test]
fn lanes_run_side_by_side_and_a_lane_in_order() {
    let mut bench = Bench::new(settings(2));
    for (offset, key) in [(0, "a"), (1, "a"), (2, "b"), (3, "c")] {
        bench.arrive(offset, key);
    }
    assert_eq!(bench.offsets(), [0, 2]);
    bench.end(2, Ok(()));
    assert_eq!(bench.offsets(), [0, 3]);
    assert_eq!(bench.flow.mark(0), Some(0));
    bench.end(0, Ok(()));
    assert_eq!(bench.offsets(), [3, 1]);
    bench.end(1, Ok(()));
    bench.end(3, Ok(()));
    assert_eq!(bench.flow.mark(0), Some(4));
}

#[test]
fn a_transient_failure_waits_in_its_lane_and_ends_as_a_letter() {
    let mut bench = Bench::new(settings(4));
    for (offset, key) in [(0, "a"), (1, "a"), (2, "b")] {
        bench.arrive(offset, key);
    }
    bench.end(0, failure(Class::Transient));
    bench.end(2, Ok(()));
    assert_eq!(bench.offsets(), [] as [i64; 0], "its lane waits");
    bench.pass(99);
    assert_eq!(bench.offsets(), [] as [i64; 0]);
    bench.pass(1);
    assert_eq!(bench.offsets(), [0]);
    bench.end(0, failure(Class::Transient));
    bench.pass(100);
    bench.end(0, failure(Class::Transient));
    assert_eq!((bench.burying.len(), bench.offsets()), (1, vec![]), "the lane waits for the letter");
    let ticket = bench.flow.ticket(bench.burying[0]).unwrap();
    assert_eq!((ticket.attempts(), ticket.burial.unwrap().reason), (3, Reason::Exhausted));
    assert_eq!(bench.flow.mark(0), Some(0), "not before the letter is confirmed");
    bench.bury_all();
    assert_eq!(bench.offsets(), [1]);
    assert_eq!(bench.flow.mark(0), Some(1));
}

#[test]
fn an_outage_stops_everything_and_the_first_success_opens_the_gate() {
    let mut bench = Bench::new(settings(1));
    for (offset, key) in [(0, "a"), (1, "b"), (2, "c")] {
        bench.arrive(offset, key);
    }
    bench.end(0, failure(Class::Outage));
    assert!(bench.flow.is_blocked() && bench.running.is_empty());
    bench.pass(1_000);
    assert_eq!(bench.offsets(), [0], "the one that failed is the first probe");
    bench.end(0, failure(Class::Outage));
    bench.pass(1_999);
    assert!(bench.running.is_empty());
    bench.pass(1);
    assert_eq!(bench.offsets(), [1], "then another key");
    bench.end(1, failure(Class::Outage));
    bench.pass(2_000);
    assert_eq!(bench.offsets(), [0], "the pause does not shrink because another record was tried");
    bench.end(0, Ok(()));
    assert!(!bench.flow.is_blocked());
    let mut open = bench.offsets();
    open.sort_unstable();
    assert_eq!(open, [1, 2]);
    assert_eq!(bench.told.iter().filter(|told| matches!(told, Notice::Blocked { .. })).count(), 1);
    assert_eq!(bench.burying.len(), 0);
}

#[test]
fn a_record_that_alone_meets_an_outage_is_not_ready_and_its_policy_ends() {
    let mut bench = Bench::new(settings(1));
    bench.arrive(0, "a");
    bench.end(0, failure(Class::Outage));
    for offset in 1..50 {
        bench.arrive(offset, "b");
    }
    let mut handled = 0;
    for _ in 0..200 {
        for attempt in std::mem::take(&mut bench.running) {
            let poison = attempt.record.at.offset == 0;
            handled += u32::from(!poison);
            let outcome = if poison { failure(Class::Outage) } else { Ok(()) };
            bench.flow.handled(attempt.id, attempt.slot, outcome, at(bench.now));
        }
        bench.pass(500);
    }
    assert_eq!(handled, 49);
    assert!(!bench.flow.is_blocked());
    assert_eq!(bench.bury_all(), 1, "it ends as a letter");
    assert_eq!(bench.flow.mark(0), Some(50));
}

#[test]
fn with_one_partition_blocked_the_others_go_on() {
    let mut bench = Bench::new(Settings { blocking: Blocking::Partition, ..settings(4) });
    bench.flow.begin(1, 0);
    bench.arrive(0, "a");
    bench.end(0, failure(Class::Outage));
    bench.arrive(1, "b");
    bench.flow.arrive(record(1, 0, Some("c")));
    bench.go();
    assert_eq!(bench.running.iter().map(|attempt| attempt.record.at.partition).collect::<Vec<_>>(), [1]);
    bench.end(0, Ok(()));
    bench.pass(1_000);
    assert_eq!(bench.offsets(), [0]);
    bench.end(0, Ok(()));
    assert_eq!(bench.offsets(), [1]);
}

#[test]
fn a_bad_deployment_leaves_few_letters_and_flow_resumes_after_the_fix() {
    let mut bench = Bench::new(Settings { surge_guard: Some(SurgeGuard::default()), ..settings(8) });
    let mut letters = 0;
    for offset in 0..10_000 {
        bench.flow.arrive(record(0, offset, Some(&format!("key-{offset}"))));
    }
    for _ in 0..1_000 {
        bench.pass(1_000);
        for attempt in std::mem::take(&mut bench.running) {
            bench.flow.handled(attempt.id, attempt.slot, failure(Class::Permanent), at(bench.now));
        }
        letters += bench.bury_all();
    }
    assert!((1..=100).contains(&letters), "{letters}");
    for _ in 0..10_000 {
        bench.pass(1_000);
        for attempt in std::mem::take(&mut bench.running) {
            bench.flow.handled(attempt.id, attempt.slot, Ok(()), at(bench.now));
        }
    }
    assert_eq!(bench.bury_all(), 0);
    assert_eq!(bench.flow.mark(0), Some(10_000));
}

#[test]
fn a_held_partition_starts_nothing_and_goes_on_when_it_is_let_go() {
    let mut bench = Bench::new(settings(4));
    bench.arrive(0, "a");
    bench.end(0, failure(Class::Permanent));
    bench.flow.hold(0, true);
    bench.arrive(1, "b");
    assert!(bench.running.is_empty());
    bench.flow.hold(0, false);
    bench.bury_all();
    assert_eq!(bench.offsets(), [1]);
}

#[test]
fn what_ends_after_its_partition_has_gone_changes_nothing() {
    let mut bench = Bench::new(settings(4));
    bench.arrive(0, "a");
    assert_eq!(bench.flow.abandon(0), [bench.running[0].id]);
    bench.flow.begin(0, 0);
    bench.end(0, Ok(()));
    assert_eq!((bench.flow.mark(0), bench.flow.running()), (Some(0), 0));
    bench.arrive(0, "a");
    assert_eq!(bench.offsets(), [0]);
}

#[test]
fn a_held_partition_that_fills_the_memory_does_not_keep_the_others_from_theirs() {
    let mut settings = settings(1);
    settings.limits.bytes = 100;
    let mut flow = Flow::new(settings);
    flow.begin(0, 0);
    flow.begin(1, 0);
    flow.hold(0, true);
    // More than its share: what was on its way when it was paused comes all the same.
    for offset in 0..100 {
        flow.arrive(record(0, offset, Some("k")));
    }
    assert!(flow.has_room());
    for offset in 0..100 {
        flow.arrive(record(1, offset, Some("k")));
    }
    while !matches!(flow.next_action(), None | Some(Action::Pause(1))) {}
    assert!(flow.has_room(), "both are paused: what still comes is little");
}

#[test]
fn a_throttled_partition_takes_nothing_more_and_goes_on_with_what_it_has() {
    let mut bench = Bench::new(settings(4));
    bench.flow.begin(1, 0);
    bench.flow.throttle(0, true);
    assert_eq!(bench.flow.next_action(), Some(Action::Pause(0)));
    bench.arrive(0, "a");
    assert_eq!(bench.offsets(), [0], "what was on its way runs");
    bench.end(0, Ok(()));
    assert_eq!(bench.flow.next_action(), None, "only who throttled it lets it go on");
    bench.flow.throttle(0, false);
    assert_eq!(bench.flow.next_action(), Some(Action::Resume(0)));
}

#[test]
fn a_full_partition_is_paused_and_resumed_at_half() {
    let mut settings = settings(1);
    settings.limits.records = 10;
    let mut flow = Flow::new(settings);
    flow.begin(0, 0);
    for offset in 0..10 {
        flow.arrive(record(0, offset, Some("k")));
    }
    assert_eq!(flow.next_action(), Some(Action::Pause(0)));
    for done in 0..5 {
        flow.advance(at(0));
        let Some(Action::Handle(attempt)) = flow.next_action() else { panic!("{done}") };
        flow.handled(attempt.id, attempt.slot, Ok(()), at(0));
    }
    assert_eq!(flow.next_action(), Some(Action::Resume(0)));
}

#[test]
fn draining_starts_nothing_and_waits_for_what_runs() {
    let mut bench = Bench::new(settings(1));
    bench.arrive(0, "a");
    bench.arrive(1, "b");
    bench.flow.drain(0);
    assert!(!bench.flow.is_drained(0));
    bench.end(0, Ok(()));
    assert!(bench.flow.is_drained(0) && bench.running.is_empty());
    assert_eq!(bench.flow.mark(0), Some(1));
}

#[test]
fn a_gate_whose_records_cannot_be_tried_does_not_keep_anyone_busy() {
    let mut bench = Bench::new(settings(1));
    bench.arrive(0, "a");
    bench.end(0, failure(Class::Outage));
    bench.flow.hold(0, true);
    bench.pass(1_000);
    assert!(bench.running.is_empty());
    assert!(bench.flow.next_wake(at(bench.now)).unwrap() > Duration::from_millis(bench.now));
    bench.flow.hold(0, false);
    bench.pass(1_000);
    assert_eq!(bench.offsets(), [0]);
}

/// What the handler does with a record, try by try; then it succeeds.
type Script = Vec<Class>;

fn scripts() -> impl Strategy<Value = Vec<(u8, Script)>> {
    let class = prop_oneof![
        2 => Just(Class::Transient),
        1 => Just(Class::NotReady),
        1 => Just(Class::Outage),
        1 => Just(Class::Permanent),
    ];
    let script = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(class, 1..5)];
    prop::collection::vec((0..6_u8, script), 1..60)
}

proptest! {
    #[test]
    fn every_record_ends_once_in_the_order_of_its_lane(
        records in scripts(),
        partitions in 1..4_i32,
        concurrency in 1..6_u32,
        by_partition: bool,
        guarded: bool,
        drop_transient: bool,
        mut chance: u64,
    ) {
        let mut settings = settings(concurrency);
        settings.blocking = if by_partition { Blocking::Partition } else { Blocking::Subscription };
        settings.surge_guard = guarded.then(|| "50% of 4 keys in 30s".parse().unwrap());
        if drop_transient {
            settings.rules.exhausted[Class::Transient] = Exhausted::Drop;
        }
        let mut flow = Flow::new(settings);
        let mut scripts: BTreeMap<(i32, i64), (u8, Script)> = BTreeMap::new();
        for partition in 0..partitions {
            flow.begin(partition, 0);
        }
        for (index, (key, script)) in records.iter().enumerate() {
            let place = (index as i32 % partitions, index as i64 / i64::from(partitions));
            scripts.insert(place, (*key, script.clone()));
            flow.arrive(record(place.0, place.1, Some(&format!("key-{key}"))));
        }
        let mut open: BTreeSet<(i32, i64)> = scripts.keys().copied().collect();
        let (mut running, mut burying) = (Vec::<Attempt>::new(), Vec::<Id>::new());
        let mut now = 0;
        for round in 0..100_000 {
            if open.is_empty() { break; }
            prop_assert!(round < 99_999, "never ends: {open:?}");
            flow.advance(at(now));
            while let Some(action) = flow.next_action() {
                match action {
                    Action::Handle(attempt) => {
                        let place = (attempt.record.at.partition, attempt.record.at.offset);
                        let key = scripts[&place].0;
                        let earlier = open.iter().any(|other| {
                            other.0 == place.0 && other.1 < place.1 && scripts[other].0 == key
                        });
                        prop_assert!(!earlier, "{place:?} overtakes");
                        prop_assert!(open.contains(&place), "{place:?} again");
                        running.push(attempt);
                    }
                    Action::Bury(id) => burying.push(id),
                    Action::Tell(Notice::Dropped { record, .. }) => {
                        prop_assert!(open.remove(&(record.at.partition, record.at.offset)));
                    }
                    Action::Tell(_) | Action::Pause(_) | Action::Resume(_) => {}
                    other => panic!("{other:?} without a shelf"),
                }
            }
            // A probe may start beside what was running when the gate closed.
            prop_assert!(flow.running() <= 2 * concurrency + partitions as u32);
            for (partition, mark) in flow.marks() {
                let lowest = open.iter().find(|place| place.0 == partition).map(|place| place.1);
                prop_assert_eq!(lowest.unwrap_or(flow.position(partition).unwrap()), mark);
            }
            let total = running.len() + burying.len();
            if open.is_empty() { break; }
            if total == 0 {
                let next = flow.next_wake(at(now));
                prop_assert!(next.is_some(), "stuck with {open:?}");
                now = now.max(next.unwrap().as_millis() as u64);
                continue;
            }
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chosen = (chance >> 33) as usize % total;
            if chosen < running.len() {
                let attempt = running.remove(chosen);
                let place = (attempt.record.at.partition, attempt.record.at.offset);
                let script = &mut scripts.get_mut(&place).unwrap().1;
                let outcome = if script.is_empty() { Ok(()) } else { failure(script.remove(0)) };
                if outcome.is_ok() {
                    open.remove(&place);
                }
                flow.handled(attempt.id, attempt.slot, outcome, at(now));
            } else {
                let id = burying.remove(chosen - running.len());
                let record = flow.ticket(id).unwrap().record.clone();
                prop_assert!(open.remove(&(record.at.partition, record.at.offset)));
                flow.buried(id, at(now));
            }
            now += 1;
        }
        prop_assert_eq!(flow.in_memory(), 0);
        prop_assert_eq!(flow.running(), 0);
    }
}

#[test]
fn nothing_starts_while_it_is_paused_and_nothing_is_lost_or_reordered() {
    let mut bench = Bench::new(settings(4));
    bench.arrive(0, "a");
    bench.arrive(1, "b");
    bench.flow.pause(true);
    // What runs may end, and fail; neither its retry nor the next of its lane starts.
    bench.end(0, failure(Class::Transient));
    bench.end(1, Ok(()));
    bench.arrive(2, "a");
    bench.arrive(3, "c");
    bench.pass(60_000);
    assert_eq!(bench.offsets(), [0; 0]);
    assert!(bench.flow.next_wake(at(bench.now)).is_none_or(|wake| wake > at(bench.now).steady));
    bench.flow.pause(false);
    bench.go();
    assert_eq!(bench.offsets(), [3, 0], "the first of each lane");
    bench.end(0, Ok(()));
    assert_eq!(bench.offsets(), [3, 2]);
    bench.end(3, Ok(()));
    bench.end(2, Ok(()));
    assert_eq!(bench.flow.marks().collect::<Vec<_>>(), [(0, 4)]);
}

#[test]
fn an_outage_is_not_probed_while_it_is_paused() {
    let mut bench = Bench::new(settings(4));
    bench.arrive(0, "a");
    bench.end(0, failure(Class::Outage));
    bench.flow.pause(true);
    bench.pass(60_000);
    assert_eq!(bench.offsets(), [0; 0]);
    assert_eq!(bench.flow.next_wake(at(bench.now)), None, "nobody looks again and again");
    bench.flow.pause(false);
    bench.go();
    assert_eq!(bench.offsets(), [0]);
}

#[test]
fn other_rules_and_limits_hold_from_the_next_decision_on() {
    let mut bench = Bench::new(settings(2));
    for (offset, key) in [(0, "a"), (1, "b"), (2, "c"), (3, "d")] {
        bench.arrive(offset, key);
    }
    bench.end(0, failure(Class::Transient));
    assert_eq!(bench.offsets(), [1, 2]);
    let mut rules = bench.flow.settings.rules.clone();
    rules.policies[Class::Transient] = Policy::NEVER;
    let one = NonZeroU32::MIN;
    bench.flow.adopt(Adopted {
        rules,
        concurrency: one,
        retry_concurrency: one,
        surge_guard: None,
        max_loss: None,
    });
    // What runs beyond the lower limit ends first.
    bench.end(1, Ok(()));
    assert_eq!(bench.offsets(), [2]);
    bench.end(2, Ok(()));
    assert_eq!(bench.offsets(), [3]);
    bench.end(3, Ok(()));
    // The wait that was decided upon stays; what follows it is decided by the new rules.
    bench.pass(99);
    assert_eq!(bench.offsets(), [0; 0]);
    bench.pass(1);
    bench.end(0, failure(Class::Transient));
    assert_eq!(bench.bury_all(), 1);
    assert_eq!(bench.flow.marks().collect::<Vec<_>>(), [(0, 4)]);
}
