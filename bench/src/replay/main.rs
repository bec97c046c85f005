//! A replay beside a bare copy of the same records: consumed and produced, with nothing else. On real Kafka
//! (`eval "$(tools/kafka env)"` first), or on the embedded broker.

mod bare;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../worker/clock.rs"]
mod clock;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../worker/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing};
use redrive_core::Topic;
use redrive_kafka::{Passage, read_through};
use redrive_letters::Letter;
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::replay::{self, Candidate, Destinations, Ended, Progress, Running, Start, Wanted};
use tokio::sync::watch;

/// As the program `redrive` has it.
#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Measures replays.
#[derive(Parser)]
struct Args {
    /// Kafka's addresses
    #[arg(long, env = "REDRIVE_KAFKA", required_unless_present = "embedded")]
    kafka: Option<String>,
    /// On the embedded broker, inside this process
    #[arg(long)]
    embedded: bool,
    /// How many letters
    #[arg(long, default_value_t = 500_000)]
    letters: u64,
    /// The size of each payload
    #[arg(long, default_value_t = 1_024)]
    bytes: usize,
    /// Partitions
    #[arg(long, default_value_t = 6)]
    partitions: i32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    redrive_allocator::keep_for_a_moment();
    let args = Args::parse();
    let data = tempfile::tempdir()?;
    let cluster = if args.embedded {
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        Cluster::embedded_at(listen, Some(data.path().join("broker")), Vec::new()).await?
    } else {
        Cluster::open(args.kafka.as_deref().unwrap_or_default()).await?
    };
    for topic in ["orders", "measured.billing.dlq", "bare", "sent"] {
        cluster.create_topic(topic, args.partitions).await?;
    }
    fill(&cluster, &args).await?;
    println!("| measured | figure |\n|---|---|");
    let (settings, count, partitions) = (cluster.settings().clone(), args.letters, args.partitions);
    let bare = tokio::task::spawn_blocking(move || bare::copy(&settings, partitions, count)).await??;
    row("bare copy", args.letters, bare);

    let candidates = candidates(&cluster, args.partitions).await?;
    assert_eq!(candidates.len() as u64, args.letters, "every letter is found");
    let to = Whereto::Topic("sent".parse()?);
    let begun = clock::now();
    let start = begin(&cluster, &to, &candidates).await?;
    drop(candidates);
    println!("| begun, its selection frozen and read back | {:.2} s |", begun.elapsed().as_secs_f64());
    let Start::Begun { job, .. } = start else { return Err("nothing was begun".into()) };
    let before = machine::resident();
    let (_stop, stopped) = watch::channel(false);
    let (tell, mut progress) = watch::channel(Progress::default());
    let running = Running {
        settings: cluster.settings().clone(),
        clock: Clock::system(),
        by: "bench".to_owned(),
        patience: Duration::from_secs(1),
        stop: stopped,
        progress: tell,
    };
    let destinations = || Destinations::new(cluster.settings(), to.clone(), BTreeMap::new());
    let begun = clock::now();
    let watching = async {
        let mut most: f64 = 0.0;
        while progress.changed().await.is_ok() {
            most = most.max(machine::resident());
            if progress.borrow_and_update().upto == args.letters {
                break;
            }
        }
        most
    };
    let (ended, most) = tokio::join!(replay::run(&running, *job, destinations), watching);
    let took = begun.elapsed();
    assert_eq!(ended?, Ended::Finished);
    row("replay", args.letters, took);
    println!("| share of the bare copy | {:.2} |", bare.as_secs_f64() / took.as_secs_f64());
    println!("| memory before, and most while sending | {before:.0} MB, {most:.0} MB |");
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "a figure to read")]
fn row(what: &str, letters: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    println!("| {what} of {letters} | {seconds:.2} s, {:.0}/s |", letters as f64 / seconds);
}

async fn fill(cluster: &Cluster, args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    let topic: Topic = "measured.billing.dlq".parse()?;
    let value = bytes::Bytes::from(vec![b'x'; args.bytes]);
    let mut last = None;
    for n in 0..args.letters {
        let partition = i32::try_from(n % u64::try_from(args.partitions)?)?;
        let letter = Outgoing::to(topic.clone())
            .partition(partition)
            .key(format!("customer-{}", n % 10_000))
            .value(value.clone())
            .header("trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
            .header("redrive-origin", format!("orders/{partition}/{n}"))
            .header("redrive-group", "billing")
            .header("redrive-reason", "exhausted")
            .header("redrive-error-type", "NoSuchCustomer")
            .header("redrive-error-message", "no such customer 4711 in the ledger of this year")
            .header("redrive-attempt", "7")
            .header("redrive-buried-at", "1700000000000");
        last = Some(publisher.publish(letter));
        if n % 10_000 == 9_999 {
            publisher.flush().await;
        }
    }
    publisher.flush().await;
    if let Some(last) = last {
        last.await?;
    }
    Ok(())
}

async fn candidates(cluster: &Cluster, partitions: i32) -> Result<Vec<Candidate>, redrive_kafka::Error> {
    let keep = |letters: &mut Vec<Candidate>, passage| match passage {
        Passage::Begin { .. } => {}
        Passage::Record(record) => letters.push(Candidate::of(&Letter::read(&record))),
    };
    let topic = "measured.billing.dlq".parse()?;
    read_through(cluster.settings(), topic, (0..partitions).collect(), Vec::new(), keep).await
}

async fn begin(cluster: &Cluster, to: &Whereto, candidates: &[Candidate]) -> Result<Start, replay::Error> {
    let wanted = Wanted {
        kind: Kind::Replay,
        by: "bench".to_owned(),
        reason: "measured".to_owned(),
        query: "all".to_owned(),
        to: to.clone(),
        options: Options::default(),
        lanes: None,
    };
    let mut destinations = Destinations::new(cluster.settings(), to.clone(), BTreeMap::new())?;
    replay::begin(cluster.settings(), &Clock::system(), &wanted, candidates, &mut destinations).await
}
