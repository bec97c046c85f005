//! Letters of a real Spring Kafka application, on Apache Kafka: listed, shown, and replayed to their origin.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bytes::Bytes;
use rdkafka::message::{Headers as _, Message as _};
use redrive::{Outgoing, Publisher, Publishing, Settings};
use redrive_kafka::Admin;
use redrive_testkit::{Cluster, is_required, kafka, new_name};
use serde_json::{Value, json};
use tempfile::TempDir;

const PARTITIONS: i32 = 3;
/// The code with which `tools/spring` says that something cannot be had here.
const NOT_HERE: i32 = 69;
/// The code with which `redrive` says that nothing matched.
const NOTHING: i32 = 4;

/// A record, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    at: (i32, i64),
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A topic with orders that Spring fails on and others, and the program.
struct Scene {
    cluster: Cluster,
    topic: String,
    folder: TempDir,
}

impl Scene {
    async fn new(cluster: Cluster) -> Self {
        let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
        let (admin, topic) = (Admin::new(&settings).unwrap(), new_name("spring"));
        for end in ["", "-retry", "-dlt"] {
            let name = format!("{topic}{end}").parse().unwrap();
            admin.create(&name, PARTITIONS, 1, &BTreeMap::new()).await.unwrap();
        }
        let publisher = Publisher::new(&settings, &Publishing::default()).unwrap();
        let order = |partition: i32| Outgoing::to(topic.parse().unwrap()).partition(partition);
        let odd = Bytes::from_static(&[0xff, 0, b'x']);
        for order in [
            order(0).key("a").value("fine"),
            order(0).key("a").value("one").header("fail", "yes").header("mine", "1").header("mine", "2"),
            order(2).key(odd.clone()).value(odd.clone()).header("odd", odd).header("fail", ""),
            order(2).key("b").value("fine"),
            order(2).key("b").header("fail", "a tombstone"),
            order(2).value("").header("fail", "no key, empty"),
            order(2).key("b").value("large ".repeat(20_000)).header("fail", "yes"),
        ] {
            publisher.publish(order).await.unwrap();
        }
        Self { cluster, topic, folder: tempfile::tempdir().unwrap() }
    }

    /// Lets the application fail until it has written so many letters; what it told, or none if it cannot be had.
    async fn spring(&self, kind: &str, count: usize) -> Option<String> {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/spring");
        let mut command = Command::new(tool);
        command.args([kind, &self.topic, &count.to_string()]);
        let output = finish(command).await;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(NOT_HERE) {
            assert!(!is_required("spring"), "spring is required by REDRIVE_REQUIRE: {error}");
            let _ = writeln!(std::io::stderr(), "SKIPPED a test of letters of Spring: {error}");
            return None;
        }
        assert!(output.status.success(), "{error}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn letters(&self) -> String {
        format!("{}-dlt", self.topic)
    }

    async fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.arg("dlq").args(args).args([
            "--letters",
            &self.letters(),
            "--brokers",
            &self.cluster.brokers,
        ]);
        command.env("REDRIVE_STATE", self.folder.path()).env_remove("REDRIVE_CONFIG");
        command.current_dir(self.folder.path());
        let output = finish(command).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    async fn json(&self, args: &[&str]) -> Value {
        let (_, out, err) = self.run(&[args, &["-o", "json"]].concat()).await;
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{args:?}: {out}{err}"))
    }

    /// Everything in the topic of the orders, partition by partition.
    async fn orders(&self) -> Vec<Found> {
        let (cluster, topic) = (self.cluster.clone(), self.topic.clone());
        let messages =
            tokio::task::spawn_blocking(move || cluster.messages(&topic, PARTITIONS)).await.unwrap();
        let found = messages.iter().map(|message| Found {
            at: (message.partition(), message.offset()),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: message.headers().map_or_else(Vec::new, |headers| {
                let kept = headers.iter();
                kept.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
            }),
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|found| found.at);
        found
    }
}

async fn finish(mut command: Command) -> Output {
    command.stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// `kind` is what of Spring wrote the letters: each has headers of its own.
async fn letters_are_listed_shown_and_replayed_to_their_origin(kind: &str, attempts: u32) {
    let Some(cluster) = kafka() else {
        assert!(!is_required("spring"), "spring is required by REDRIVE_REQUIRE, and needs kafka");
        return;
    };
    let scene = Scene::new(cluster).await;
    let before = scene.orders().await;
    let failing = before.iter().filter(|order| order.headers.iter().any(|(name, _)| name == "fail"));
    let failing: Vec<_> = failing.cloned().collect();
    let Some(told) = scene.spring(kind, failing.len()).await else { return };
    assert!(told.contains(&format!("failed {} times", 2 * failing.len())), "{told}");

    let listed = scene.json(&["list", "--topic", &scene.topic]).await;
    let listed = listed["letters"].as_array().unwrap();
    let mut sources = Vec::new();
    for letter in listed {
        assert_eq!((&letter["dialect"], &letter["attempts"]), (&json!("spring"), &json!(attempts)));
        assert_eq!(letter["source"]["topic"], json!(scene.topic));
        assert_eq!(letter["group"], json!(format!("{}-billing", scene.topic)));
        assert_eq!(letter["error_type"], "java.lang.IllegalStateException");
        assert!(letter["error_message"].as_str().unwrap().contains("cannot bill"), "{letter}");
        let number = |name: &str| letter["source"][name].as_i64().unwrap();
        sources.push((i32::try_from(number("partition")).unwrap(), number("offset")));
    }
    sources.sort_unstable();
    assert_eq!(sources, failing.iter().map(|order| order.at).collect::<Vec<_>>());

    let payload = scene.folder.path().join("payload");
    for letter in listed {
        let id = letter["id"].as_str().unwrap();
        let shown = scene.json(&["show", id]).await;
        let source = &shown["source"];
        let of = |order: &&Found| (source["partition"] == order.at.0) && (source["offset"] == order.at.1);
        let order = failing.iter().find(of).unwrap();
        assert_eq!((&shown["dialect"], &source["topic"]), (&json!("spring"), &json!(scene.topic)));
        assert_eq!(shown["same_error"].as_array().unwrap().len(), failing.len() - 1, "{shown:#}");
        assert!(shown["error_stack"].as_str().unwrap().contains("no such customer"), "{shown:#}");
        assert_eq!(shown["tombstone"], order.value.is_none(), "{shown:#}");
        let saved = scene.run(&["show", id, "--payload", payload.to_str().unwrap()]).await;
        assert_eq!(
            (saved.0, fs::read(&payload).ok()),
            (i32::from(order.value.is_none()), order.value.clone())
        );
        let _ = fs::remove_file(&payload);
    }

    let replay = ["replay", "--all", "--topic", &scene.topic, "--reason", "fixed", "--yes"];
    let (code, out, err) = scene.run(&replay).await;
    assert!(code == 0 && out.contains(&format!("{} sent", failing.len())), "{out}{err}");
    assert!(err.contains(&format!("to the original topic {}", scene.topic)), "{out}{err}");
    let again = scene.run(&replay).await;
    assert_eq!((again.0, scene.run(&["list"]).await.0), (NOTHING, NOTHING), "{again:?}");
    let replayed = scene.json(&["list", "--state", "replayed"]).await;
    assert_eq!(replayed["letters"].as_array().unwrap().len(), failing.len());

    let mut sent = scene.orders().await;
    sent.retain(|order| !before.contains(order));
    assert_eq!(sent.len(), failing.len(), "each once");
    for (sent, order) in sent.iter_mut().zip(&failing) {
        sent.headers.retain(|(name, _)| !name.starts_with("redrive-replay"));
        assert_eq!(*sent, Found { at: (order.at.0, sent.at.1), ..order.clone() });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_springs_recoverer_are_listed_shown_and_replayed_to_their_origin() {
    // The recoverer does not say how often it was tried.
    letters_are_listed_shown_and_replayed_to_their_origin("recoverer", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_behind_springs_retry_topics_are_listed_shown_and_replayed_to_their_origin() {
    letters_are_listed_shown_and_replayed_to_their_origin("retry-topics", 2).await;
}
