//! Topics planned and applied by the program, on the embedded broker and on real Apache Kafka.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use redrive_broker::{Broker, BrokerConfig};
use redrive_kafka::{Admin, Settings};
use redrive_testkit::{kafka, new_name};
use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A cluster, a configuration file for it, and the program.
struct Scene {
    settings: Settings,
    source: String,
    folder: TempDir,
    _broker: Option<Broker>,
}

impl Scene {
    async fn embedded() -> Self {
        let config = BrokerConfig { auto_create_topics: false, ..BrokerConfig::default() };
        let broker = Broker::start(config).await.expect("a broker");
        let settings = Settings::of(broker.address().to_string());
        Self::on(settings, Some(broker)).await
    }

    async fn real() -> Option<Self> {
        let cluster = kafka()?;
        let settings = Settings { brokers: cluster.brokers, properties: cluster.properties };
        Some(Self::on(settings, None).await)
    }

    async fn on(settings: Settings, broker: Option<Broker>) -> Self {
        let scene = Self {
            settings,
            source: new_name("orders"),
            folder: tempfile::tempdir().unwrap(),
            _broker: broker,
        };
        scene.admin().create(&scene.source.parse().unwrap(), 3, 1, &BTreeMap::new()).await.unwrap();
        scene.write("");
        scene
    }

    fn admin(&self) -> Admin {
        Admin::new(&self.settings).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("redrive.toml")
    }

    fn write(&self, lines: &str) {
        let properties: Vec<_> = self
            .settings
            .properties
            .iter()
            .map(|(name, value)| format!("\"{name}\" = \"{value}\""))
            .collect();
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\nproperties = {{ {} }}\n[[subscription]]\ntopic = \"{}\"\ngroup = \"pay\"\n{lines}\n",
            self.settings.brokers,
            properties.join(", "),
            self.source
        );
        fs::write(self.file(), text).unwrap();
    }

    fn topic(&self, suffix: &str) -> redrive_core::Topic {
        format!("{}.{suffix}", self.source).parse().unwrap()
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(args).arg("-c").arg(self.file()).env_remove("REDRIVE_CONFIG");
        // The broker lives on this runtime, which must not wait.
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        Ran {
            code: output.status.code().expect("an exit code"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    async fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["-o", "json"]].concat()).await;
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err))
    }
}

async fn a_plan_is_shown_applied_and_then_there_is_nothing_to_do(scene: &Scene) {
    let plan = scene.run(&["topics", "plan"]).await;
    assert_eq!(plan.code, 0, "{}", plan.err);
    let source = &scene.source;
    for expected in [
        format!("create  {source}.pay.dlq  3 partitions, replication factor 1"),
        format!("create  {source}.pay.shelf  3 partitions"),
        "because dead letters of pay go there".to_owned(),
        "message.timestamp.type=LogAppendTime".to_owned(),
        "max.message.bytes=1114124".to_owned(),
    ] {
        assert!(plan.out.contains(&expected), "{expected} is not in\n{}", plan.out);
    }
    assert_eq!(scene.run(&["topics", "plan", "--check"]).await.code, 3);

    let unasked = scene.run(&["topics", "apply"]).await;
    assert_eq!((unasked.code, unasked.out.as_str()), (2, ""));
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);

    let applied = scene.run(&["topics", "apply", "--yes"]).await;
    assert_eq!(applied.code, 0, "{}{}", applied.out, applied.err);
    // The topic of pauses is for all, and may be there.
    assert_eq!(applied.out.matches(&format!("done    create  {source}")).count(), 2, "{}", applied.out);
    let plan = scene.run(&["topics", "plan", "--check"]).await;
    assert_eq!((plan.code, plan.out.as_str()), (0, "nothing to do\n"), "{}", plan.err);
    let again = scene.run(&["topics", "apply"]).await;
    assert_eq!((again.code, again.out.as_str()), (0, "nothing to do\n"), "{}", again.err);
}

async fn what_has_changed_since_is_mended_and_nothing_else(scene: &Scene) {
    scene.run(&["topics", "apply", "--yes"]).await;
    let admin = scene.admin();
    let (shelf, letters) = (scene.topic("pay.shelf"), scene.topic("pay.dlq"));
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    admin.add_partitions(&scene.source.parse().unwrap(), 5).await.unwrap();
    admin.alter(&shelf, &one("retention.ms", "60000")).await.unwrap();
    admin.alter(&shelf, &one("segment.ms", "3600000")).await.unwrap();
    admin.alter(&letters, &one("retention.ms", "86400000")).await.unwrap();

    let steps = |plan: &Value| -> Vec<String> {
        let words =
            |step: &Value| format!("{} {} {}", step["change"], step["from"], step["to"]).replace('"', "");
        plan["steps"].as_array().unwrap().iter().map(words).collect()
    };
    let plan = scene.json(&["topics", "plan"]).await;
    assert_eq!(steps(&plan), ["grow 3 5", "grow 3 5", "alter 60000 -1"], "{plan:#}");
    assert_eq!(plan["notes"][0]["note"], "letters-are-deleted");

    let applied = scene.json(&["topics", "apply", "--yes"]).await;
    assert_eq!(applied["done"], 3, "{applied:#}");
    let plan = scene.json(&["topics", "plan"]).await;
    assert_eq!((&plan["done"], plan["notes"].as_array().unwrap().len()), (&true.into(), 1), "{plan:#}");
    let found = admin.describe(&[shelf.clone(), letters.clone()]).await.unwrap();
    assert_eq!((found[&shelf].partitions, found[&letters].partitions), (5, 5));
    assert_eq!(found[&shelf].settings["segment.ms"].value, "3600000", "what was not named stays");
    assert_eq!(found[&letters].settings["retention.ms"].value, "86400000", "the operator's choice stays");
}

async fn what_an_old_group_left_behind_is_told(scene: &Scene) {
    scene.run(&["topics", "apply", "--yes"]).await;
    scene.admin().create(&scene.topic("billing.dlq"), 2, 1, &BTreeMap::new()).await.unwrap();
    let plan = scene.json(&["topics", "plan"]).await;
    let notes = plan["notes"].as_array().unwrap();
    assert_eq!((notes.len(), &notes[0]["note"]), (1, &"left-behind".into()), "{plan:#}");
    assert_eq!((&notes[0]["group"], &notes[0]["records"]), (&"billing".into(), &0.into()));
}

async fn a_step_that_fails_is_told_and_the_others_are_done(scene: &Scene) {
    // A name that differs in a dot alone is refused by Kafka, as metrics would confuse the two.
    let taken = scene.topic("pay.dlq").as_str().replace('.', "_");
    scene.admin().create(&taken.parse().unwrap(), 1, 1, &BTreeMap::new()).await.unwrap();
    let applied = scene.run(&["topics", "apply", "--yes"]).await;
    assert_eq!(applied.code, 3, "{}{}", applied.out, applied.err);
    assert!(
        applied.out.contains("failed  create") && applied.out.contains("done    create"),
        "{}",
        applied.out
    );
    assert!(
        applied.out.contains("collides") && applied.err.contains("1 step not done"),
        "{}{}",
        applied.out,
        applied.err
    );
    let plan = scene.json(&["topics", "plan"]).await;
    assert_eq!(plan["steps"].as_array().unwrap().len(), 1, "{plan:#}");
}

async fn a_source_that_does_not_exist_cannot_be_mended(scene: &Scene) {
    let text = fs::read_to_string(scene.file()).unwrap().replace(&scene.source, "no-such-source");
    fs::write(scene.file(), text).unwrap();
    let plan = scene.run(&["topics", "plan"]).await;
    assert!(plan.out.contains("it does not exist") && plan.out.contains("kafka-topics.sh"), "{}", plan.out);
    let applied = scene.run(&["topics", "apply", "--yes"]).await;
    assert_eq!(applied.code, 1, "{}{}", applied.out, applied.err);
    assert!(
        !scene.admin().topics().await.unwrap().iter().any(|name| name.as_str().contains("no-such-source"))
    );
}

macro_rules! on_both {
    ($($case:ident)*) => {$(
        mod $case {
            #[tokio::test]
            async fn on_the_embedded_broker() {
                super::$case(&super::Scene::embedded().await).await;
            }

            #[tokio::test]
            async fn on_real_kafka() {
                let Some(scene) = super::Scene::real().await else { return };
                super::$case(&scene).await;
            }
        }
    )*};
}

on_both! {
    a_plan_is_shown_applied_and_then_there_is_nothing_to_do
    what_has_changed_since_is_mended_and_nothing_else
    what_an_old_group_left_behind_is_told
    a_step_that_fails_is_told_and_the_others_are_done
    a_source_that_does_not_exist_cannot_be_mended
}

#[tokio::test]
async fn too_few_replicas_are_told_with_the_command_that_mends_them() {
    let Some(scene) = Scene::real().await else { return };
    let admin = scene.admin();
    if admin.cluster().await.unwrap().brokers < 3 {
        eprintln!("SKIPPED: it takes three brokers: tools/kafka up --brokers 3");
        return;
    }
    let scene = Scene { source: new_name("safe"), ..scene };
    let safe = BTreeMap::from([("min.insync.replicas".to_owned(), "2".to_owned())]);
    admin.create(&scene.source.parse().unwrap(), 2, 3, &safe).await.unwrap();
    admin.create(&scene.topic("pay.dlq"), 2, 1, &BTreeMap::new()).await.unwrap();
    scene.write("");
    let applied = scene.run(&["topics", "apply", "--yes"]).await;
    assert_eq!(applied.code, 3, "{}{}", applied.out, applied.err);
    assert!(applied.out.contains("kafka-reassign-partitions.sh"), "{}", applied.out);
    let shelf = scene.topic("pay.shelf");
    let found = admin.describe(std::slice::from_ref(&shelf)).await.unwrap();
    assert_eq!(found[&shelf].replication, 3);
    assert_eq!(found[&shelf].settings["min.insync.replicas"].value, "2");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_named_in_time() {
    let scene = Scene::embedded().await;
    let run = scene.run(&["topics", "plan", "--brokers", "127.0.0.1:1"]);
    let ran = tokio::time::timeout(Duration::from_secs(40), run).await.expect("an answer in time");
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for expected in ["cannot reach Kafka at 127.0.0.1:1", "Connection refused", "--brokers ADDRESS"] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[tokio::test]
async fn there_is_nothing_to_plan_for_an_embedded_broker() {
    let scene = Scene::embedded().await;
    fs::write(scene.file(), "[kafka]\nbrokers = \"embedded\"\n").unwrap();
    for args in [&["topics", "plan"][..], &["topics", "apply"], &["acls"]] {
        let ran = scene.run(args).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, ""));
        assert!(ran.err.contains("embedded") && ran.err.contains("--brokers"), "{}", ran.err);
    }
    fs::write(scene.file(), "[kafka]\nbrockers = \"b\"\n").unwrap();
    let ran = scene.run(&["topics", "plan"]).await;
    assert_eq!(ran.code, 78);
    assert!(ran.err.contains("redrive.toml:2:1"), "{}", ran.err);
}

#[tokio::test]
async fn acls_are_printed_for_people_for_a_shell_and_for_programs() {
    let scene = Scene::embedded().await;
    scene.write("delivery = \"exactly-once\"");
    let source = &scene.source;
    let text = scene.run(&["acls"]).await;
    assert!(text.out.contains("Read, Write, Delete, Describe, DescribeConfigs"), "{}", text.out);
    let commands =
        scene.run(&["acls", "--principal", "User:a b", "--brokers", "k:1", "-o", "commands"]).await;
    let expected = format!(
        "kafka-acls.sh --bootstrap-server k:1 --add --allow-principal 'User:a b' --operation Write --operation Describe --transactional-id {source}.pay. --resource-pattern-type prefixed\n"
    );
    assert!(commands.out.contains(&expected), "{}", commands.out);
    let json = scene.json(&["acls"]).await;
    assert_eq!((&json["principal"], json["acls"].as_array().unwrap().len()), (&"User:redrive".into(), 6));
    assert_eq!(json["acls"][5]["name"], "redrive.state", "what is paused has to be known");
    let wrong = scene.run(&["acls", "--principal", "somebody"]).await;
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("User:payments"), "{}", wrong.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_warns_of_topics_that_delete_too_early() {
    let scene = Scene::embedded().await;
    assert_eq!(scene.run(&["topics", "apply", "--yes"]).await.code, 0);
    let checked = scene.run(&["check"]).await;
    assert_eq!((checked.code, checked.err.as_str()), (0, ""), "nothing is deleted");
    let kept = BTreeMap::from([("retention.ms".to_owned(), "60000".to_owned())]);
    for suffix in ["pay.dlq", "pay.shelf"] {
        scene.admin().alter(&scene.topic(suffix), &kept).await.unwrap();
    }
    let checked = scene.run(&["check"]).await;
    assert_eq!(checked.code, 0, "a warning is no error: {}", checked.err);
    let (letters, shelf) = (scene.topic("pay.dlq"), scene.topic("pay.shelf"));
    for expected in [
        format!("warning: {letters} has retention.ms=60000: dead letters are deleted unseen"),
        format!("--entity-name {letters} --add-config retention.ms=-1"),
        format!(
            "warning: {shelf} has retention.ms=60000 and must have -1: what waits is removed by its owner alone"
        ),
        format!("help: redrive topics apply -c {}", scene.file().display()),
    ] {
        assert!(checked.err.contains(&expected), "{expected} is not in\n{}", checked.err);
    }
    let compacted = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    scene.admin().alter(&letters, &compacted).await.unwrap();
    let checked = scene.run(&["check"]).await;
    assert!(!checked.err.contains("dead letters are deleted"), "compaction keeps them: {}", checked.err);
    let elsewhere = scene.run(&["check", "--brokers", "127.0.0.1:1"]).await;
    assert_eq!(elsewhere.code, 0, "{}", elsewhere.err);
    assert!(elsewhere.err.contains("note: 127.0.0.1:1 does not answer"), "{}", elsewhere.err);
}
