use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use redrive_config::{Subscription, Surroundings};
use redrive_core::Topic;
use redrive_kafka::{SetFor, Setting, TopicState};

use super::{Change, Found, Mender, Note, Operation, Plan, Step, acls, plan, uses, verify};

fn topic(name: &str) -> Topic {
    name.parse().unwrap()
}

/// The subscriptions of a file: `orders` consumed by `pay`, with these lines.
fn subscriptions(lines: &str) -> Vec<Subscription> {
    let text =
        format!("[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\n{lines}\n");
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    match redrive_config::read("redrive.toml", &text, surroundings) {
        Ok(config) => config.subscriptions,
        Err(report) => panic!("{report}"),
    }
}

const LADDER: &str = "delay = \"ladder\"\norder-by = \"none\"\nretry.not-ready = \"list(5s, 1m)\"";
const RETURN: &str = "delay = \"return\"\norder-by = \"none\"";
const SERVICE: &str = "delay = \"service\"\norder-by = \"none\"";

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, Setting> {
    let setting = |value: &str| Setting { value: value.to_owned(), set_for: SetFor::Topic };
    pairs.iter().map(|(name, value)| ((*name).to_owned(), setting(value))).collect()
}

/// A topic as Kafka makes it when it is told nothing.
fn usual(name: &str, partitions: i32, replication: i16) -> TopicState {
    let settings = settings(&[
        ("cleanup.policy", "delete"),
        ("max.message.bytes", "1048588"),
        ("message.timestamp.type", "CreateTime"),
        ("min.insync.replicas", "1"),
        ("retention.bytes", "-1"),
        ("retention.ms", "604800000"),
        ("segment.bytes", "1073741824"),
    ]);
    TopicState { name: topic(name), id: None, partitions, replication, settings }
}

fn with(mut state: TopicState, changed: &[(&str, &str)]) -> TopicState {
    state.settings.extend(settings(changed));
    state
}

fn found(topics: impl IntoIterator<Item = TopicState>) -> Found {
    let topics: BTreeMap<_, _> = topics.into_iter().map(|state| (state.name.clone(), state)).collect();
    let names = topics.keys().cloned().collect();
    Found { topics, names, records: BTreeMap::new() }
}

/// What the cluster is after the steps.
fn after(mut found: Found, plan: &Plan) -> Found {
    for Step { topic, change, .. } in &plan.steps {
        match change {
            Change::Create { partitions, replication, settings: given } => {
                let mut state = usual(topic.as_str(), *partitions, *replication);
                let given: Vec<_> = given.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                state.settings.extend(settings(&given));
                found.topics.insert(topic.clone(), state);
            }
            Change::AddPartitions { to, .. } => found.topics.get_mut(topic).unwrap().partitions = *to,
            Change::Alter { setting, to, .. } => {
                let state = found.topics.get_mut(topic).unwrap();
                state.settings.extend(settings(&[(setting.as_str(), to.as_str())]));
            }
            Change::Cannot { .. } => {}
        }
    }
    found
}

/// A word for each step: what changes, and how.
fn words(plan: &Plan) -> Vec<String> {
    let word = |step: &Step| {
        let name = step.topic.as_str().trim_start_matches("orders.pay.");
        match &step.change {
            Change::Create { partitions, replication, .. } => {
                format!("create {name} {partitions}x{replication}")
            }
            Change::AddPartitions { from, to } => format!("grow {name} {from}>{to}"),
            Change::Alter { setting, from, to } => {
                format!("{name} {setting} {}>{to}", from.as_deref().unwrap_or("?"))
            }
            Change::Cannot { .. } => format!("cannot {name}"),
        }
    };
    plan.steps.iter().map(word).collect()
}

fn good_shelf() -> TopicState {
    let kept = [
        ("retention.ms", "-1"),
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "1114124"),
    ];
    with(usual("orders.pay.shelf", 3, 1), &kept)
}

fn good_letters() -> TopicState {
    with(usual("orders.pay.dlq", 3, 1), &[("retention.ms", "-1"), ("max.message.bytes", "1114124")])
}

#[test]
fn each_mismatch_has_its_step() {
    let source = || usual("orders", 3, 1);
    let safe = || with(usual("orders", 3, 3), &[("min.insync.replicas", "2")]);
    let large = || with(source(), &[("max.message.bytes", "5000000")]);
    let three = |state: TopicState| TopicState { replication: 3, ..state };
    let wider = |state: TopicState, partitions| TopicState { partitions, ..state };
    let table: Vec<(&str, Vec<TopicState>, &[&str])> = vec![
        ("all is well", vec![source(), good_letters(), good_shelf()], &[]),
        ("no source", vec![], &["cannot orders"]),
        ("nothing yet", vec![source()], &["create dlq 3x1", "create shelf 3x1"]),
        ("a safe source", vec![safe()], &["create dlq 3x3", "create shelf 3x3"]),
        (
            "the source has grown",
            vec![wider(source(), 5), good_letters(), good_shelf()],
            &["grow dlq 3>5", "grow shelf 3>5"],
        ),
        (
            "files of a shelf that do not hold the largest record",
            vec![source(), good_letters(), with(good_shelf(), &[("segment.bytes", "1048576")])],
            &["shelf segment.bytes 1048576>8388608"],
        ),
        ("more than the source", vec![wider(source(), 2), good_letters(), good_shelf()], &[]),
        (
            "larger records",
            vec![large(), good_letters(), good_shelf()],
            &["dlq max.message.bytes 1114124>5065536", "shelf max.message.bytes 1114124>5065536"],
        ),
        (
            "larger than need be",
            vec![source(), with(good_letters(), &[("max.message.bytes", "9999999")]), good_shelf()],
            &[],
        ),
        (
            "a shelf that forgets",
            vec![
                source(),
                good_letters(),
                with(good_shelf(), &[("retention.ms", "1000"), ("retention.bytes", "9")]),
            ],
            &["shelf retention.ms 1000>-1", "shelf retention.bytes 9>-1"],
        ),
        (
            "a shelf that is compacted, by the producer's clock",
            vec![
                source(),
                good_letters(),
                with(
                    good_shelf(),
                    &[("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime")],
                ),
            ],
            &["shelf cleanup.policy compact>delete", "shelf message.timestamp.type CreateTime>LogAppendTime"],
        ),
        (
            "letters that are deleted or compacted are the operator's choice",
            vec![
                source(),
                with(good_letters(), &[("retention.ms", "1000"), ("cleanup.policy", "compact")]),
                good_shelf(),
            ],
            &[],
        ),
        (
            "fewer replicas: what cannot be mended is told, and nothing is made unwritable",
            vec![safe(), good_letters(), three(good_shelf())],
            &["cannot dlq", "shelf min.insync.replicas 1>2"],
        ),
    ];
    let subscriptions = subscriptions("");
    for (case, topics, steps) in table {
        assert_eq!(words(&plan(&subscriptions, &found(topics))), steps, "{case}");
    }
}

#[test]
fn each_strategy_has_its_topics() {
    let names = |lines: &str| {
        let uses = uses(&subscriptions(lines)[0]);
        uses.iter().map(|used| used.topic.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["orders.pay.dlq", "orders.pay.shelf"]);
    assert_eq!(names(LADDER), ["orders.pay.dlq", "orders.pay.retry-5s", "orders.pay.retry-1m"]);
    assert_eq!(names(RETURN), ["orders.pay.dlq", "orders.pay.retry"]);
    assert_eq!(names("delay = \"postgres\""), ["orders.pay.dlq"]);
    assert!(names(SERVICE).contains(&"orders.pay.return".to_owned()));
}

#[test]
fn what_is_cut_off_a_new_shelf_leaves_the_disk_soon() {
    let segment = |source: TopicState| {
        let plan = plan(&subscriptions(""), &found([source]));
        let Change::Create { settings, .. } = &plan.steps[1].change else { panic!("{plan:?}") };
        settings["segment.bytes"].clone()
    };
    assert_eq!(segment(usual("orders", 1, 1)), "8388608");
    // It has to hold the largest record.
    assert_eq!(segment(with(usual("orders", 1, 1), &[("max.message.bytes", "50000000")])), "50065536");
    // A cluster that does not tell of files is not asked to change them.
    let mut shelf = good_shelf();
    shelf.settings.remove("segment.bytes");
    let plan = plan(&subscriptions(""), &found([usual("orders", 3, 1), good_letters(), shelf]));
    assert_eq!(words(&plan), Vec::<String>::new());
}

#[test]
fn a_retry_topic_keeps_records_as_long_as_they_may_wait_and_a_week_of_standstill() {
    let retention = |lines: &str| {
        let plan = plan(&subscriptions(lines), &found([usual("orders", 1, 1)]));
        let Change::Create { settings, .. } = &plan.steps[1].change else { panic!("{plan:?}") };
        settings["retention.ms"].clone()
    };
    assert_eq!(retention(LADDER), (65_000 + 7 * 86_400_000_i64).to_string());
    let endless = "delay = \"return\"\norder-by = \"none\"\nretry.not-ready = \"exponential(10s..10s x1)\"";
    assert_eq!(retention(endless), "-1");
}

#[test]
fn a_shared_bucket_is_wanted_once_and_suits_the_larger() {
    let other = "[[subscription]]\ntopic = \"refunds\"\ngroup = \"pay\"\n";
    let both = subscriptions(&format!("{SERVICE}\n{other}{SERVICE}"));
    let plan = plan(&both, &found([usual("orders", 2, 1), usual("refunds", 7, 3)]));
    let buckets: Vec<_> =
        plan.steps.iter().filter(|step| step.topic.as_str().starts_with("redrive.delay.")).collect();
    let names: BTreeSet<_> = buckets.iter().map(|step| &step.topic).collect();
    assert_eq!((buckets.len(), buckets.is_empty()), (names.len(), false));
    for bucket in buckets {
        assert!(matches!(bucket.change, Change::Create { partitions: 7, replication: 3, .. }), "{bucket:?}");
    }
}

#[test]
fn finite_letters_and_unused_partitions_are_noted() {
    let letters = TopicState { partitions: 9, ..with(good_letters(), &[("retention.ms", "1000")]) };
    let plan = plan(&subscriptions(""), &found([usual("orders", 3, 1), letters, good_shelf()]));
    assert!(plan.is_done());
    let notes: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "orders.pay.dlq has 9 partitions and orders 3: those above are not used",
            "orders.pay.dlq has retention.ms=1000: dead letters are deleted unseen; retention.ms=-1 keeps them",
        ]
    );
}

#[test]
fn what_an_old_group_name_left_behind_is_found_and_nothing_else() {
    let mut found = found([usual("orders", 3, 1), good_letters(), good_shelf()]);
    let others = [
        "orders.old.dlq",
        "orders.old.team.shelf",
        "orders.pay.retry-5m",
        "orders.eu",
        "orders.eu.pay.dlq",
        "orders.pay.retry-soon",
        "orders..dlq",
        "orders.dlq",
        "payments.old.dlq",
        "orders.old.audit",
    ];
    found.names.extend(others.map(topic));
    found.records.insert(topic("orders.old.dlq"), 12);
    let left = |note: Note| match note {
        Note::LeftBehind { topic, group, group_is_known, records } => {
            (topic.to_string(), group, group_is_known, records)
        }
        other => panic!("{other}"),
    };
    let left: Vec<_> = plan(&subscriptions(""), &found).notes.into_iter().map(left).collect();
    let expected = [
        ("orders.old.dlq", "old", false, Some(12)),
        ("orders.old.team.shelf", "old.team", false, None),
        ("orders.pay.retry-5m", "pay", true, None),
    ];
    assert_eq!(left, expected.map(|(t, g, known, n)| (t.to_owned(), g.to_owned(), known, n)));
}

#[test]
fn a_mismatch_names_everything_and_its_remedy() {
    let shelf = with(good_shelf(), &[("retention.ms", "1000")]);
    let plan = plan(&subscriptions(""), &found([usual("orders", 3, 1), shelf]));
    let refused = |mender| verify(&plan, &mender).unwrap_err().to_string();
    assert_eq!(
        refused(Mender::Command { config: "prod.toml".to_owned() }),
        "the topics are not as they must be\n  \
         orders.pay.dlq does not exist: dead letters of pay go there\n  \
         orders.pay.shelf has retention.ms=1000 and must have -1: what waits is removed by its owner alone, when it is done\n\
         help: redrive topics apply -c prod.toml, or auto-create = true in the subscription"
    );
    assert!(refused(Mender::Library).contains("auto_create(true)"));
    assert_eq!(verify(&Plan::default(), &Mender::Library), Ok(()));
}

#[test]
fn each_strategy_has_its_acls_and_no_more() {
    let shown = |lines: &str| -> Vec<String> {
        let acls = acls(&subscriptions(lines)[0]);
        let one = |acl: &super::Acl| {
            let operations: Vec<_> = acl.operations.iter().map(|operation| operation.name()).collect();
            format!("{} {} {}: {}", acl.pattern.name(), acl.resource.name(), acl.name, operations.join(" "))
        };
        acls.iter().map(one).collect()
    };
    let source = "literal topic orders: Read Describe DescribeConfigs";
    let group = "literal group pay: Read";
    let letters = "literal topic orders.pay.dlq: Write Describe DescribeConfigs";
    let shelf = "literal topic orders.pay.shelf: Read Write Delete Describe DescribeConfigs";
    assert_eq!(shown(""), [source, group, letters, shelf]);
    assert_eq!(shown("delay = \"postgres\""), [source, group, letters]);
    let exactly_once = "prefixed transactional-id orders.pay.: Write Describe";
    assert_eq!(shown("delivery = \"exactly-once\""), [source, group, letters, shelf, exactly_once]);
    let automatic = " Create Alter AlterConfigs";
    let expected =
        [source.to_owned(), group.to_owned(), format!("{letters}{automatic}"), format!("{shelf}{automatic}")];
    assert_eq!(shown("auto-create = true"), expected);
    assert_eq!(shown(RETURN)[0], "literal topic orders: Read Write Describe DescribeConfigs");
    assert_eq!(shown(RETURN)[3], "literal topic orders.pay.retry: Read Write Describe DescribeConfigs");
    assert_eq!(shown(LADDER).len(), 5);
}

fn any_state(name: &'static str) -> impl Strategy<Value = TopicState> {
    let amount = || prop_oneof![Just(-1_i64), 0..3_000_000_i64];
    let cleanup = prop_oneof![Just("delete"), Just("compact"), Just("compact,delete")];
    let clock = prop_oneof![Just("CreateTime"), Just("LogAppendTime")];
    (1..12_i32, 1..4_i16, amount(), amount(), 1..5_i64, 0..3_000_000_i64, cleanup, clock).prop_map(
        move |(partitions, replication, time, size, in_sync, largest, cleanup, clock)| {
            let numbers = [time, size, in_sync, largest].map(|number| number.to_string());
            let changed = [
                ("retention.ms", numbers[0].as_str()),
                ("retention.bytes", &numbers[1]),
                ("min.insync.replicas", &numbers[2]),
                ("max.message.bytes", &numbers[3]),
                ("cleanup.policy", cleanup),
                ("message.timestamp.type", clock),
            ];
            with(usual(name, partitions, replication), &changed)
        },
    )
}

fn any_found() -> impl Strategy<Value = Found> {
    let names = [
        "orders",
        "refunds",
        "orders.pay.dlq",
        "orders.pay.shelf",
        "orders.pay.retry-5s",
        "orders.pay.retry",
        "orders.pay.return",
        "refunds.pay.return",
        "redrive.delay.1m",
        "redrive.delay.1h",
    ];
    names
        .map(|name| prop::option::weighted(0.7, any_state(name)))
        .prop_map(|states| found(states.into_iter().flatten()))
}

#[test]
fn letters_in_a_compacted_topic_are_told_of_and_are_not_shared_by_groups_of_one_source() {
    let compacted = || with(usual("orders.pay.dlq", 3, 1), &[("cleanup.policy", "compact")]);
    let shelf = usual("orders.pay.shelf", 3, 1);
    let found = found([usual("orders", 3, 1), shelf, compacted()]);
    let one = subscriptions("");
    let notes = plan(&one, &found).notes;
    assert!(
        matches!(&notes[..], [Note::LettersAreCompacted { policy, .. }] if policy == "compact"),
        "{notes:?}"
    );
    let mut two = one.clone();
    two.extend(one.iter().cloned().map(|one| Subscription { group: "audit".to_owned(), ..one }));
    let refused = plan(&two, &found).steps;
    let why = "would remove each other";
    assert!(refused.iter().any(|step| !step.is_doable() && step.why.contains(why)), "{refused:?}");
}

proptest! {
    #[test]
    fn after_its_steps_a_plan_has_none_that_can_be_taken(found in any_found(), which in 0..5_usize) {
        let other = format!("{SERVICE}\n[[subscription]]\ntopic = \"refunds\"\ngroup = \"pay\"\n{SERVICE}");
        let subscriptions = subscriptions(["", LADDER, RETURN, SERVICE, &other][which]);
        let first = plan(&subscriptions, &found);
        let then = after(found, &first);
        let second = plan(&subscriptions, &then);
        prop_assert!(second.doable().next().is_none(), "{:?}", words(&second));
        let cannot = |plan: &Plan| plan.steps.iter().filter(|step| !step.is_doable()).count();
        prop_assert_eq!(cannot(&first), cannot(&second));
        prop_assert_eq!(verify(&second, &Mender::Library).is_ok(), cannot(&second) == 0);
    }

    #[test]
    fn no_step_takes_anything_away(found in any_found()) {
        for step in plan(&subscriptions(""), &found).steps {
            let number = |text: &str| text.parse::<i64>().ok().map(|n| if n < 0 { i64::MAX } else { n });
            match step.change {
                Change::AddPartitions { from, to } => prop_assert!(to > from),
                Change::Alter { from: Some(from), to, .. } => {
                    prop_assert!(number(&from).is_none() || number(&to) > number(&from), "{from} to {to}");
                }
                Change::Create { .. } | Change::Alter { .. } | Change::Cannot { .. } => {}
            }
        }
    }
}

#[test]
fn whoever_delivers_what_is_sent_at_a_time_may_delete_it_from_there() {
    let deliverer = crate::send::subscription(crate::Clock::system()).settled.unwrap();
    let acl = acls(&deliverer).remove(0);
    assert_eq!(acl.name, crate::send::TOPIC);
    assert!(acl.operations.contains(&Operation::Delete), "{acl:?}");
    assert!(!acls(&subscriptions("")[0])[0].operations.contains(&Operation::Delete), "a source is another's");
}
