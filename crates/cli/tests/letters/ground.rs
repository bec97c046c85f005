//! Letters on a broker inside the test, and the program as child processes.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use redrive::{Cluster, Outgoing, Publisher, Publishing};
use redrive_core::Record;
use redrive_kafka::{Passage, read_through};

pub(crate) const LETTERS: &str = "orders.billing.dlq";

/// Topics `orders` and its letters of two partitions, without letters.
pub(crate) async fn cluster() -> Cluster {
    let cluster = Cluster::open("embedded").await.unwrap();
    for name in ["orders", LETTERS] {
        cluster.create_topic(name, 2).await.unwrap();
    }
    cluster
}

/// Letters as Redrive writes them, the last origins first.
pub(crate) async fn put(cluster: &Cluster, count: i64) {
    put_into(cluster, "orders", LETTERS, count).await;
}

/// The same for letters of any topic.
pub(crate) async fn put_into(cluster: &Cluster, source: &str, letters: &str, count: i64) {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let letter = |n: i64| {
        let partition = i32::try_from(n % 2).unwrap();
        Outgoing::to(letters.parse().unwrap())
            .partition(partition)
            .key(format!("k{}", n % 10))
            .value(n.to_string())
            .header("mine", "1")
            .header("redrive-origin", format!("{source}/{partition}/{n}"))
            .header("redrive-group", "billing")
            .header("redrive-reason", "permanent")
            .header("redrive-error-type", "NoSuchCustomer")
            .header("redrive-error-message", "no such customer")
            .header("redrive-buried-at", "1700000000000")
    };
    let sent: Vec<_> = (0..count).rev().map(|n| publisher.publish(letter(n))).collect();
    for sent in sent {
        sent.await.unwrap();
    }
}

/// Everything that a read-committed reader finds in a topic of two partitions, in order.
pub(crate) async fn all(cluster: &Cluster, topic: &str) -> Vec<Record> {
    let keep = |records: &mut Vec<Record>, passage| match passage {
        Passage::Begin { .. } => {}
        Passage::Record(record) => records.push(record),
    };
    let read = read_through(cluster.settings(), topic.parse().unwrap(), vec![0, 1], Vec::new(), keep);
    let mut records = read.await.unwrap();
    records.sort_by(|one, other| one.at.cmp(&other.at));
    records
}

/// The program with these arguments, for this cluster.
pub(crate) fn command(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(arguments).args(["--brokers", &cluster.settings().brokers]).current_dir(folder);
    command
        .env("REDRIVE_STATE", folder)
        .env("USER", "ann")
        .env("HOSTNAME", "here")
        .env_remove("REDRIVE_CONFIG");
    command.stdin(Stdio::null());
    command
}

pub(crate) fn start(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Child {
    command(cluster, folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs it to its end, without holding up the broker, which lives in this process.
pub(crate) async fn run(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = command(cluster, folder, arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// The exit code, and what it wrote to stdout and stderr.
pub(crate) fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
