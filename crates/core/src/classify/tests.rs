use super::*;
use proptest::prelude::*;

fn rule(conditions: &[Condition], class: Class) -> Rule {
    Rule::new(conditions.to_vec(), class).unwrap()
}

fn of_type(name: &str, class: Class) -> Rule {
    rule(&[Condition::Type(name.to_owned())], class)
}

fn chain(types: &[&str]) -> Failure {
    let mut causes = types.iter().map(|name| Cause::new(*name, format!("{name} happened")));
    let outermost = Failure::new(causes.next().unwrap());
    causes.fold(outermost, Failure::caused_by)
}

fn classify(classifier: &Classifier, failure: &Failure) -> (Class, Because) {
    let topic = "orders".parse().unwrap();
    let headers = Headers::from_iter([("kind", Some("refund"))]);
    classifier.classify(failure, Subject { topic: &topic, headers: &headers })
}

/// C2 to C5: each line is one conflict and who wins it.
#[test]
fn conflicts_are_decided_from_the_outside_in_and_by_the_subscription_first() {
    use Class::{NotReady, Outage, Permanent, Transient};
    let classifier = Classifier {
        own: vec![of_type("Timeout", NotReady), of_type("Both", Outage)],
        global: Arc::new([of_type("Load", Permanent), of_type("Both", Permanent), of_type("Reset", Outage)]),
        default: Transient,
        resolver: None,
    };
    let table: [(&[&str], Class, Because); 7] = [
        (&["Timeout"], NotReady, Because::Own(0)),
        (&["Both"], Outage, Because::Own(1)),
        (&["Load", "Timeout"], Permanent, Because::Global(0)),
        (&["Other", "Timeout"], NotReady, Because::Own(0)),
        (&["Timeout", "Load"], NotReady, Because::Own(0)),
        (&["Other", "Reset", "Timeout"], Outage, Because::Global(2)),
        (&["Other", "Unknown"], Transient, Because::Default),
    ];
    for (types, class, because) in table {
        assert_eq!(classify(&classifier, &chain(types)), (class, because), "{types:?}");
    }
}

#[test]
fn a_wrapper_hides_what_is_inside_but_not_what_is_outside() {
    let classifier = Classifier {
        own: vec![of_type("Null", Class::Permanent), of_type("Outer", Class::Outage)],
        ..Classifier::always(Class::Transient)
    };
    let wrapper = Cause { class: Some(Class::NotReady), ..Cause::new("Wrapper", "masked") };
    let masked = Failure::new(wrapper.clone()).caused_by(Cause::new("Null", "not found"));
    assert_eq!(classify(&classifier, &masked), (Class::NotReady, Because::Stated));
    let outside = chain(&["Outer"]).caused_by(wrapper);
    assert_eq!(classify(&classifier, &outside), (Class::Outage, Because::Own(1)));
    assert_eq!(
        classify(&classifier, &chain(&["Null"]).classed(Class::Outage)),
        (Class::Outage, Because::Stated)
    );
}

#[test]
fn a_resolver_is_asked_first_and_may_leave_it_to_the_rules() {
    let resolver = |subject: Subject<'_>, failure: &Failure| {
        let refund = subject.headers.text("kind") == Some("refund");
        (refund && failure.outermost().message.contains("Null")).then_some(Class::NotReady)
    };
    let classifier = Classifier {
        own: vec![of_type("Null", Class::Permanent), of_type("Timeout", Class::Outage)],
        resolver: Some(Arc::new(resolver)),
        ..Classifier::always(Class::Transient)
    };
    assert_eq!(classify(&classifier, &chain(&["Null"])), (Class::NotReady, Because::Resolver));
    assert_eq!(classify(&classifier, &chain(&["Timeout"])), (Class::Outage, Because::Own(1)));
}

#[test]
fn every_condition_holds_for_what_it_names_and_for_nothing_else() {
    let cause = Cause {
        status: Some(404),
        code: Some("57014".to_owned()),
        ..Cause::new("java.net.SocketTimeoutException", "canceling statement due to statement timeout")
    };
    let header = |name: &str, value: Option<&str>| Condition::Header {
        name: name.into(),
        value: value.map(Into::into),
    };
    let table = [
        (Condition::Type("java.net.SocketTimeoutException".into()), true),
        (Condition::Type("SocketTimeoutException".into()), false),
        (Condition::TypeSuffix("TimeoutException".into()), true),
        (Condition::TypeSuffix("Timeout".into()), false),
        (Condition::Message("due to statement timeout".into()), true),
        (Condition::Message("user request".into()), false),
        (Condition::Pattern("^canceling .* timeout$".parse().unwrap()), true),
        (Condition::Pattern("^timeout".parse().unwrap()), false),
        (Condition::Status("404".parse().unwrap()), true),
        (Condition::Status("4xx".parse().unwrap()), true),
        (Condition::Status("500-599".parse().unwrap()), false),
        (Condition::Code("57014".into()), true),
        (Condition::Code("57".into()), false),
        (Condition::Topic("orders".parse().unwrap()), true),
        (Condition::Topic("payments".parse().unwrap()), false),
        (header("kind", None), true),
        (header("kind", Some("refund")), true),
        (header("kind", Some("order")), false),
        (header("Kind", None), false),
    ];
    for (condition, expected) in table {
        let classifier = Classifier {
            own: vec![rule(std::slice::from_ref(&condition), Class::Outage)],
            ..Classifier::always(Class::Transient)
        };
        let (class, _) = classify(&classifier, &Failure::new(cause.clone()));
        assert_eq!(class == Class::Outage, expected, "{condition}");
    }
}

#[test]
fn a_rule_that_can_never_match_is_found() {
    let suffix = Condition::TypeSuffix("Exception".into());
    let exact = Condition::Type("TimeoutException".into());
    let status = |text: &str| Condition::Status(text.parse().unwrap());
    let both = rule(&[exact.clone(), status("404")], Class::Outage);
    assert!(rule(std::slice::from_ref(&suffix), Class::Permanent).covers(&both));
    assert!(!both.covers(&rule(std::slice::from_ref(&suffix), Class::Permanent)));
    assert!(rule(&[status("4xx")], Class::Permanent).covers(&rule(&[status("404")], Class::Outage)));
    assert!(matches!(
        Rule::new(vec![exact, Condition::TypeSuffix("Error".into())], Class::Outage),
        Err(BadRule::Contradiction(..))
    ));
    assert!(matches!(
        Rule::new(vec![status("404"), status("5xx")], Class::Outage),
        Err(BadRule::Contradiction(..))
    ));
    assert_eq!(Rule::new(vec![], Class::Outage), Err(BadRule::Empty));
    assert!(
        !rule(&[Condition::Topic("a".parse().unwrap())], Class::Outage).allows_topic(&"b".parse().unwrap())
    );
}

#[test]
fn any_header_of_the_name_may_have_the_value() {
    let condition = Condition::Header { name: "kind".into(), value: Some("refund".into()) };
    let topic = "orders".parse().unwrap();
    let headers = Headers::from_iter([("kind", Some("refund")), ("kind", Some("order"))]);
    assert!(condition.holds(&Cause::default(), Subject { topic: &topic, headers: &headers }));
}

#[test]
fn two_codes_exclude_each_other() {
    let codes = ["1", "2"].map(|code| Condition::Code(code.into())).to_vec();
    assert!(matches!(Rule::new(codes, Class::Outage), Err(BadRule::Contradiction(..))));
}

#[test]
fn within_its_own_topic_a_rule_need_not_name_it() {
    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    let status = Condition::Status("404".parse().unwrap());
    let named = rule(&[Condition::Topic("a".parse().unwrap()), status.clone()], Class::Outage);
    let plain = rule(std::slice::from_ref(&status), Class::Permanent);
    assert!(named.covers_in(&a, &plain));
    assert!(!named.covers_in(&b, &plain) && !named.covers(&plain));
}

#[test]
fn a_status_that_makes_no_sense_is_refused() {
    for text in ["", "0", "600", "99", "abc", "599-500", "4xxx", "4x", "404-", "-404", "65536"] {
        assert!(text.parse::<Statuses>().is_err(), "{text}");
    }
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let word = "[ab]{1,3}";
    let range = (100_u16..110, 100_u16..110);
    prop_oneof![
        word.prop_map(Condition::Type),
        word.prop_map(Condition::TypeSuffix),
        word.prop_map(Condition::Message),
        "[ab]{1,2}".prop_map(|text| Condition::Pattern(text.parse().unwrap())),
        range.prop_map(|(a, b)| Condition::Status(format!("{}-{}", a.min(b), a.max(b)).parse().unwrap())),
        "[ab]".prop_map(Condition::Code),
        "[ab]".prop_map(|topic| Condition::Topic(topic.parse().unwrap())),
        ("[ab]", proptest::option::of("[ab]")).prop_map(|(name, value)| Condition::Header { name, value }),
    ]
}

fn any_cause() -> impl Strategy<Value = Cause> {
    let parts = ("[ab]{1,3}", "[ab]{0,5}", proptest::option::of(100_u16..110), proptest::option::of("[ab]"));
    parts.prop_map(|(type_name, message, status, code)| Cause {
        type_name,
        message,
        status,
        code,
        class: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn what_is_said_never_to_match_never_matches(
        one in proptest::collection::vec(any_condition(), 1..3),
        other in proptest::collection::vec(any_condition(), 1..4),
        cause in any_cause(),
        topic in "[ab]",
        header in ("[ab]", "[ab]"),
    ) {
        let topic = topic.parse().unwrap();
        let headers = Headers::from_iter([(header.0, Some(header.1))]);
        let subject = Subject { topic: &topic, headers: &headers };
        let holds = |conditions: &[Condition]| conditions.iter().all(|c| c.holds(&cause, subject));
        let (Ok(earlier), Ok(later)) = (Rule::new(one, Class::Outage), Rule::new(other.clone(), Class::Permanent)) else {
            let refused = Rule::new(other.clone(), Class::Permanent).is_err();
            prop_assert!(!refused || !holds(&other));
            return Ok(());
        };
        if earlier.covers(&later) && later.matches(&cause, subject) {
            prop_assert!(earlier.matches(&cause, subject));
        }
        if !later.allows_topic(&topic) {
            prop_assert!(!later.matches(&cause, subject));
        }
    }
}
