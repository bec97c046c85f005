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

/// How much of everything.
#[derive(clap::Args, Clone)]
struct Sizes {
    /// Records produced and consumed, each time.
    #[arg(long, default_value_t = 500_000)]
    records: u64,
    /// Bytes of a record's value.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Partitions of the topics of the throughput, one run each.
    #[arg(long, value_delimiter = ',', default_value = "1,12")]
    partitions: Vec<i32>,
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
    measure_embedded(&args.sizes, &mut table);
    match std::env::var("REDRIVE_KAFKA") {
        Ok(address) => measure(&Cluster::at(&address), &args.sizes, &mut table),
        Err(_) => eprintln!("no Apache Kafka: REDRIVE_KAFKA is not set"),
    }
    println!("{table}");
}

fn measure_embedded(sizes: &Sizes, table: &mut Table) {
    let data = tempfile::tempdir().expect("a directory for the log");
    table.note("start to listening, ms", "embedded", latency::of_listening(&data.path().join("listen")));
    table.note("start to first record, ms", "embedded", latency::of_start(&data.path().join("start")));
    let broker = process::Embedded::start(&data.path().join("data"));
    measure(&Cluster::embedded(&broker), sizes, table);
}

/// Everything that is measured alike.
fn measure(cluster: &Cluster, sizes: &Sizes, table: &mut Table) {
    let name = cluster.name;
    // First, while nothing that was measured is still being tidied away.
    let idle = idle::processor_share(cluster, sizes);
    table.note(&format!("idle with {} topics of 12, % of a core", sizes.topics), name, idle);

    let mut topics = Vec::new();
    for partitions in &sizes.partitions {
        let topic = cluster.topic(&format!("throughput-{partitions}"), *partitions);
        let what = format!("{}k × {} B, {partitions} partition(s)", sizes.records / 1000, sizes.size);
        let produced = throughput::produce(cluster, &topic, *partitions, sizes);
        table.note(&format!("{what}: produced a second"), name, produced);
        let consumed = throughput::consume(cluster, &topic, *partitions, sizes);
        table.note(&format!("{what}: consumed a second"), name, consumed);
        topics.push(topic);
    }
    let kept = sizes.records * sizes.size as u64 * sizes.partitions.len() as u64 / 1_000_000;
    table.note(
        &format!("resident memory with {kept} MB in the logs, MB"),
        name,
        process::resident(cluster.process),
    );
    cluster.remove(&topics);

    table.note("a new client to its first record, ms", name, latency::of_client(cluster));
    let few = latency::through(cluster, 1, sizes.timed);
    table.note("produce to consume, p50, ms", name, few.p50);
    table.note("produce to consume, p99, ms", name, few.p99);
    let many = latency::through(cluster, sizes.many, sizes.timed);
    table.note(&format!("one consumer on {} partitions, p99, ms", sizes.many), name, many.p99);
}
