//! Records sent by the program, now and at a time, on the embedded broker.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redrive::{Cluster, Origin, Reader, Record};
use redrive_core::headers::Headers;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn program(cluster: &Cluster, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(args).args(["--brokers", &cluster.settings().brokers]).env_remove("REDRIVE_CONFIG");
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program with this on its stdin.
async fn run(cluster: &Cluster, args: &[&str], input: &'static [u8]) -> Ran {
    let mut command = program(cluster, args);
    // The broker lives on this runtime, which must not wait.
    let ran = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        // It may have ended without reading it.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    });
    let output = ran.await.unwrap();
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

async fn records(cluster: &Cluster, topic: &str, partition: i32, count: usize) -> Vec<Record> {
    let from = Origin { topic: topic.parse().unwrap(), partition, offset: 0 };
    let reader = Reader::from(cluster.settings(), from).unwrap();
    let mut records = Vec::new();
    while records.len() < count {
        let next = tokio::time::timeout(PATIENCE, reader.next()).await;
        records.push(next.unwrap_or_else(|_| panic!("{count} records did not come: {records:?}")).unwrap());
    }
    records
}

async fn cluster() -> Cluster {
    let cluster = Cluster::open("embedded").await.unwrap();
    cluster.create_topic("orders", 3).await.unwrap();
    cluster
}

fn stop(deliverer: Child) -> (i32, String) {
    let stopped = Command::new("kill").args(["-INT", &deliverer.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let output = deliverer.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_sent_at_once_byte_for_byte() {
    let cluster = cluster().await;
    let at = ["send", "orders", "--partition", "1", "--key", "k", "-H", "a=1=2", "-H", "b=", "-H", "a=x"];
    let piped = run(&cluster, &at, b"\x00\xff\n").await;
    assert_eq!((piped.code, piped.out.as_str()), (0, "orders/1/0\n"), "{}", piped.err);
    let null = run(&cluster, &["send", "orders", "--partition", "1", "--tombstone", "--json"], b"").await;
    let told: Value = serde_json::from_str(&null.out).unwrap();
    assert_eq!(told["origin"], "orders/1/1");
    let found = records(&cluster, "orders", 1, 2).await;
    assert_eq!(
        (found[0].key.as_deref(), found[0].value.as_deref()),
        (Some(&b"k"[..]), Some(&b"\x00\xff\n"[..]))
    );
    let headers: Headers = [("a", Some("1=2")), ("b", Some("")), ("a", Some("x"))].into_iter().collect();
    assert_eq!(found[0].headers, headers);
    assert_eq!((&found[1].key, &found[1].value), (&None, &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_with_a_time_waits_for_a_deliverer_and_then_for_its_time() {
    let cluster = cluster().await;
    let args =
        ["send", "orders", "--partition", "2", "--key", "k", "--value", "soon", "-H", "a=b", "--in", "1s"];
    let queued = run(&cluster, &args, b"").await;
    assert_eq!(queued.code, 0, "{}", queued.err);
    assert!(queued.out.starts_with("redrive.send/"), "{}", queued.out);
    assert!(queued.err.contains("no deliverer runs: redrive send --deliver"), "{}", queued.err);
    let deliverer = program(&cluster, &["send", "--deliver"]).spawn().unwrap();
    let found = records(&cluster, "orders", 2, 1).await;
    assert_eq!((found[0].key.as_deref(), found[0].value.as_deref()), (Some(&b"k"[..]), Some(&b"soon"[..])));
    assert_eq!(found[0].headers, [("a", Some("b"))].into_iter().collect());
    let later =
        run(&cluster, &["send", "orders", "--value", "x", "--at", "2099-01-01T00:00:00Z", "--json"], b"")
            .await;
    let told: Value = serde_json::from_str(&later.out).unwrap();
    assert_eq!((&told["due"], &told["deliverer"]), (&"2099-01-01T00:00:00Z".into(), &"runs".into()));
    let past =
        run(&cluster, &["send", "orders", "--partition", "0", "--value", "x", "--at", "-1h"], b"").await;
    assert_eq!((past.code, past.out.as_str()), (0, "orders/0/0\n"), "{}", past.err);
    let (code, err) = tokio::task::spawn_blocking(move || stop(deliverer)).await.unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(err.ends_with("stopped\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_with_what_helps() {
    let cluster = cluster().await;
    let near = run(&cluster, &["send", "order", "--value", "x", "--in", "1h"], b"").await;
    assert_eq!((near.code, near.out.as_str()), (1, ""));
    assert!(near.err.contains("did you mean orders?"), "{}", near.err);
    assert_eq!(run(&cluster, &["send", "orders", "--value", "x", "--partition", "3"], b"").await.code, 2);
    for wrong in [
        &["send"][..],
        &["send", "orders", "--value", "x", "--header", "nothing"],
        &["send", "orders", "--value", "x", "--in", "1h", "--at", "now"],
        &["send", "orders", "--value", "x", "--at", "tomorrow"],
        &["send", "orders", "--deliver"],
    ] {
        assert_eq!(run(&cluster, wrong, b"").await.code, 2, "{wrong:?}");
    }
    let file = run(&cluster, &["send", "orders", "--value-file", "/no/such/file"], b"").await;
    assert_eq!(file.code, 1);
    assert!(file.err.contains("/no/such/file"), "{}", file.err);
}
