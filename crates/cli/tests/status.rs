//! What is wrong and what mends it, told by the program, on the embedded broker.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use redrive::{
    Class, Classed, Clock, Cluster, Outgoing, Publisher, Publishing, Received, Running, Subscription, Worker,
};
use redrive_kafka::Admin;
use redrive_letters::jobs::{Begun, JobId, Key, Kind, Mark, Options, Selection, Whereto, outgoing};
use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A cluster with a topic, a configuration file for it, and the program.
struct Scene {
    cluster: Cluster,
    folder: TempDir,
    publisher: Publisher,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::open("embedded").await.unwrap();
        cluster.create_topic("orders", 1).await.unwrap();
        let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
        let scene = Self { cluster, folder: tempfile::tempdir().unwrap(), publisher };
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\n[server]\nlisten = \"127.0.0.1:0\"\n[letters]\nstate = \"{}\"\n\
             [[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\nfollowers = \"hold\"\norder-by = \"key\"\n",
            scene.cluster.settings().brokers,
            scene.folder.path().join("state").display(),
        );
        fs::write(scene.folder.path().join("redrive.toml"), text).unwrap();
        scene
    }

    /// `bad...` becomes a letter, `later...` is not ready for as long as this says.
    async fn worker(&self, wait: &str) -> Running {
        let orders = Subscription::new("orders", "pay")
            .auto_create(true)
            .surge_guard("off")
            .followers("hold")
            .retry(Class::NotReady, wait)
            .handler(async |received: Received| match received.text().unwrap_or("") {
                text if text.starts_with("bad") => Err(Classed::permanent("no such customer")),
                text if text.starts_with("later") => Err(Classed::not_ready("no such item")),
                _ => Ok(()),
            });
        Worker::new(&self.cluster).subscribe(orders).start().await.unwrap()
    }

    async fn send(&self, key: &str, value: &str) {
        let order = Outgoing::to("orders".parse().unwrap()).partition(0).key(key.to_owned());
        self.publisher.publish(order.value(value.to_owned())).await.unwrap();
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(args).current_dir(self.folder.path()).env_remove("REDRIVE_CONFIG").stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What is wrong, by kind.
    async fn wrong(&self, args: &[&str]) -> BTreeMap<String, (String, String, String)> {
        let ran = self.run(&[&["status", "-o", "json"], args].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let seen: Value = serde_json::from_str(&ran.out).unwrap();
        let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
        let wrong = seen["wrong"].as_array().unwrap().iter();
        wrong
            .map(|one| (text(one, "kind"), (text(one, "where"), text(one, "what"), text(one, "remedy"))))
            .collect()
    }
}

fn kinds(wrong: &BTreeMap<String, (String, String, String)>) -> Vec<&str> {
    wrong.keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_while_somebody_consumes_and_nobody_is_when_he_stops() {
    let scene = Scene::new().await;
    let missing = scene.wrong(&[]).await;
    assert_eq!(kinds(&missing), ["nobody", "topics"], "{missing:?}");
    assert!(missing["topics"].1.contains("does not exist"), "{missing:?}");
    assert_eq!(missing["topics"].2, "redrive topics apply -c redrive.toml");

    let running = scene.worker("list(1h x3)").await;
    scene.send("a", "good").await;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.handled == 1).await.unwrap();
    let ran = scene.run(&["status", "--check"]).await;
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("nothing is wrong: 1 subscription, 0 open letters"), "{}", ran.out);
    assert_eq!(scene.run(&["status", "-o", "ndjson"]).await.out, "");
    running.stop().await.unwrap();

    scene.send("a", "good").await;
    let ran = scene.run(&["status", "--check"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("orders/pay  nobody consumes it; 1 record is behind\n"), "{}", ran.out);
    assert!(ran.out.contains("=> redrive run -c redrive.toml\n"), "{}", ran.out);
    assert_eq!(scene.run(&["status"]).await.code, 0, "it could look");

    let end = "orders/0/2".parse().unwrap();
    Admin::new(scene.cluster.settings()).unwrap().delete_records(&end).await.unwrap();
    let wrong = scene.wrong(&[]).await;
    let (place, what, remedy) = &wrong["out-of-range"];
    assert_eq!(place, "orders/pay partition 0");
    assert!(
        what.starts_with("1 record was deleted unread: the group is at 1, the topic begins at 2"),
        "{what}"
    );
    assert_eq!(remedy, "redrive run -c redrive.toml --accept-loss");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_lanes_letters_and_what_is_overdue_are_told_with_their_remedies() {
    let scene = Scene::new().await;
    let running = scene.worker("list(1s x30)").await;
    for (key, value) in [("a", "bad 1"), ("b", "later"), ("c", "bad 2")] {
        scene.send(key, value).await;
    }
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.buried == 2 && status.counts.shelved > 0).await.unwrap();
    scene.send("a", "held").await;
    // Not by how often something was set aside: `later` is, again and again.
    status.wait_for(|status| status.shelf.waiting == 2).await.unwrap();
    running.stop().await.unwrap();
    let letters = "orders.pay.dlq".parse().unwrap();
    let kept = BTreeMap::from([("retention.ms".to_owned(), "7200000".to_owned())]);
    Admin::new(scene.cluster.settings()).unwrap().alter(&letters, &kept).await.unwrap();
    assert_eq!(scene.run(&["pause", "orders/pay", "--by", "ann", "--reason", "moving"]).await.code, 0);
    // What waits is due within a second of the worker's end.
    Clock::system().sleep(Duration::from_secs(1)).await;

    let wrong = scene.wrong(&[]).await;
    assert_eq!(kinds(&wrong), ["grows", "lanes", "nobody", "overdue", "paused", "retention"], "{wrong:#?}");
    let (place, what, remedy) = &wrong["paused"];
    assert!(
        place == "orders/pay" && what.starts_with("paused by ann, ") && what.ends_with(": moving"),
        "{what}"
    );
    assert_eq!(remedy, "redrive resume orders/pay -c redrive.toml");
    let (place, what, remedy) = &wrong["lanes"];
    assert!(place == "orders.pay.shelf" && what.starts_with("2 lanes are closed by dead letters"), "{what}");
    assert!(
        what.contains("1 record is held; the oldest: a by orders/0/0, ") && what.ends_with("ago"),
        "{what}"
    );
    let open = "redrive delayed resolve --all --topic orders --group pay --reason WHY -c redrive.toml";
    assert_eq!(remedy, open);
    let (place, what, _) = &wrong["overdue"];
    assert!(place == "orders.pay.shelf" && what.starts_with("1 record is due and nobody consumes"), "{what}");
    let (place, what, remedy) = &wrong["grows"];
    let told = "2 letters in the last hour, 0 in the hour before, 2 open: no such customer";
    assert_eq!((place.as_str(), what.as_str()), ("orders/pay", told));
    assert!(remedy.starts_with("redrive dlq list --group f1-"), "{remedy}");
    let (place, what, remedy) = &wrong["retention"];
    let told = "retention.ms=7200000 (2h) deletes 2 open letters, the first in 1h 59m, 2 within a day";
    assert_eq!((place.as_str(), what.as_str()), ("orders.pay.dlq", told));
    assert!(remedy.ends_with("--entity-name orders.pay.dlq --add-config retention.ms=-1"), "{remedy}");

    // The remedies are commands that do it.
    assert_eq!(scene.run(&["resume", "orders/pay"]).await.code, 0);
    let remedy = wrong["lanes"].2.replace("WHY", "seen");
    let remedy: Vec<&str> = remedy.split(' ').skip(1).chain(["--yes", "--wait", "1s"]).collect();
    let opened = scene.run(&remedy).await;
    assert_eq!(opened.code, 0, "{}", opened.err);
    let running = scene.worker("list(1h x30)").await;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.handled == 1).await.unwrap();
    let wrong = scene.wrong(&[]).await;
    assert_eq!(kinds(&wrong), ["grows", "retention"], "{wrong:#?}");
    // Without a file: every shelf and every letter topic there is.
    let bare = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(["status", "--state-folder", "state", "--brokers", &scene.cluster.settings().brokers]);
    command.current_dir(bare.path()).env_remove("REDRIVE_CONFIG");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains("=> redrive dlq list --group f1-") && out.contains("--brokers 127.0.0.1:"), "{out}");
    assert!(
        err.starts_with("2 things are wrong; 1 subscription, 2 open letters in 1 failure group"),
        "{err}"
    );
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_stopped_half_way_is_told_until_it_goes_on() {
    let scene = Scene::new().await;
    let running = scene.worker("list(1h x3)").await;
    scene.send("a", "bad").await;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.buried == 1).await.unwrap();
    redrive::pauses::prepare(&Admin::new(scene.cluster.settings()).unwrap()).await.unwrap();
    let (id, selection) =
        ("k3f9q2".parse::<JobId>().unwrap(), Selection::of(&["orders.pay.dlq/0/0".parse().unwrap()]));
    let at = Clock::system().now().wall.millis() - 3_600_000;
    let begun = Begun {
        kind: Kind::Replay,
        by: "ann@here".to_owned(),
        reason: "fixed".to_owned(),
        at,
        query: "all".to_owned(),
        to: Whereto::Usual,
        letters: 1,
        chunks: 1,
        options: Options::default(),
        ends: BTreeMap::new(),
        lanes: Vec::new(),
        announced: None,
        silent: None,
        replays: BTreeMap::new(),
        topics: BTreeMap::new(),
        cuts: Vec::new(),
        rewrites: Vec::new(),
    };
    let chunk = selection.chunks()[0].clone();
    let key = Key::Selection(id.clone(), 0).to_string();
    let state = || Outgoing::to(redrive::pauses::topic()).partition(0);
    scene.publisher.publish(state().key(key).value(chunk)).await.unwrap();
    scene.publisher.publish(outgoing(&Key::Begun(id.clone()), &begun)).await.unwrap();
    let mark = Mark { upto: 0, at, by: "ann@here".to_owned(), ..Mark::default() };
    scene.publisher.publish(outgoing(&Key::Mark(id), &mark)).await.unwrap();

    let wrong = scene.wrong(&[]).await;
    let (place, what, remedy) = &wrong["replay-stopped"];
    assert_eq!(
        (place.as_str(), remedy.as_str()),
        ("job k3f9q2", "redrive replay resume k3f9q2 -c redrive.toml")
    );
    assert!(what.starts_with("no progress for 1h") && what.ends_with("1 letter is not sent"), "{what}");
    let patient = scene.wrong(&["--patience", "1d"]).await;
    assert!(!patient.contains_key("replay-stopped"), "{patient:?}");

    let paused = scene.run(&["replay", "pause", "k3f9", "--reason", "too fast"]).await;
    assert_eq!(paused.code, 0, "{}", paused.err);
    let wrong = scene.wrong(&[]).await;
    assert!(wrong["replay-paused"].1.ends_with(": too fast; 1 letter is not sent"), "{wrong:?}");

    let resumed = scene.run(&["replay", "resume", "k3f9"]).await;
    assert_eq!(resumed.code, 3, "it fails again: {}{}", resumed.out, resumed.err);
    let wrong = scene.wrong(&[]).await;
    assert_eq!(wrong["failed-again"].1, "1 of 1 failed again", "{wrong:?}");
    running.stop().await.unwrap();
}

#[test]
fn a_broker_that_cannot_be_reached_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(["status", "--brokers", "127.0.0.1:1", "--state-folder", "state"]);
    let output = command.current_dir(folder.path()).env_remove("REDRIVE_CONFIG").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("127.0.0.1:1") && said.contains("help: is it running"), "{said}");
}
