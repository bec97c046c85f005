use super::*;
use proptest::prelude::*;

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn seconds(policy: &Policy, retries: std::ops::RangeInclusive<u32>) -> Vec<Option<u64>> {
    retries.map(|n| policy.delay(NonZeroU32::new(n).unwrap()).map(|d| d.as_secs())).collect()
}

#[test]
fn a_limited_exponential_policy_doubles_up_to_its_longest_delay_and_ends() {
    let policy = policy("exponential(1s..60s x2, 120)");
    assert_eq!(seconds(&policy, 1..=8), [1, 2, 4, 8, 16, 32, 60, 60].map(Some));
    assert_eq!(seconds(&policy, 119..=121), [Some(60), Some(60), None]);
    assert_eq!(policy.max_delay(), Duration::from_secs(60));
    assert_eq!(policy.total(), Some(Duration::from_secs(63 + 114 * 60)));
    assert!(!policy.is_endless());
}

#[test]
fn a_list_uses_each_delay_as_often_as_it_says() {
    let policy = policy("list(5s x3, 15s, 60s x2)");
    assert_eq!(seconds(&policy, 1..=7), [Some(5), Some(5), Some(5), Some(15), Some(60), Some(60), None]);
    assert_eq!(policy.total(), Some(Duration::from_secs(150)));
}

#[test]
fn an_unlimited_policy_is_endless_unless_it_ends_by_time() {
    let endless = policy("exponential(1s..60s x2)");
    assert!(endless.is_endless());
    assert_eq!(endless.total(), None);
    assert_eq!(endless.delay(NonZeroU32::MAX), Some(Duration::from_secs(60)));

    let ending = policy("exponential(1s..60s x2) for 1h");
    assert!(!ending.is_endless());
    assert_eq!(ending.total(), Some(Duration::from_secs(63 + 58 * 60)));
}

#[test]
fn never_has_no_delay() {
    assert_eq!(Policy::NEVER.delay(NonZeroU32::MIN), None);
    assert_eq!(Policy::NEVER.total(), Some(Duration::ZERO));
    assert_eq!(policy("never"), Policy::NEVER);
}

#[test]
fn the_older_spellings_mean_the_same() {
    let pairs = [
        ("UnlimitedExponentialRetryPolicy(1,60,2)", "exponential(1s..60s x2)"),
        ("LimitedExponentialRetryPolicy(1,60,2,120)", "exponential(1s..60s x2, 120)"),
        ("FixedDelayRetryPolicy(5000x3, 15000x5)", "list(5s x3, 15s x5)"),
        (
            "FixedDelayRetryPolicy(5000x3, 15000x5, 60000x10, 120000x15)",
            "list(5s x3, 15s x5, 1m x10, 2m x15)",
        ),
    ];
    for (older, ours) in pairs {
        assert_eq!(policy(older), policy(ours), "{older}");
    }
}

#[test]
fn a_mistake_is_pointed_at_and_explained() {
    let mistakes = [
        ("exponential(1s.. x2)", 16..16, "longest delay"),
        ("exponential(1s..60s)", 19..20, "`x`"),
        ("exponential(60s..1s x2)", 17..20, "shorter than the first"),
        ("exponential(0s..1s x2)", 12..14, "zero"),
        ("exponential(1s..60s x0.5)", 21..24, "factor"),
        ("exponential(1s..60s x2, 0)", 24..25, "at least 1"),
        ("exponentail(1s..60s x2)", 0..11, "not a policy"),
        ("list()", 5..6, "duration"),
        ("list(5s x)", 9..10, "count"),
        ("list(5s x3", 10..10, "`)`"),
        ("list(5s x3) for", 15..15, "duration"),
        ("list(5s) for 1h for 2h", 16..19, "twice"),
        ("list(5s) jitter 0%", 16..17, "between"),
        ("list(5s) jitter 10", 18..18, "`%`"),
        ("list(5s) whenever", 9..17, "`for`"),
        ("never for 1h", 6..9, "no delays"),
        ("", 0..0, "policy"),
    ];
    for (text, span, fragment) in mistakes {
        let error = text.parse::<Policy>().expect_err(text);
        assert_eq!(error.span, span, "{text}: {error}");
        assert!(error.message.contains(fragment), "{text}: {error}");
    }
    assert!("exponentail(1s..60s x2)".parse::<Policy>().unwrap_err().help.unwrap().contains("`exponential`"));
}

#[test]
fn a_wait_that_was_asked_for_replaces_the_delay_but_not_the_end() {
    let policy = policy("list(1s x2) for 1m");
    let next = |retry, elapsed, asked: Option<u64>| {
        let retry = NonZeroU32::new(retry).unwrap();
        policy.next(retry, Duration::from_secs(elapsed), asked.map(Duration::from_secs), Seed::fixed(1))
    };
    assert_eq!(next(1, 0, None), Next::After(Duration::from_secs(1)));
    assert_eq!(next(2, 1, Some(30)), Next::After(Duration::from_secs(30)));
    assert_eq!(next(2, 1, Some(60)), Next::Expired);
    assert_eq!(next(2, 60, None), Next::Expired);
    assert_eq!(next(3, 2, Some(1)), Next::UsedUp);
}

#[test]
fn jitter_is_the_same_for_the_same_record_and_different_for_others() {
    let policy = policy("list(100s x1000) jitter 10%");
    let wait = |retry, seed| match policy.next(
        NonZeroU32::new(retry).unwrap(),
        Duration::ZERO,
        None,
        Seed::fixed(seed),
    ) {
        Next::After(wait) => wait.as_millis(),
        other => panic!("{other:?}"),
    };
    let waits: Vec<_> = (1..=1_000).map(|retry| wait(retry, 7)).collect();
    assert!(waits.iter().all(|ms| (90_000..=110_000).contains(ms)));
    assert!(waits.iter().min() < Some(&91_000) && waits.iter().max() > Some(&109_000));
    assert_eq!(wait(1, 7), waits[0]);
    assert_ne!(wait(1, 8), waits[0]);
}

#[test]
fn the_end_by_time_includes_its_last_moment() {
    let policy = policy("list(30s x2) for 1m");
    let next = |retry, elapsed| {
        policy.next(NonZeroU32::new(retry).unwrap(), Duration::from_millis(elapsed), None, Seed::fixed(1))
    };
    assert_eq!(next(2, 30_000), Next::After(Duration::from_secs(30)));
    assert_eq!(next(2, 30_001), Next::Expired);
    assert_eq!(policy.runs().iter().filter_map(Run::total).sum::<Duration>(), Duration::from_secs(60));
}

#[test]
fn what_never_fits_into_the_time_is_not_counted() {
    assert_eq!(policy("list(10s) for 5s").total(), Some(Duration::ZERO));
    assert_eq!(policy("list(10s) for 5s").max_delay(), Duration::ZERO);
    assert_eq!(policy("list(5s x3) for 12s").total(), Some(Duration::from_secs(10)));
    assert_eq!(policy("list(1m x9) for 90s jitter 50%").max_delay(), Duration::from_secs(90));
    assert_eq!(policy("list(10s, 3s x2, 10s) for 5s").distinct_delays().count(), 2);
}

#[test]
fn the_limits_of_the_grammar_are_where_it_says() {
    for text in ["list(3650d)", "list(1s) jitter 100%", "exponential(1s..2s x1000)", "exponential(1s..2s x1)"]
    {
        policy(text);
    }
    for text in
        ["list(3651d)", "list(1s) jitter 101%", "exponential(1s..2s x1000.001)", "exponential(1s..2s x0.999)"]
    {
        assert!(text.parse::<Policy>().is_err(), "{text}");
    }
    let help = "list(1.5s)".parse::<Policy>().unwrap_err().help.unwrap();
    assert!(help.contains("1500ms"), "{help}");
    let rounded = policy("exponential(3ms..1s x1.5)").delay(NonZeroU32::new(2).unwrap());
    assert_eq!(rounded, Some(Duration::from_millis(5)), "4.5 ms are 5");
}

#[test]
fn jitter_depends_on_every_part_of_the_origin() {
    let seeds = ["a/0/0", "b/0/0", "a/1/0", "a/0/1"]
        .map(|origin| Seed::of(&origin.parse().unwrap()).unit(1).to_bits());
    let distinct: std::collections::BTreeSet<_> = seeds.into_iter().collect();
    assert_eq!(distinct.len(), 4);
}

fn duration_ms() -> impl Strategy<Value = Duration> {
    (1_u64..1_000_000_000).prop_map(Duration::from_millis)
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let count = || (1_u32..200).prop_map(|n| NonZeroU32::new(n).unwrap());
    let step = (duration_ms(), count()).prop_map(|(delay, times)| Step { delay, times });
    let exponential = (duration_ms(), duration_ms(), 1_000_u32..10_000, proptest::option::of(count()));
    prop_oneof![
        proptest::collection::vec(step, 1..6).prop_map(Shape::List),
        exponential.prop_map(|(a, b, factor, count)| Shape::Exponential {
            first: a.min(b),
            max: a.max(b),
            factor: Factor::from_thousandths(factor).unwrap(),
            count,
        }),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let jitter = proptest::option::of((1_u8..=100).prop_map(|p| NonZeroU8::new(p).unwrap()));
    let policy = (any_shape(), proptest::option::of(duration_ms()), jitter)
        .prop_map(|(shape, within, jitter)| Policy { shape, within, jitter });
    prop_oneof![1 => Just(Policy::NEVER), 9 => policy]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(policy in any_policy()) {
        prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_in_it(text in ".{0,60}") {
        if let Err(error) = text.parse::<Policy>() {
            prop_assert!(text.get(error.span).is_some());
        }
    }

    #[test]
    fn nearly_right_text_is_read_or_refused_at_a_place_in_it(text in "(exponential|list|never)[(]?[0-9a-z. x,]{0,20}[)]?( for| jitter)?[ 0-9%hé]{0,6}") {
        if let Err(error) = text.parse::<Policy>() {
            prop_assert!(text.get(error.span).is_some());
        }
    }

    #[test]
    fn the_runs_are_the_delays_one_by_one(policy in any_policy()) {
        let mut elapsed = Duration::ZERO;
        let mut expected = Vec::new();
        for retry in (1..=1_500).map(|n| NonZeroU32::new(n).unwrap()) {
            let Some(delay) = policy.delay(retry) else { break };
            elapsed += delay;
            if policy.within().is_some_and(|within| elapsed > within) { break }
            expected.push(delay);
        }
        let unfolded: Vec<_> = policy.runs().into_iter()
            .flat_map(|run| std::iter::repeat_n(run.delay, run.times.unwrap_or(1_500) as usize))
            .take(expected.len().max(1_500)).collect();
        prop_assert_eq!(unfolded.iter().take(1_500).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn no_wait_is_longer_than_the_longest_and_none_ends_after_the_total(policy in any_policy(), seed: u64) {
        let mut elapsed = Duration::ZERO;
        for retry in (1..=300).map(|n| NonZeroU32::new(n).unwrap()) {
            let Next::After(wait) = policy.next(retry, elapsed, None, Seed::fixed(seed)) else { break };
            elapsed += wait;
            let rounding = Duration::from_millis(u64::from(retry.get()));
            prop_assert!(wait <= policy.max_delay() + Duration::from_millis(1));
            prop_assert!(policy.total().is_none_or(|total| elapsed <= total + rounding));
        }
    }
}
