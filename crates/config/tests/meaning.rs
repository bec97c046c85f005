//! What a valid file means, and that the reference and the schema say the same.

use std::time::Duration;

use redrive_config::{Brokers, Config, Handler, Surroundings, json_schema, read, reference};
use redrive_core::Class;
use redrive_core::lanes::Followers;
use redrive_core::route::{Exhausted, Strategy};
use redrive_core::settings::{Delivery, OrderBy, Start, SurgeGuard};

const EXAMPLE: &str = include_str!("example.toml");

fn accepted(text: &str) -> Config {
    let variables = |name: &str| (name == "KAFKA_PASSWORD").then(|| "secret".to_owned());
    match read("redrive.toml", text, Surroundings { variables: &variables, property: &|_, _| Ok(()) }) {
        Ok(config) => config,
        Err(report) => panic!("{report}"),
    }
}

#[test]
fn the_example_means_what_it_says() {
    let config = accepted(EXAMPLE);
    assert!(config.warnings.problems().is_empty(), "{}", config.warnings);
    assert_eq!(config.kafka.brokers, Brokers::At("localhost:9092".to_owned()));
    let password = &config.kafka.properties[0];
    assert_eq!((password.name.as_str(), password.value.as_str()), ("sasl.password", "secret"));
    let [subscription] = &config.subscriptions[..] else { panic!("{config:#?}") };
    assert_eq!(subscription.topic.as_str(), "pre-order");
    assert_eq!(subscription.shelf.as_str(), "pre-order.payments.shelf");
    assert_eq!(subscription.letters.as_str(), "pre-order.payments.dlq");
    let Some(Handler::Http(http)) = &subscription.handler else { panic!("{:?}", subscription.handler) };
    assert_eq!(http.url.to_string(), "http://localhost:9001/payments");
    assert_eq!(subscription.followers, Followers::Bury);
    assert_eq!(subscription.rules.exhausted[Class::Transient], Exhausted::Shelve);
    assert_eq!(subscription.rules.exhausted[Class::NotReady], Exhausted::Bury);
    assert_eq!(subscription.rules.policies[Class::Outage].to_string(), "exponential(1s..1m x2)");
    assert_eq!(subscription.rules.classifier.own.len(), 1);
    assert_eq!(subscription.rules.classifier.global.len(), 1);
    assert!(subscription.auto_create);
    assert_eq!(
        (subscription.timeout, subscription.retry_timeout),
        (Duration::from_millis(900), Duration::from_millis(1900))
    );
}

#[test]
fn what_is_not_said_has_the_documented_default() {
    let config =
        accepted("[kafka]\nbrokers = \"embedded\"\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\n");
    assert_eq!(config.kafka.brokers, Brokers::Embedded);
    let subscription = &config.subscriptions[0];
    assert_eq!(subscription.rules.classifier.default, Class::Transient);
    assert_eq!(subscription.rules.policies[Class::Transient].to_string(), "list(100ms x2, 1s)");
    assert_eq!(subscription.rules.policies[Class::Outage].to_string(), "exponential(1s..1m x2)");
    assert_eq!(
        subscription.rules.policies[Class::NotReady].to_string(),
        "list(5s x3, 15s x5, 1m x10) for 1h"
    );
    assert_eq!(subscription.rules.strategy, Strategy::Shelf);
    assert_eq!((&subscription.order_by, subscription.followers), (&OrderBy::Key, Followers::Pass));
    assert_eq!((subscription.delivery, subscription.start), (Delivery::AtLeastOnce, Start::Earliest));
    assert_eq!(subscription.surge_guard, Some(SurgeGuard::default()));
    assert_eq!((subscription.concurrency.get(), subscription.retry_concurrency.get()), (64, 64));
    assert_eq!(subscription.publish_timeout, Duration::from_secs(10));
    assert!(!subscription.auto_create);
}

#[test]
fn a_subscription_overrides_the_defaults_class_by_class() {
    let config = accepted(
        "[kafka]\nbrokers = \"b\"\n[defaults]\nclass = \"SNBE\"\nretry.SLE = \"list(1s)\"\nretry.SBE = \"list(2s)\"\nexhausted.SLE = \"drop\"\n\
         [[subscription]]\ntopic = \"t\"\ngroup = \"g\"\nretry.transient = \"list(3s)\"\nsurge-guard = \"off\"\n\
         [[subscription]]\ntopic = \"t\"\ngroup = \"h\"\nclass = \"NRE\"\nexhausted.transient = \"bury\"\n",
    );
    let [one, two] = &config.subscriptions[..] else { panic!("{config:#?}") };
    assert_eq!(one.rules.policies[Class::Transient].to_string(), "list(3s)");
    assert_eq!(one.rules.policies[Class::Outage].to_string(), "list(2s)");
    assert_eq!(one.rules.exhausted[Class::Transient], Exhausted::Drop);
    assert_eq!((one.rules.classifier.default, one.surge_guard), (Class::NotReady, None));
    assert_eq!(two.rules.policies[Class::Transient].to_string(), "list(1s)");
    assert_eq!(two.rules.exhausted[Class::Transient], Exhausted::Bury);
    assert_eq!(two.rules.classifier.default, Class::Permanent);
}

#[test]
fn properties_may_be_numbers_switches_and_dotted_names() {
    let config = accepted(
        "[kafka]\nbrokers = \"b\"\n[kafka.properties]\nsocket.timeout.ms = 5000\n\"enable.sparse\" = true\n",
    );
    let properties: Vec<_> =
        config.kafka.properties.iter().map(|p| (p.name.as_str(), p.value.as_str())).collect();
    assert_eq!(properties, [("enable.sparse", "true"), ("socket.timeout.ms", "5000")]);
}

#[test]
fn the_return_strategy_has_the_defaults_of_its_own() {
    let config = accepted(
        "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"t\"\ngroup = \"g\"\ndelay = \"return\"\norder-by = \"none\"\n",
    );
    let policy = &config.subscriptions[0].rules.policies[Class::NotReady];
    assert_eq!(
        (policy.max_delay(), policy.total()),
        (Duration::from_secs(10), Some(Duration::from_secs(300)))
    );
}

#[test]
fn the_schema_knows_every_key_of_the_example() {
    let schema = json_schema();
    let subscription = &schema["properties"]["subscription"]["items"]["properties"];
    for key in [
        "topic",
        "group",
        "handler",
        "order-by",
        "followers",
        "exhausted",
        "start",
        "surge-guard",
        "auto-create",
    ] {
        assert!(subscription[key]["description"].is_string(), "{key}");
    }
    assert_eq!(subscription["delay"]["anyOf"][0]["enum"][1], "ladder");
    assert_eq!(schema["required"][0], "kafka");
}

/// `REDRIVE_BLESS=1 cargo test -p redrive-config` writes the page anew.
#[test]
fn the_reference_page_is_what_the_types_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("REDRIVE_BLESS").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == reference(),
        "docs/configuration.md is stale; run REDRIVE_BLESS=1 cargo test -p redrive-config"
    );
}

#[test]
fn spans_go_to_the_usual_path_of_a_collector_unless_another_is_named() {
    let traces = |keys: &str| {
        let text = format!("kafka.brokers = \"b\"\n[traces]\n{keys}\n");
        accepted(&text).traces.unwrap()
    };
    let plain = traces("endpoint = \"http://localhost:4318\"");
    assert_eq!(
        (plain.endpoint.url.to_string().as_str(), plain.sample),
        ("http://localhost:4318/v1/traces", 1.0)
    );
    let other = traces(
        "endpoint = \"https://o.example/otlp/v1/traces\"\nsample = 0.25\nheaders.Authorization = \"Bearer t\"",
    );
    assert_eq!((other.endpoint.url.path.as_str(), other.sample), ("/otlp/v1/traces", 0.25));
    assert_eq!(other.endpoint.headers[0].value, "Bearer t");
    assert!(!format!("{other:?}").contains("Bearer t"));
    assert!(accepted("kafka.brokers = \"b\"").traces.is_none());
}

#[test]
fn what_the_defaults_hide_is_hidden_by_every_subscription() {
    let text = "kafka.brokers = \"b\"\n[defaults]\nmask.json = [\"/card\"]\nnotify.url = \"http://n/\"\n\
                [[subscription]]\ntopic = \"t\"\ngroup = \"g\"\nmask = { headers = [\"x\"], patterns = [\"[0-9]+\"] }\n\
                [[subscription]]\ntopic = \"t\"\ngroup = \"h\"\nnotify.url = \"http://o/\"\n";
    let config = accepted(text);
    let [one, other] = &config.subscriptions[..] else { panic!("{config:#?}") };
    assert_eq!((one.mask.json.len(), one.mask.headers.len(), one.mask.patterns.len()), (1, 1, 1));
    assert_eq!((other.mask.json.len(), other.mask.headers.len(), other.mask.patterns.len()), (1, 0, 0));
    let told = |subscription: &redrive_config::Subscription| {
        subscription.notify.as_ref().map(|notify| notify.endpoint.url.to_string())
    };
    assert_eq!((told(one).as_deref(), told(other).as_deref()), (Some("http://n/"), Some("http://o/")));
}
