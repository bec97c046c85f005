//! On real Kafka with an authorizer: whoever has exactly the ACLs that are printed can do what a worker
//! does, and no more. The commands are run as they are printed.

#[allow(dead_code, reason = "only some of it is needed here")]
#[path = "run/endpoint.rs"]
mod endpoint;
#[allow(dead_code, reason = "only some of it is needed here")]
#[path = "run/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use redrive::topics::{Mender, ensure};
use redrive_config::{Subscription, Surroundings};
use redrive_core::headers::Headers;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Outgoing, Publisher, Publishing, Reader, Refused, Settings};
use redrive_testkit::{is_required, kafka, new_name};

const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster with an authorizer: who may do all, and who may do nothing yet.
struct Guarded {
    all: Settings,
    guest: Settings,
    internal: String,
    tools: String,
}

fn guarded() -> Option<Guarded> {
    let cluster = kafka()?;
    let offered = |name: &str| env::var(format!("REDRIVE_KAFKA_{name}")).ok();
    let (Some(user), Some(password), Some(internal), Some(tools)) =
        (offered("GUEST_USER"), offered("GUEST_PASSWORD"), offered("INTERNAL"), offered("TOOLS"))
    else {
        assert!(!is_required("sasl"), "sasl is required, and the cluster asks nobody who they are");
        eprintln!("SKIPPED: the cluster asks nobody who they are; start one: tools/kafka up --sasl");
        return None;
    };
    let all = Settings { brokers: cluster.brokers, properties: cluster.properties };
    let mut guest = all.clone();
    for (name, value) in &mut guest.properties {
        match name.as_str() {
            "sasl.username" => value.clone_from(&user),
            "sasl.password" => value.clone_from(&password),
            _ => {}
        }
    }
    Some(Guarded { all, guest, internal, tools })
}

fn configuration(source: &Topic, group: &str, lines: &str) -> String {
    format!(
        "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"{source}\"\ngroup = \"{group}\"\n{lines}\n"
    )
}

fn subscriptions(text: &str) -> Vec<Subscription> {
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    redrive_config::read("redrive.toml", text, surroundings).unwrap_or_else(|r| panic!("{r}")).subscriptions
}

/// Prints the commands for the guest and runs them.
async fn allow(guarded: &Guarded, configuration: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redrive.toml");
    fs::write(&file, configuration).unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(["acls", "--principal", "User:guest", "-o", "commands", "--brokers", &guarded.internal, "-c"])
        .arg(Path::new(&file))
        .output()
        .unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let path = format!("{}:{}", guarded.tools, env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &String::from_utf8(printed.stdout).unwrap()]).env("PATH", path);
    let ran = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn client(settings: &Settings) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.brokers).set("message.timeout.ms", "10000");
    for (name, value) in &settings.properties {
        config.set(name, value);
    }
    config
}

fn record(topic: &Topic) -> Outgoing {
    Outgoing {
        topic: topic.clone(),
        partition: Some(0),
        timestamp: None,
        key: None,
        value: Some("value".into()),
        headers: Headers::default(),
    }
}

/// Joins the group, reads a record of the source, and writes to both topics and commits, as a transaction.
fn consume_exactly_once(guest: &Settings, subscription: &Subscription) -> Result<(), KafkaError> {
    let mut config = client(guest);
    config.set("group.id", &subscription.group).set("auto.offset.reset", "earliest");
    config.set("enable.auto.commit", "false").set("allow.auto.create.topics", "false");
    let consumer: BaseConsumer = config.create()?;
    consumer.subscribe(&[subscription.topic.as_str()])?;
    // A poll may be taken up by news of the group.
    let mut polls = (0..PATIENCE.as_secs()).map(|_| consumer.poll(Duration::from_secs(1)));
    polls.find_map(|polled| polled).expect("a record in time")?;
    consumer.commit_consumer_state(CommitMode::Sync)?;

    let id = format!("{}7f3a", redrive::topics::transactional_prefix(subscription));
    let producer: BaseProducer = client(guest).set("transactional.id", id).create()?;
    producer.init_transactions(PATIENCE)?;
    producer.begin_transaction()?;
    for topic in [&subscription.letters, &subscription.shelf] {
        let sent = producer.send(BaseRecord::<(), _>::to(topic.as_str()).payload("value"));
        sent.map_err(|(error, _)| error)?;
    }
    producer.flush(PATIENCE)?;
    let group = consumer.group_metadata().expect("a member");
    producer.send_offsets_to_transaction(&consumer.position()?, &group, PATIENCE)?;
    producer.commit_transaction(PATIENCE)
}

fn is_denied<T: std::fmt::Debug>(result: Result<T, redrive_kafka::Error>) {
    let error = result.unwrap_err();
    assert!(error.refusal().is_some_and(Refused::is_denied), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_acls_are_enough_for_a_worker_and_no_more() {
    let Some(guarded) = guarded() else { return };
    let (all, guest) = (Admin::new(&guarded.all).unwrap(), Admin::new(&guarded.guest).unwrap());
    let source: Topic = new_name("guarded").parse().unwrap();
    all.create(&source, 1, 1, &BTreeMap::new()).await.unwrap();
    let configuration = configuration(&source, &new_name("group"), "delivery = \"exactly-once\"");
    let subscriptions = subscriptions(&configuration);
    let automatic = Subscription { auto_create: true, ..subscriptions[0].clone() };
    ensure(&all, &[automatic], &Mender::Library).await.unwrap();
    Publisher::new(&guarded.all, &Publishing::default()).unwrap().publish(record(&source)).await.unwrap();
    is_denied(guest.describe(std::slice::from_ref(&source)).await);

    allow(&guarded, &configuration).await;
    ensure(&guest, &subscriptions, &Mender::Library).await.unwrap();
    let subscription = subscriptions[0].clone();
    let settings = guarded.guest.clone();
    let consumed = tokio::task::spawn_blocking(move || consume_exactly_once(&settings, &subscription));
    consumed.await.unwrap().unwrap();
    let publisher = Publisher::new(&guarded.guest, &Publishing::default()).unwrap();
    let (letters, shelf) = (&subscriptions[0].letters, &subscriptions[0].shelf);
    publisher.publish(record(letters)).await.unwrap();
    let shelved = publisher.publish(record(shelf)).await.unwrap();
    let reader = Reader::from(&guarded.guest, shelved.clone()).unwrap();
    tokio::time::timeout(PATIENCE, reader.next()).await.expect("a record in time").unwrap();
    guest.delete_records(&shelved).await.unwrap();

    let settings = BTreeMap::from([("retention.ms".to_owned(), "1".to_owned())]);
    is_denied(guest.alter(shelf, &settings).await);
    is_denied(guest.add_partitions(letters, 9).await);
    is_denied(guest.create(&"somewhere.else".parse().unwrap(), 1, 1, &BTreeMap::new()).await);
    is_denied(guest.delete_records(&Origin { topic: letters.clone(), partition: 0, offset: 1 }).await);
    is_denied(guest.delete_records(&Origin { topic: source.clone(), partition: 0, offset: 1 }).await);
    assert!(publisher.publish(record(&source)).await.is_err());
}

#[tokio::test]
async fn the_printed_acls_of_auto_create_are_enough_to_make_and_mend() {
    let Some(guarded) = guarded() else { return };
    let (all, guest) = (Admin::new(&guarded.all).unwrap(), Admin::new(&guarded.guest).unwrap());
    let source: Topic = new_name("guarded").parse().unwrap();
    all.create(&source, 1, 1, &BTreeMap::new()).await.unwrap();
    let configuration = configuration(&source, &new_name("group"), "auto-create = true");
    let subscriptions = subscriptions(&configuration);
    allow(&guarded, &configuration).await;
    ensure(&guest, &subscriptions, &Mender::Library).await.unwrap();
    let shelf = &subscriptions[0].shelf;
    all.alter(shelf, &BTreeMap::from([("retention.ms".to_owned(), "1000".to_owned())])).await.unwrap();
    all.add_partitions(&source, 3).await.unwrap();
    // Brokers learn of both one after the other.
    let mended = async {
        loop {
            ensure(&guest, &subscriptions, &Mender::Library).await.unwrap();
            let found = all.describe(std::slice::from_ref(shelf)).await.unwrap();
            if (found[shelf].partitions, found[shelf].settings["retention.ms"].value.as_str()) == (3, "-1") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, mended).await.expect("the shelf is mended in time");
}

/// The same for a process: a configuration with the guest's name, or with that of who may do all.
fn running(settings: &Settings, source: &Topic, group: &str, url: &str) -> String {
    let properties: Vec<_> =
        settings.properties.iter().map(|(name, value)| format!("\"{name}\" = \"{value}\"")).collect();
    format!(
        "[kafka]\nbrokers = \"{}\"\nproperties = {{ {} }}\n[server]\nlisten = \"127.0.0.1:0\"\n[[subscription]]\n\
         topic = \"{source}\"\ngroup = \"{group}\"\nhandler.http.url = \"{url}\"\nretry.not-ready = \"list(1s x3)\"\n",
        settings.brokers,
        properties.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_the_printed_acls_runs_and_heeds_pauses() {
    let Some(guarded) = guarded() else { return };
    let endpoint = endpoint::Endpoint::new(|asked| match (asked.body.as_str(), asked.attempt) {
        ("bad", _) => 422,
        ("late", 1) => 425,
        _ => 200,
    });
    let (source, group): (Topic, _) = (new_name("guarded").parse().unwrap(), new_name("group"));
    let admin = Admin::new(&guarded.all).unwrap();
    admin.create(&source, 1, 1, &BTreeMap::new()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.toml");
    fs::write(&all, running(&guarded.all, &source, &group, &endpoint.url)).unwrap();
    let all = all.display().to_string();
    process::done(&["topics", "apply", "--yes", "-c", &all]);

    let guest = running(&guarded.guest, &source, &group, &endpoint.url);
    let process = process::Process::start(folder.path(), &guest).await;
    let kind = || process.json("/readyz").1["reasons"][0]["kind"].clone();
    process::until("refused", || kind() == "pauses" || kind() == "kafka").await;
    allow(&guarded, &guest).await;
    process.until_ready().await;
    process.until_assigned(source.as_str()).await;

    let name = format!("{source}/{group}");
    process::done(&["pause", &name, "-c", &all]);
    let state = || process.subscription(source.as_str());
    process::until("paused", || !state()["paused"].is_null()).await;
    for value in ["good", "late", "bad"] {
        process::done(&["send", source.as_str(), "--key", value, "--value", value, "-c", &all]);
    }
    assert_eq!(endpoint.count(), 0);
    process::done(&["resume", &name, "-c", &all]);
    process::until("all are done", || {
        let totals = &state()["totals"];
        totals["handled"] == 2 && totals["letters"]["permanent"] == 1
    })
    .await;
    process::until("no lag", || state()["lag"] == 0).await;
    assert!(state()["ready"] == true && state()["problems"].as_array().unwrap().is_empty(), "{}", state());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_whose_certificate_nobody_vouches_for_is_not_talked_to() {
    let Some(guarded) = guarded() else { return };
    let is_tls = guarded.all.properties.iter().any(|(name, _)| name == "ssl.ca.location");
    if !is_tls {
        assert!(!is_required("tls"), "tls is required, and the cluster has none");
        eprintln!("SKIPPED: the cluster has no TLS; start one: tools/kafka up --sasl --tls");
        return;
    }
    let mut doubting = guarded.all.clone();
    // What the system trusts, which is not the one who vouches for this broker.
    doubting.properties.retain(|(name, _)| name != "ssl.ca.location");
    let endpoint = endpoint::Endpoint::new(|_| 200);
    let folder = tempfile::tempdir().unwrap();
    let configuration = running(&doubting, &"anything".parse().unwrap(), "group", &endpoint.url);
    let process = process::Process::start(folder.path(), &configuration).await;
    let reason = || process.json("/readyz").1["reasons"][0].to_string();
    process::until("refused", || reason().contains("certificate")).await;
    let password = |(name, value): &(String, String)| (name == "sasl.password").then(|| value.clone());
    let password = guarded.all.properties.iter().find_map(password).unwrap();
    assert!(!reason().contains(&password) && !process.log().contains(&password));
    process.stop().await;
}
