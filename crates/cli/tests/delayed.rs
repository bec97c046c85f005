//! What waits, seen and changed by the program, on the embedded broker.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use redrive::{
    Class, Classed, Cluster, Outgoing, Publisher, Publishing, Received, Running, Subscription, Worker,
};
use redrive_core::headers::Headers;
use serde_json::Value;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A cluster with a topic, a configuration file for it, and the program.
struct Scene {
    cluster: Cluster,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::open("embedded").await.unwrap();
        cluster.create_topic("orders", 2).await.unwrap();
        let scene = Self { cluster, folder: tempfile::tempdir().unwrap() };
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\n[[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\n",
            scene.brokers()
        );
        fs::write(scene.file(), text).unwrap();
        scene
    }

    fn brokers(&self) -> &str {
        &self.cluster.settings().brokers
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("redrive.toml")
    }

    /// A worker for which `later...` is not ready for an hour when it is tried first.
    async fn worker(&self) -> Running {
        let orders = Subscription::new("orders", "pay")
            .auto_create(true)
            .retry(Class::NotReady, "list(1h x3)")
            .handler(async |received: Received| {
                let later = received.text().is_none_or(|text| text.starts_with("later"));
                match later && received.attempt() == 1 {
                    true => Err(Classed::not_ready("no such item")),
                    false => Ok(()),
                }
            });
        Worker::new(&self.cluster).subscribe(orders).start().await.unwrap()
    }

    async fn send(&self, partition: i32, key: &str, value: &[u8]) {
        let publisher = Publisher::new(self.cluster.settings(), &Publishing::default()).unwrap();
        let headers: Headers = [("trace", Some("abc"))].into_iter().collect();
        let outgoing = Outgoing {
            partition: Some(partition),
            key: Some(key.to_owned().into()),
            value: Some(value.to_vec().into()),
            headers,
            ..Outgoing::to("orders".parse().unwrap())
        };
        publisher.publish(outgoing).await.unwrap();
    }

    async fn until_waiting(&self, running: &Running, count: u64) {
        let mut status = running.statuses()[0].clone();
        let shelved = status.wait_for(|status| status.counts.shelved == count);
        tokio::time::timeout(PATIENCE, shelved).await.expect("in time").unwrap();
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(args).current_dir(self.folder.path()).env_remove("REDRIVE_CONFIG").stdin(Stdio::null());
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

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_listed_counted_filtered_and_shown() {
    let scene = Scene::new().await;
    let running = scene.worker().await;
    scene.send(0, "a", b"later 1").await;
    scene.until_waiting(&running, 1).await;
    scene.send(0, "a", b"behind").await;
    scene.send(1, "b", &[0, 159, 255]).await;
    scene.until_waiting(&running, 3).await;

    let list = scene.run(&["delayed", "list"]).await;
    assert_eq!(list.code, 0, "{}", list.err);
    for expected in ["ORIGIN", "orders/0/0", "orders/0/1", "behind 0", "not-ready: no such item", "in 59m"] {
        assert!(list.out.contains(expected), "{expected} is not in\n{}", list.out);
    }
    assert!(list.err.contains("orders.pay.shelf: 3 waiting, 0 due now, 1 behind another"), "{}", list.err);

    let json = scene.json(&["delayed", "list", "--key", "a"]).await;
    let origins: Vec<_> = json["records"].as_array().unwrap().iter().map(|one| &one["origin"]).collect();
    assert_eq!(origins, ["orders/0/0", "orders/0/1"], "a follower comes after its leader");
    assert_eq!(
        (&json["records"][0]["standing"], &json["records"][1]["behind"]),
        (&"first".into(), &0.into())
    );
    assert_eq!(json["shelves"][0]["total"], 2);

    let lines = scene.run(&["delayed", "list", "--partition", "1", "-o", "ndjson"]).await;
    let line: Value = serde_json::from_str(lines.out.trim()).unwrap();
    assert_eq!((&line["origin"], &line["class"]), (&"orders/1/0".into(), &"not-ready".into()));
    let counts = scene.json(&["delayed", "list", "--count"]).await;
    assert_eq!((&counts[0]["total"], &counts[0]["by_partition"]["0"]), (&3.into(), &2.into()), "{counts:#}");
    let table = scene.run(&["delayed", "list", "--count"]).await;
    assert!(table.out.lines().last().unwrap().contains("all"), "{}", table.out);

    let soon = scene.json(&["delayed", "list", "--due-before", "2h", "--due-after", "-1m"]).await;
    assert_eq!(soon["records"].as_array().unwrap().len(), 3);
    assert_eq!(scene.run(&["delayed", "list", "--due-before", "10m"]).await.code, 4);
    assert_eq!(scene.run(&["delayed", "list", "--due-after", "2h"]).await.code, 4);
    let limited = scene.run(&["delayed", "list", "--limit", "1"]).await;
    assert_eq!(limited.out.lines().count(), 2);
    assert!(limited.err.contains("1 of 3 are shown"), "{}", limited.err);
    // Without a file: every shelf there is, and the one of a group.
    let folder = tempfile::tempdir().unwrap();
    let bare = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(["delayed", "list", "--brokers", scene.brokers()]).args(args);
        command.current_dir(folder.path()).env_remove("REDRIVE_CONFIG");
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    for args in [&[][..], &["--topic", "orders", "--group", "pay"], &["--shelf", "orders.pay.shelf"]] {
        let output = bare(args).await.unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("orders/0/0"), "{output:?}");
    }

    let show = scene.run(&["delayed", "show", "orders/0/0"]).await;
    assert_eq!(show.code, 0, "{}", show.err);
    for expected in ["later 1", "trace = abc", "behind it: 1", "redrive::NotReady", "attempts     1"] {
        assert!(show.out.contains(expected), "{expected} is not in\n{}", show.out);
    }
    let show = scene.run(&["delayed", "show", "orders/1/0", "--save", "value.bin"]).await;
    assert!(show.out.contains("3 bytes, hexadecimal\n\n009fff\n"), "{}", show.out);
    assert_eq!(fs::read(scene.folder.path().join("value.bin")).unwrap(), [0, 159, 255]);
    let json = scene.json(&["delayed", "show", "orders/1/0"]).await;
    assert_eq!((&json["value_hex"], &json["headers"][0]["name"]), (&"009fff".into(), &"trace".into()));
    let missing = scene.run(&["delayed", "show", "orders/0/77"]).await;
    assert_eq!((missing.code, missing.out.as_str()), (4, ""));
    assert!(missing.err.contains("does not wait"), "{}", missing.err);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_carried_out_by_a_worker_or_wait_for_one() {
    let scene = Scene::new().await;
    let running = scene.worker().await;
    for (key, value) in [("a", "later 1"), ("b", "later 2"), ("c", "later 3"), ("d", "later 4")] {
        scene.send(0, key, value.as_bytes()).await;
    }
    scene.until_waiting(&running, 4).await;

    let released = scene.json(&["delayed", "release", "orders/0/0"]).await;
    assert_eq!((&released[0]["outcome"], &released[0]["deed"]), (&"due".into(), &"release".into()));
    let moved = scene.run(&["delayed", "reschedule", "orders/0/1", "--at", "2099-01-01T00:00:00Z"]).await;
    assert_eq!(moved.code, 0, "{}{}", moved.out, moved.err);
    assert!(moved.out.contains("due 2099-01-01T00:00:00Z"), "{}", moved.out);
    let cancelled = scene.run(&["delayed", "cancel", "orders/0/2", "orders/0/99"]).await;
    assert_eq!(cancelled.code, 3, "{}{}", cancelled.out, cancelled.err);
    assert!(
        cancelled.out.contains("cancelled: it becomes a dead letter") && cancelled.out.contains("unknown"),
        "{}",
        cancelled.out
    );
    let again = scene.run(&["delayed", "cancel", "orders/0/99"]).await;
    assert_eq!(again.code, 1, "{}{}", again.out, again.err);

    // Nothing is changed in bulk without a reason, without being asked for, or where nothing matches.
    let bulk = ["delayed", "release", "--all", "--key", "d"];
    assert_eq!(scene.run(&bulk).await.code, 2);
    let unasked = scene.run(&[&bulk[..], &["--reason", "test"]].concat()).await;
    assert_eq!(unasked.code, 2);
    assert!(unasked.err.contains("release 1 record of orders.pay.shelf") && unasked.err.contains("--yes"));
    let nothing = ["delayed", "release", "--all", "--key", "zzz", "--reason", "test", "--yes"];
    assert_eq!(scene.run(&nothing).await.code, 4);
    assert_eq!(scene.run(&["delayed", "release", "orders/0/1", "--key", "d"]).await.code, 2);
    assert_eq!(scene.run(&["delayed", "release"]).await.code, 2);
    assert_eq!(scene.run(&["delayed", "reschedule", "orders/0/1"]).await.code, 2);

    running.stop().await.unwrap();
    let queued = scene.run(&[&bulk[..], &["--reason", "stock is back", "--yes"]].concat()).await;
    assert_eq!(queued.code, 0, "{}{}", queued.out, queued.err);
    assert!(queued.out.contains("orders/0/3  queued: no worker of group pay runs"), "{}", queued.out);
    let list = scene.run(&["delayed", "list"]).await;
    assert!(list.err.contains("1 order is unanswered"), "{}", list.err);
    let show = scene.run(&["delayed", "show", "orders/0/3"]).await;
    assert!(show.out.contains("unanswered; stock is back"), "{}", show.out);
    let running = scene.worker().await;
    let mut status = running.statuses()[0].clone();
    let handled = status.wait_for(|status| status.counts.handled == 1);
    tokio::time::timeout(PATIENCE, handled).await.expect("carried out in time").unwrap();
    running.stop().await.unwrap();
    let list = scene.json(&["delayed", "list"]).await;
    assert_eq!(list["records"].as_array().unwrap().len(), 1, "{list:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shelf_that_is_not_there_is_told_with_what_helps() {
    let scene = Scene::new().await;
    let missing = scene.run(&["delayed", "list"]).await;
    assert_eq!((missing.code, missing.out.as_str()), (1, ""), "{}", missing.err);
    assert!(
        missing.err.contains("there is no shelf topic orders.pay.shelf")
            && missing.err.contains("topics apply"),
        "{}",
        missing.err
    );
    scene.cluster.create_topic("orders.pay.shelf", 2).await.unwrap();
    let empty = scene.run(&["delayed", "list"]).await;
    assert_eq!((empty.code, empty.out.as_str()), (0, ""), "{}", empty.err);
    let near = scene.run(&["delayed", "list", "--topic", "order", "--group", "pay"]).await;
    assert_eq!(near.code, 1);
    assert!(near.err.contains("did you mean --shelf orders.pay.shelf?"), "{}", near.err);
    let unknown = scene.run(&["delayed", "list", "--topic", "nothing"]).await;
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("it has orders as pay"), "{}", unknown.err);
    let partition = scene.run(&["delayed", "release", "orders/9/1"]).await;
    assert_eq!(partition.code, 1);
    assert!(partition.err.contains("has 2 partitions"), "{}", partition.err);
    fs::write(scene.file(), "[kafka]\nbrockers = \"b\"\n").unwrap();
    assert_eq!(scene.run(&["delayed", "list"]).await.code, 78);
    let gone = scene.run(&["delayed", "list", "-c", "no-such.toml"]).await;
    assert_eq!(gone.code, 78, "{}", gone.err);
}
