//! What the tests share: letters on a broker inside the test, and jobs about them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing};
use redrive_core::{Record, Topic};
use redrive_kafka::{Passage, read_through};
use redrive_letters::Letter;
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::replay::{
    self, Candidate, Destinations, Ended, Held, Plan, Progress, Running, Start, Wanted,
};
use tokio::sync::watch;

pub(crate) fn topic(name: &str) -> Topic {
    name.parse().unwrap()
}

pub(crate) fn wanted(to: Whereto, options: Options) -> Wanted {
    Wanted {
        kind: Kind::Replay,
        by: "ann@here".to_owned(),
        reason: "fixed".to_owned(),
        query: "--all".to_owned(),
        to,
        options,
        lanes: None,
    }
}

/// Makes a test per broker of each function: `a_sentence::embedded` and `::kafka`.
macro_rules! on_both {
    ($($sentence:ident),+ $(,)?) => { $(
        mod $sentence {
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn embedded() {
                super::$sentence(redrive::Cluster::open("embedded").await.unwrap()).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn kafka() {
                let Some(kafka) = redrive_testkit::kafka() else { return };
                super::$sentence(redrive::Cluster::with(&kafka.brokers, kafka.properties).await.unwrap()).await;
            }
        }
    )+ };
}
pub(crate) use on_both;

/// A topic of three partitions and one for its letters, with names that no other test has.
pub(crate) async fn topics(cluster: &Cluster) -> (String, String) {
    let source = redrive_testkit::new_name("replay");
    let letters = format!("{source}.billing.dlq");
    for name in [&source, &letters] {
        cluster.create_topic(name, 3).await.unwrap();
    }
    (source, letters)
}

/// A letter as Redrive writes it.
pub(crate) fn letter(source: &str, letters: &str, partition: i32, origin: i64, key: &str) -> Outgoing {
    Outgoing::to(topic(letters))
        .partition(partition)
        .key(key.to_owned())
        .value(format!("{partition}/{origin}"))
        .header("trace", "t-1")
        .header("redrive-origin", format!("{source}/{partition}/{origin}"))
        .header("redrive-group", "billing")
        .header("redrive-reason", "permanent")
        .header("redrive-error-message", "no such customer")
        .header("redrive-buried-at", "1700000000000")
        .header("redrive-attempt", "3")
}

pub(crate) async fn put(cluster: &Cluster, letters: Vec<Outgoing>) {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let sent: Vec<_> = letters.into_iter().map(|letter| publisher.publish(letter)).collect();
    for sent in sent {
        sent.await.unwrap();
    }
}

/// Everything that a read-committed reader finds in a topic, partition by partition.
pub(crate) async fn all(cluster: &Cluster, name: &str, partitions: i32) -> Vec<Record> {
    let keep = |records: &mut Vec<Record>, passage| match passage {
        Passage::Begin { .. } => {}
        Passage::Record(record) => records.push(record),
    };
    let read = read_through(cluster.settings(), topic(name), (0..partitions).collect(), Vec::new(), keep);
    let mut records = read.await.unwrap();
    records.sort_by(|one, other| one.at.cmp(&other.at));
    records
}

pub(crate) async fn candidates(cluster: &Cluster, letters: &str, partitions: i32) -> Vec<Candidate> {
    let records = all(cluster, letters, partitions).await;
    records.iter().map(|record| Candidate::of(&Letter::read(record))).collect()
}

pub(crate) fn destinations(cluster: &Cluster, to: &Whereto) -> Destinations {
    Destinations::new(cluster.settings(), to.clone(), BTreeMap::new()).unwrap()
}

pub(crate) async fn begin(
    cluster: &Cluster,
    wanted: &Wanted,
    candidates: &[Candidate],
) -> (Option<Held>, Plan) {
    let clock = Clock::system();
    let mut there = destinations(cluster, &wanted.to);
    match replay::begin(cluster.settings(), &clock, wanted, candidates, &mut there).await.unwrap() {
        Start::Begun { job, plan } => (Some(*job), plan),
        Start::Nothing(plan) => (None, plan),
    }
}

/// What a process has that runs jobs.
pub(crate) struct Process {
    pub(crate) running: Running,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) progress: watch::Receiver<Progress>,
}

pub(crate) fn process(cluster: &Cluster) -> Process {
    let (stop, stopped) = watch::channel(false);
    let (tell, progress) = watch::channel(Progress::default());
    let running = Running {
        settings: cluster.settings().clone(),
        clock: Clock::system(),
        by: "ann@here".to_owned(),
        patience: Duration::from_secs(30),
        stop: stopped,
        progress: tell,
    };
    Process { running, stop, progress }
}

pub(crate) async fn run(cluster: &Cluster, job: Held, to: &Whereto) -> Ended {
    let process = process(cluster);
    replay::run(&process.running, job, || Ok(destinations(cluster, to))).await.unwrap()
}

pub(crate) fn text(bytes: Option<&Bytes>) -> String {
    String::from_utf8_lossy(bytes.map_or(&[], |bytes| bytes)).into_owned()
}
