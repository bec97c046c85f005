//! Dead letters, found and told by the program, on the embedded broker: some that a worker buried, some of others.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redrive::{Class, Classed, Cluster, Outgoing, Publisher, Publishing, Received, Subscription, Worker};
use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// A cluster with letters, a configuration file for it, and the program.
struct Scene {
    cluster: Cluster,
    folder: TempDir,
    publisher: Publisher,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::open("embedded").await.unwrap();
        cluster.create_topic("orders", 2).await.unwrap();
        let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
        let scene = Self { cluster, folder: tempfile::tempdir().unwrap(), publisher };
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\n[letters]\nstate = \"{}\"\n[letters.links]\n\
             logs = \"https://logs.example/{{service}}?order={{topic}}/{{offset}}\"\n\
             traces = \"https://traces.example/{{header:trace-id}}\"\n\
             [[subscription]]\ntopic = \"orders\"\ngroup = \"pay\"\n",
            scene.cluster.settings().brokers,
            scene.folder.path().join("state").display(),
        );
        fs::write(scene.file(), text).unwrap();
        scene
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("redrive.toml")
    }

    async fn publish(&self, outgoing: Outgoing) {
        self.publisher.publish(outgoing).await.unwrap();
    }

    fn order(&self, key: &str, value: &str) -> Outgoing {
        let to = Outgoing::to("orders".parse().unwrap()).partition(0).key(key.to_owned());
        to.value(value.to_owned()).header("trace-id", format!("t-{value}"))
    }

    /// A worker buries what it cannot handle, for one of two causes.
    async fn bury(&self, orders: &[(&str, &str)]) {
        let handler = async |received: Received| match received.text() {
            Some(text) if text.starts_with("bad") => {
                Err(Classed::permanent(format!("no customer {}", received.at.offset)))
            }
            Some(text) if text.starts_with("slow") => {
                Err(Classed::permanent(format!("timed out after {}ms", received.at.offset)))
            }
            _ => Ok(()),
        };
        let orders_of = Subscription::new("orders", "pay").auto_create(true).retry(Class::Permanent, "never");
        let worker = Worker::new(&self.cluster).service("shop").subscribe(orders_of.handler(handler));
        let running = worker.start().await.unwrap();
        let mut status = running.statuses()[0].clone();
        let mut buried = 0;
        for (key, value) in orders {
            self.publish(self.order(key, value)).await;
            buried += u64::from(!value.starts_with("good"));
            // One after the other: keys are handled side by side, and it is told which letter is the newest.
            status.wait_for(|status| status.counts.buried == buried).await.unwrap();
        }
        running.stop().await.unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.arg("dlq").args(args).env_remove("REDRIVE_CONFIG").stdin(Stdio::null());
        if args[0] != "import" || !args.contains(&"--brokers") {
            command.arg("-c").arg(self.file());
        }
        command
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    async fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["-o", "json"]].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }
}

const ORDERS: [(&str, &str); 6] =
    [("a", "bad 1"), ("b", "good"), ("a", "slow 1"), ("c", "bad 2"), ("d", "bad 3"), ("d", "slow 2")];

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_listed_filtered_and_paged() {
    let scene = Scene::new().await;
    scene.bury(&ORDERS).await;
    let listed = scene.run(&["list"]).await;
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert_eq!(listed.out.lines().count(), 6, "{}", listed.out);
    assert!(listed.out.lines().next().unwrap().starts_with("ID"), "{}", listed.out);
    assert!(
        listed.out.contains("orders/0/5") && listed.out.contains("timed out after 5ms"),
        "{}",
        listed.out
    );
    assert!(listed.err.contains("5 letters of 5"), "{}", listed.err);

    let letters = |value: &Value| value["letters"].as_array().unwrap().clone();
    let all = letters(&scene.json(&["list"]).await);
    let one = &all[0];
    assert_eq!((one["group"].as_str(), one["state"].as_str()), (Some("pay"), Some("open")));
    assert_eq!((one["reason"].as_str(), one["class"].as_str()), (Some("permanent"), Some("permanent")));
    assert_eq!((one["key"].as_str(), one["source"]["offset"].as_i64()), (Some("d"), Some(5)));
    for (args, count) in [
        (&["--key", "a"][..], 2),
        (&["--key-pattern", "^[cd]$"], 3),
        (&["--error", "timed out"], 2),
        (&["--error", "\"no customer\""], 3),
        (&["--lane", "d"], 2),
        (&["--topic", "orders", "--group", "pay", "--class", "permanent", "--reason", "permanent"], 5),
        (&["--topic", "orders.pay.dlq", "--attempts", "1.."], 5),
        (&["--since", "1h", "--before", "now"], 5),
        (&["--since", "2h ago"], 5),
        (&["--after", "1h"], 5),
        (&["--after", "2026-11-01"], 5),
        (&["--header", "trace-id=t-bad 2"], 1),
        (&["--header", "trace-id"], 5),
        (&["--state", "all", "--limit", "2"], 2),
    ] {
        let found = letters(&scene.json(&[&["list"], args].concat()).await);
        assert_eq!(found.len(), count, "{args:?}");
    }
    let first = scene.json(&["list", "--limit", "2", "--sort", "oldest"]).await;
    let cursor = first["next"].as_str().unwrap().to_owned();
    let rest = scene.json(&["list", "--sort", "oldest", "--cursor", &cursor]).await;
    let ids = |value: &Value| letters(value).iter().map(|one| one["id"].to_string()).collect::<Vec<_>>();
    let mut newest = [ids(&first), ids(&rest)].concat();
    newest.reverse();
    assert_eq!(newest, all.iter().map(|one| one["id"].to_string()).collect::<Vec<_>>());
    for args in
        [&["--key", "nobody"][..], &["--state", "resolved"], &["--error", "nonsense"], &["--before", "1h"]]
    {
        assert_eq!(scene.run(&[&["list"], args].concat()).await.code, 4, "{args:?}");
    }
    for args in [
        &["--key-pattern", "("][..],
        &["--cursor", "x"],
        &["--state", "shut"],
        &["--attempts", "x"],
        &["--before", "soon"],
    ] {
        let ran = scene.run(&[&["list"], args].concat()).await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
    }
    let lines = scene.run(&["list", "-o", "ndjson"]).await.out;
    assert!(
        lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()) && lines.lines().count() == 5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_grouped_by_their_cause_and_counted() {
    let scene = Scene::new().await;
    scene.bury(&ORDERS).await;
    let groups = scene.json(&["groups"]).await;
    let groups = groups["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{groups:#?}");
    assert_eq!((groups[0]["open"].as_u64(), groups[0]["keys"].as_u64()), (Some(3), Some(3)));
    assert_eq!((groups[0]["state"].as_str(), groups[1]["open"].as_u64()), (Some("new"), Some(2)));
    assert!(groups[0]["error_message"].as_str().unwrap().contains("no customer #"), "{groups:#?}");
    let id = groups[1]["id"].as_str().unwrap();
    let of = scene.json(&["list", "--group", id]).await;
    assert_eq!(of["letters"].as_array().unwrap().len(), 2);
    let table = scene.run(&["groups"]).await;
    assert!(table.out.contains(id) && table.out.contains('█'), "{}", table.out);
    assert_eq!(table.out.lines().count(), 3, "{}", table.out);

    let hours = scene.run(&["stats", "--by", "hour"]).await;
    assert!(hours.out.contains("████") && hours.err.contains("5 letters, 5 of them open"), "{}", hours.out);
    for (by, rows) in [("day", 1), ("topic", 1), ("group", 1), ("error", 1)] {
        let stats = scene.json(&["stats", "--by", by]).await;
        let stats = stats["stats"].as_array().unwrap();
        assert!(stats.len() >= rows, "{by}: {stats:#?}");
        assert_eq!(stats.iter().map(|bar| bar["letters"].as_u64().unwrap()).sum::<u64>(), 5, "{by}");
    }
    assert_eq!(scene.run(&["groups", "--topic", "nothing"]).await.code, 4);
    assert_eq!(scene.run(&["stats", "--topic", "nothing"]).await.code, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_shown_with_what_belongs_to_it_and_its_payload_is_saved() {
    let scene = Scene::new().await;
    scene.bury(&ORDERS).await;
    let listed = scene.json(&["list", "--key", "d", "--sort", "oldest"]).await;
    let id = listed["letters"][0]["id"].as_str().unwrap().to_owned();
    let shown = scene.json(&["show", &id]).await;
    assert_eq!((shown["payload"].as_str(), shown["service"].as_str()), (Some("bad 3"), Some("shop")));
    assert_eq!(shown["source"]["topic"].as_str(), Some("orders"));
    assert_eq!(shown["links"]["logs"].as_str(), Some("https://logs.example/shop?order=orders/4"));
    assert_eq!(shown["links"]["traces"].as_str(), Some("https://traces.example/t-bad%203"));
    assert_eq!(shown["same_lane"].as_array().unwrap().len(), 1);
    assert_eq!(shown["same_error"].as_array().unwrap().len(), 2);
    assert!(!shown["timeline"].as_array().unwrap().is_empty());
    let text = scene.run(&["show", &id]).await.out;
    for part in
        ["letter       ", "orders/0/4", "no customer 4", "same error", "bad 3", "https://logs.example"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let file = scene.folder.path().join("payload");
    let saved = scene.run(&["show", &id, "--payload", file.to_str().unwrap()]).await;
    assert_eq!((saved.code, fs::read(&file).unwrap()), (0, b"bad 3".to_vec()));

    // One that only points to its payload, and one that points to nothing any more.
    for (offset, code) in [(0, 0), (99, 1)] {
        let pointer = Outgoing::to("orders.pay.dlq".parse().unwrap())
            .partition(1)
            .header("redrive-origin", format!("orders/0/{offset}"))
            .header("redrive-reason", "permanent")
            .header("redrive-pointer", format!("orders/0/{offset}"));
        scene.publish(pointer).await;
        let listed = scene
            .json(&["list", "--topic", "orders.pay.dlq", "--reason", "permanent", "--sort", "newest"])
            .await;
        let id = listed["letters"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["source"]["offset"] == offset && one["pointer"] == true);
        let id = id.unwrap()["id"].as_str().unwrap().to_owned();
        let saved = scene.run(&["show", &id, "--payload", file.to_str().unwrap()]).await;
        assert_eq!(saved.code, code, "{}", saved.err);
    }
    assert_eq!(fs::read(&file).unwrap(), b"bad 1");
    for id in ["orders.pay.dlq/0/77", "nothing.dlq/0/1", "orders.pay.dlq/9/1"] {
        assert_eq!(scene.run(&["show", id]).await.code, 4, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_imported_as_it_was() {
    let scene = Scene::new().await;
    scene.bury(&ORDERS).await;
    let bad: &[u8] = &[0xff, 0, b'x'];
    let spring = Outgoing::to("orders.pay.dlq".parse().unwrap()).partition(1).key(bad).value(bad);
    scene.publish(spring.header("kafka_dlt-original-topic", "orders").header("odd", bad)).await;
    for (header, code) in [("odd=0xff0078", 0), ("odd=0xff0079", 4), ("odd=0xff", 4)] {
        let found = scene.run(&["list", "--header", header, "-o", "ndjson"]).await;
        assert_eq!((found.code, found.out.lines().count()), (code, usize::from(code == 0)), "{header}");
    }
    let exported = scene.run(&["export"]).await;
    assert_eq!((exported.code, exported.out.lines().count()), (0, 6), "{}", exported.err);
    let file = scene.folder.path().join("letters.ndjson");
    fs::write(&file, &exported.out).unwrap();
    scene.cluster.create_topic("copy.dlq", 2).await.unwrap();
    let dry = scene.run(&["import", file.to_str().unwrap(), "--to", "copy.dlq", "--dry-run"]).await;
    assert!(dry.code == 0 && dry.err.contains("6 letters would be written"), "{}", dry.err);
    let imported = scene.run(&["import", file.to_str().unwrap(), "--to", "copy.dlq"]).await;
    assert!(imported.code == 0 && imported.err.contains("6 letters written"), "{}", imported.err);
    let again = scene.run(&["export", "--topic", "copy.dlq", "--letters", "copy.dlq"]).await;
    let records = |text: &str| {
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut lines {
            for name in ["topic", "offset", "letter"] {
                line.as_object_mut().unwrap().remove(name);
            }
        }
        lines.sort_by_key(ToString::to_string);
        lines
    };
    assert_eq!(records(&again.out), records(&exported.out));

    let metadata = scene.run(&["export", "--metadata", "--key", "a", "--topic", "orders.pay.dlq"]).await;
    let line: Value = serde_json::from_str(metadata.out.lines().next().unwrap()).unwrap();
    assert!(line["payload"].as_str().unwrap().starts_with("redrive dlq show orders.pay.dlq/0/"), "{line}");
    let bulk =
        scene.run(&["export", "--elastic", "letters", "--key", "a", "--topic", "orders.pay.dlq"]).await;
    let deed: Value = serde_json::from_str(bulk.out.lines().next().unwrap()).unwrap();
    assert_eq!((bulk.out.lines().count(), deed["index"]["_index"].as_str()), (4, Some("letters")));
    assert_eq!(scene.run(&["export", "--key", "nobody"]).await.code, 4);
    fs::write(&file, "{}\n").unwrap();
    assert_eq!(scene.run(&["import", file.to_str().unwrap()]).await.code, 1);
}

/// Ended when it goes.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_told_as_they_come() {
    let scene = Scene::new().await;
    scene.bury(&[("a", "bad 1")]).await;
    let mut command = scene.command(&["export", "--follow"]);
    let mut following = Following(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let out = following.0.stdout.take().unwrap();
    let (lines, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    let mut next = async || {
        let line =
            tokio::time::timeout(Duration::from_secs(30), told.recv()).await.expect("in time").unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["key"].as_str().unwrap().to_owned()
    };
    assert_eq!(next().await, "a");
    scene.bury(&[("b", "bad 2")]).await;
    assert_eq!(next().await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_damaged_is_told_and_built_anew() {
    let scene = Scene::new().await;
    scene.bury(&ORDERS).await;
    assert_eq!(scene.run(&["list"]).await.code, 0);
    let folder = scene.folder.path().join("state");
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let index = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    fs::write(&index, "nonsense ".repeat(1_000)).unwrap();
    let listed = scene.run(&["list"]).await;
    assert!(listed.code == 0 && listed.err.contains("was damaged"), "{}", listed.err);
    assert!(listed.err.contains("5 letters of 5"), "{}", listed.err);
    assert!(index.with_extension("db.damaged").exists());
}
