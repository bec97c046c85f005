use super::Strategy;
use super::*;
use crate::buckets::Buckets;
use crate::origin::Origin;
use proptest::prelude::*;

const EVERY_CHOICE: [Exhausted; 4] = [Exhausted::Bury, Exhausted::Shelve, Exhausted::Block, Exhausted::Drop];

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn policies(transient: &str, outage: &str, not_ready: &str) -> PerClass<Policy> {
    PerClass::from_fn(|class| match class {
        Class::Permanent => Policy::NEVER,
        Class::Transient => transient.parse().unwrap(),
        Class::Outage => outage.parse().unwrap(),
        Class::NotReady => not_ready.parse().unwrap(),
    })
}

fn rules(policies: PerClass<Policy>, exhausted: PerClass<Exhausted>) -> Rules {
    Rules { classifier: Classifier::always(Class::Transient), policies, exhausted, strategy: Strategy::Shelf }
}

fn origin() -> Origin {
    "orders/0/7".parse().unwrap()
}

fn past(in_place: u32, blocked: u32, set_aside: u32, failing_for: u64) -> History {
    let first = NOW.millis() - i64::try_from(failing_for * 1_000).unwrap();
    History {
        origin: origin(),
        first_failed_at: Some(Timestamp::from_millis(first)),
        retries: Retries { in_place, blocked, set_aside },
    }
}

fn shown(route: &Route) -> String {
    let wait = |due: &Timestamp| due.since(NOW).as_secs();
    match route {
        Route::Again { after } => format!("again in {}s", after.as_secs()),
        Route::Block { until } => format!("block {}s", wait(until)),
        Route::Shelve { due } => format!("shelve {}s", wait(due)),
        Route::Forward { topic, due } => format!("{topic} {}s", wait(due)),
        Route::Bury(reason) => format!("bury {reason}"),
        Route::Drop(reason) => format!("drop {reason}"),
    }
}

/// Every class against every situation. The policies: transient `list(1s x2) for 10m`, outage
/// `list(4s x2) for 10m`, not-ready `list(8s x2) for 10m`; `asks` is a Retry-After of 30 s.
#[test]
fn the_decision_table() {
    let policies = policies("list(1s x2) for 10m", "list(4s x2) for 10m", "list(8s x2) for 10m");
    let fresh = History::of(origin());
    let used = past(2, 2, 2, 60);
    let old = past(1, 1, 1, 600);
    #[rustfmt::skip]
    let table = [
        // class              first failure    asks 30 s         tries used up      too old          used up, drop
        (Class::Permanent, ["bury permanent", "bury permanent", "bury permanent", "bury permanent", "drop permanent"]),
        (Class::Transient, ["again in 1s",    "again in 30s",   "bury exhausted", "bury expired",   "drop exhausted"]),
        (Class::Outage,    ["block 4s",       "block 30s",      "bury exhausted", "bury expired",   "drop exhausted"]),
        (Class::NotReady,  ["shelve 8s",      "shelve 30s",     "bury exhausted", "bury expired",   "drop exhausted"]),
    ];
    let bury = rules(policies.clone(), PerClass::default());
    let drop = rules(policies, PerClass::from_fn(|_| Exhausted::Drop));
    let asked = Some(Duration::from_secs(30));
    for (class, expected) in table {
        let seen = [
            bury.route(class, None, &fresh, NOW),
            bury.route(class, asked, &fresh, NOW),
            bury.route(class, None, &used, NOW),
            bury.route(class, None, &old, NOW),
            drop.route(class, None, &used, NOW),
        ];
        assert_eq!(seen.each_ref().map(shown), expected, "{class}");
    }
}

/// Every class against every choice of what follows, when only its own tries are used up.
#[test]
fn the_table_of_used_up_tries() {
    let policies = policies("list(1s x2)", "list(4s x2)", "list(8s x2)");
    #[rustfmt::skip]
    let table = [
        // class              bury              shelve            block             drop
        (Class::Permanent, ["bury permanent", "shelve 8s",      "block 4s",       "drop permanent"]),
        (Class::Transient, ["bury exhausted", "shelve 8s",      "block 4s",       "drop exhausted"]),
        (Class::Outage,    ["bury exhausted", "shelve 8s",      "bury exhausted", "drop exhausted"]),
        (Class::NotReady,  ["bury exhausted", "bury exhausted", "block 4s",       "drop exhausted"]),
    ];
    for (class, expected) in table {
        let history = match class {
            Class::Permanent | Class::Transient => past(2, 0, 0, 9),
            Class::Outage => past(0, 2, 0, 9),
            Class::NotReady => past(0, 0, 2, 9),
        };
        let seen = EVERY_CHOICE.map(|choice| {
            let exhausted = PerClass::from_fn(|c| if c == class { choice } else { Exhausted::Bury });
            shown(&rules(policies.clone(), exhausted).route(class, None, &history, NOW))
        });
        assert_eq!(seen, expected, "{class}");
    }
}

/// The routes of a record that fails again and again with one class, until it is given up.
fn life(rules: &Rules, class: Class, most: usize) -> Vec<String> {
    let mut history = History::of(origin());
    let mut now = NOW;
    let mut seen = Vec::new();
    while seen.len() < most {
        let route = rules.route(class, None, &history, now);
        history = history.after(&route, now);
        let wait = match &route {
            Route::Again { after } => *after,
            Route::Block { until: due } | Route::Shelve { due } | Route::Forward { due, .. } => {
                due.since(now)
            }
            Route::Bury(_) | Route::Drop(_) => {
                seen.push(route.name().to_owned());
                return seen;
            }
        };
        seen.push(format!("{} {}s", route.name(), wait.as_secs()));
        now = now.plus(wait);
    }
    seen
}

#[test]
fn three_times_in_place_then_delayed_then_a_letter() {
    let mut exhausted = PerClass::default();
    exhausted[Class::Transient] = Exhausted::Shelve;
    let rules = rules(policies("list(1s x3)", "never", "list(5s, 60s)"), exhausted);
    let expected = ["again 1s", "again 1s", "again 1s", "shelve 5s", "shelve 60s", "bury"];
    assert_eq!(life(&rules, Class::Transient, 100), expected);
}

/// R1 to R6, each as a configuration and the life of a record that never succeeds.
#[test]
fn every_strategy_can_be_said() {
    let source: Topic = "orders".parse().unwrap();
    let endless = "exponential(1s..4s x2)";

    let ignore = rules(policies("never", "never", "never"), PerClass::from_fn(|_| Exhausted::Drop));
    assert_eq!(life(&ignore, Class::Transient, 9), ["drop"]);

    let block = rules(policies("never", endless, "never"), PerClass::default());
    assert_eq!(life(&block, Class::Outage, 5), ["block 1s", "block 2s", "block 4s", "block 4s", "block 4s"]);

    let limited = rules(policies("never", "exponential(1s..4s x2, 2)", "never"), PerClass::default());
    assert_eq!(life(&limited, Class::Outage, 9), ["block 1s", "block 2s", "bury"]);

    let policy = "list(5s x2, 60s)";
    let ladder = Strategy::ladder(&source, "pay", &policy.parse().unwrap()).unwrap();
    let Strategy::Ladder(rungs) = &ladder else { panic!("{ladder:?}") };
    let topics: Vec<_> = rungs.values().map(Topic::as_str).collect();
    assert_eq!(topics, ["orders.pay.retry-5s", "orders.pay.retry-1m"]);
    let rules_for = |strategy, not_ready: &str| Rules {
        strategy,
        ..rules(policies("never", "never", not_ready), PerClass::default())
    };
    assert_eq!(
        life(&rules_for(ladder, policy), Class::NotReady, 9),
        ["forward 5s", "forward 5s", "forward 60s", "bury"]
    );

    let back = rules_for(Strategy::one_topic(&source, "pay").unwrap(), "exponential(10s..10s x1) for 5m");
    let lives = life(&back, Class::NotReady, 99);
    assert_eq!((lives.len(), lives[0].as_str(), lives[30].as_str()), (31, "forward 10s", "bury"));

    let policy = "list(17m, 1s)";
    let buckets = Buckets::default();
    let service = Strategy::service(&source, "pay", &buckets, &policy.parse().unwrap()).unwrap();
    let service = rules_for(service, policy);
    let history = History::of(origin());
    let first = service.route(Class::NotReady, None, &history, NOW);
    let second = service.route(Class::NotReady, None, &history.after(&first, NOW), NOW);
    assert_eq!([shown(&first), shown(&second)], ["redrive.delay.10m 1020s", "orders.pay.return 1s"]);
}

#[test]
fn a_wait_between_two_rungs_takes_the_longer_one_and_neither_is_early_nor_outlasts_the_policy() {
    let source = "orders".parse().unwrap();
    let policy = "list(5s, 60s) for 10m";
    let strategy = Strategy::ladder(&source, "pay", &policy.parse().unwrap()).unwrap();
    let rules = Rules { strategy, ..rules(policies("never", "never", policy), PerClass::default()) };
    let asked = |secs, failing_for| {
        let asked = Some(Duration::from_secs(secs));
        shown(&rules.route(Class::NotReady, asked, &past(0, 0, 0, failing_for), NOW))
    };
    assert_eq!(asked(5, 0), "orders.pay.retry-5s 5s");
    assert_eq!(asked(6, 0), "orders.pay.retry-1m 60s");
    assert_eq!(asked(90, 0), "orders.pay.retry-1m 90s");
    assert_eq!(asked(5, 590), "orders.pay.retry-5s 5s");
    assert_eq!(asked(6, 590), "bury expired");
}

#[test]
fn a_failure_may_not_ask_for_ever() {
    let rules = rules(policies("list(1s)", "list(1s x9)", "list(1s)"), PerClass::default());
    let asked = |class| {
        let asked = Some(Duration::from_secs(u64::MAX / 1_000));
        shown(&rules.route(class, asked, &past(0, 0, 0, 0), NOW))
    };
    assert_eq!(asked(Class::Outage), "block 3600s");
    assert_eq!(asked(Class::Transient), "again in 31622400s");
    assert_eq!(asked(Class::NotReady), "shelve 31622400s");
}

#[test]
fn a_delay_as_long_as_a_bucket_goes_into_it() {
    let source = "orders".parse().unwrap();
    let service =
        Strategy::service(&source, "pay", &Buckets::default(), &"list(10s)".parse().unwrap()).unwrap();
    assert_eq!(shown(&service.set_aside(Duration::from_secs(10), NOW)), "redrive.delay.10s 10s");
    assert_eq!(shown(&service.set_aside(Duration::from_millis(9_999), NOW)), "orders.pay.return 9s");
}

#[test]
fn every_delay_of_a_policy_must_be_reached_by_the_buckets() {
    let source = "orders".parse().unwrap();
    let service =
        |policy: &str| Strategy::service(&source, "pay", &Buckets::default(), &policy.parse().unwrap());
    assert!(service("list(49d)").is_ok());
    assert!(service("list(4233590s, 49d)").is_err(), "the shorter one takes more hops");
    assert!(service("list(49d) jitter 1%").is_err(), "any delay near it may come");
    assert!(service("list(1h) jitter 50%").is_ok());
}

#[test]
fn jitter_comes_from_the_origin_of_the_record() {
    let rules = rules(policies("list(1000s) jitter 50%", "never", "never"), PerClass::default());
    let route =
        |origin: &str| rules.route(Class::Transient, None, &History::of(origin.parse().unwrap()), NOW);
    assert_eq!(route("a/0/1"), route("a/0/1"));
    assert_ne!(route("a/0/1"), route("a/0/2"));
}

fn any_policy() -> impl proptest::strategy::Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "never",
        "list(0s x3)",
        "list(1s x2, 7s)",
        "exponential(1s..60s x2, 5)",
        "exponential(1s..9s x3) for 1m",
        "list(1s x100) for 10s jitter 50%",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_record_ends_when_every_policy_does(
        texts in [any_policy(), any_policy(), any_policy()],
        choices in proptest::array::uniform4(proptest::sample::select(&EVERY_CHOICE)),
        failures in proptest::collection::vec((proptest::sample::select(&Class::ALL), proptest::option::of(0_u64..100)), 1..40),
    ) {
        let rules = rules(policies(texts[0], texts[1], texts[2]), PerClass(choices));
        let mut history = History::of(origin());
        let mut now = NOW;
        // Each stage has at most 100 tries, so no life is longer than all of them together.
        for (class, asked) in failures.iter().cycle().take(301) {
            let asked = asked.map(Duration::from_secs);
            let route = rules.route(*class, asked, &history, now);
            prop_assert_eq!(&route, &rules.route(*class, asked, &history, now));
            let before = history.retries;
            history = history.after(&route, now);
            let waited = match &route {
                Route::Again { after } => Some((Class::Transient, *after)),
                Route::Block { until } => Some((Class::Outage, until.since(now))),
                Route::Shelve { due } | Route::Forward { due, .. } => Some((Class::NotReady, due.since(now))),
                Route::Bury(_) | Route::Drop(_) => None,
            };
            if let Some((stage, waited)) = waited {
                let policy = &rules.policies[stage];
                let delay = policy.delay(before.next(stage)).expect("a retry that the policy has");
                let least = asked.unwrap_or(delay * u32::from(100 - policy.jitter().map_or(0, std::num::NonZero::get)) / 100);
                prop_assert!(waited >= least, "{stage} waited {waited:?}, not {least:?}");
            }
            now = match route {
                Route::Again { after } => now.plus(after),
                Route::Block { until: due } | Route::Shelve { due } | Route::Forward { due, .. } => due,
                Route::Bury(_) | Route::Drop(_) => return Ok(()),
            };
            // An attempt takes its time: that ends a policy which ends by time, if no wait is asked for.
            now = now.plus(Duration::from_secs(1));
        }
        prop_assert!(false, "never given up");
    }

    #[test]
    fn routing_answers_at_any_time_and_after_any_history(
        class in proptest::sample::select(&Class::ALL),
        retries in any::<(u32, u32, u32)>(),
        first in any::<i64>(),
        now in any::<i64>(),
        asked in proptest::option::of(any::<u64>()),
        endless: bool,
    ) {
        let outage = if endless { "exponential(1s..60s x2)" } else { "exponential(1s..60s x2, 9) for 1h" };
        let rules = rules(policies("list(1s x2) jitter 100%", outage, "list(3d)"), PerClass::from_fn(|_| Exhausted::Block));
        let (in_place, blocked, set_aside) = retries;
        let history = History {
            origin: origin(),
            first_failed_at: Some(Timestamp::from_millis(first)),
            retries: Retries { in_place, blocked, set_aside },
        };
        let route = rules.route(class, asked.map(Duration::from_millis), &history, Timestamp::from_millis(now));
        prop_assert!(!route.name().is_empty());
    }
}
