//! The embedded broker measured beside Apache Kafka, in one run on one machine:
//! `cargo run --release -p redrive-bench --bin broker`. Kafka is measured where `REDRIVE_KAFKA` names it.
//!
//! The embedded broker runs in a process of its own, with its log on disk, so that its processor time
//! and memory are its own.

mod clock;
mod cluster;
mod idle;
mod latency;
mod process;
mod serve;
mod table;
mod throughput;

use clap::{Parser, Subcommand};

use cluster::Cluster;
use table::Table;

#[derive(Parser)]
#[command(about = "The embedded broker measured beside Apache Kafka")]
struct Args {
    #[command(flatten)]
    sizes: Sizes,
    #[command(subcommand)]
    mode: Option<Mode>,
}

/// What there is to measure beside the start.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Part {
    Idle,
    Produce,
    Consume,
    Latency,
}

/// How much of everything.
#[derive(clap::Args, Clone)]
struct Sizes {
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "idle,produce,consume,latency")]
    parts: Vec<Part>,
    /// Records produced and consumed, each time.
    #[arg(long, default_value_t = 500_000)]
    records: u64,
    /// Bytes of a record's value.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Partitions of the topics of the throughput, one run each.
    #[arg(long, value_delimiter = ',', default_value = "1,12")]
    partitions: Vec<i32>,
    /// Times that all records are produced, and consumed: the middle one counts.
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// Records of a batch in what is consumed.
    #[arg(long, default_value_t = 960)]
    batch: u64,
    /// Records whose way is timed.
    #[arg(long, default_value_t = 3_000)]
    timed: usize,
    /// Partitions of the one consumer that has many.
    #[arg(long, default_value_t = 1_200)]
    many: i32,
    /// Topics of twelve partitions while idle.
    #[arg(long, default_value_t = 100)]
    topics: usize,
    /// Seconds over which the idle processor time is taken.
    #[arg(long, default_value_t = 20)]
    idle: u64,
}

#[derive(Subcommand)]
enum Mode {
    /// Be the embedded broker until the standard input ends.
    #[command(hide = true)]
    Serve {
        /// Where its log is.
        data: std::path::PathBuf,
    },
}

fn main() {
    let args = Args::parse();
    if let Some(Mode::Serve { data }) = args.mode {
        return serve::until_input_ends(data);
    }
    let mut table = Table::default();
    let data = tempfile::tempdir().expect("a directory for the log");
    table.note("start to listening, ms", "embedded", latency::of_listening(&data.path().join("listen")));
    table.note("start to first record, ms", "embedded", latency::of_start(&data.path().join("start")));
    let broker = process::Embedded::start(&data.path().join("data"));
    let mut clusters = vec![Cluster::embedded(&broker)];
    match std::env::var("REDRIVE_KAFKA") {
        Ok(address) => clusters.push(Cluster::at(&address)),
        Err(_) => eprintln!("no Apache Kafka: REDRIVE_KAFKA is not set"),
    }
    measure(&clusters, &args.sizes, &mut table);
    println!("{table}");
}

/// Everything that is measured alike, on one broker after the other.
fn measure(clusters: &[Cluster], sizes: &Sizes, table: &mut Table) {
    let wanted = |part: Part| sizes.parts.contains(&part);
    // First, while nothing that was measured is still being tidied away.
    for cluster in clusters.iter().filter(|_| wanted(Part::Idle)) {
        let idle = idle::processor_share(cluster, sizes);
        table.note(&format!("idle with {} topics of 12, % of a core", sizes.topics), cluster.name, idle);
    }
    for partitions in sizes.partitions.iter().filter(|_| wanted(Part::Produce)) {
        throughput::produce(clusters, *partitions, sizes, table);
    }
    if wanted(Part::Consume) {
        consumption(clusters, sizes, table);
    }
    for cluster in clusters.iter().filter(|_| wanted(Part::Latency)) {
        latencies(cluster, sizes, table);
    }
}

fn consumption(clusters: &[Cluster], sizes: &Sizes, table: &mut Table) {
    let topics = sizes.partitions.iter().map(|count| throughput::consume(clusters, *count, sizes, table));
    let topics: Vec<String> = topics.collect();
    let megabytes = sizes.records * sizes.size as u64 * sizes.partitions.len() as u64 / 1_000_000;
    for cluster in clusters {
        let what = format!("resident memory with {megabytes} MB in the logs, MB");
        table.note(&what, cluster.name, process::resident(cluster.process));
        cluster.remove(&topics);
    }
}

fn latencies(cluster: &Cluster, sizes: &Sizes, table: &mut Table) {
    let name = cluster.name;
    table.note("a new client to its first record, ms", name, latency::of_client(cluster));
    let few = latency::through(cluster, 1, sizes.timed);
    table.note("produce to consume, p50, ms", name, few.p50);
    table.note("produce to consume, p99, ms", name, few.p99);
    let many = latency::through(cluster, sizes.many, sizes.timed);
    table.note(&format!("one consumer on {} partitions, p99, ms", sizes.many), name, many.p99);
}
