//! What `redrive run` costs: its pushes beside a bare load client on the same endpoint, a hundred
//! subscriptions that idle, and the time it adds.
//!
//! `cargo build --release -p redrive-bench -p redrive-cli --bin service --bin redrive`, then `target/release/service`. It measures
//! on the embedded broker, or where `REDRIVE_KAFKA` says. Broker, program, endpoint and load client are processes
//! of their own.

mod clock;
mod endpoint;
mod idle;
mod latency;
#[path = "../worker/load.rs"]
mod load;
#[path = "../broker/process.rs"]
#[allow(dead_code, reason = "no server is looked for here")]
mod process;
mod program;
mod push;
#[path = "../broker/serve.rs"]
mod serve;
mod wire;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use redrive::Cluster;

/// Anything that went wrong; there is nobody to tell it but whoever started this.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "redrive run, measured")]
struct Args {
    #[command(flatten)]
    sizes: Sizes,
    #[command(subcommand)]
    mode: Option<Mode>,
}

/// What there is to measure.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Part {
    Push,
    Idle,
    Latency,
}

/// How much of everything.
#[derive(clap::Args, Clone)]
struct Sizes {
    /// Kafka's addresses, instead of the embedded broker
    #[arg(long, env = "REDRIVE_KAFKA")]
    kafka: Option<String>,
    /// What is measured
    #[arg(long, value_enum, value_delimiter = ',', default_value = "push,idle,latency")]
    parts: Vec<Part>,
    /// Records that are pushed, each time
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Bytes of a record's value
    #[arg(long, default_value_t = 1_024)]
    size: usize,
    /// Requests at once
    #[arg(long, value_delimiter = ',', default_value = "64")]
    concurrency: Vec<usize>,
    /// How often both are measured, in turn; the medians count
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// Subscriptions that idle
    #[arg(long, default_value_t = 100)]
    subscriptions: usize,
    /// Partitions of the topic of each of them
    #[arg(long, default_value_t = 1)]
    partitions: i32,
    /// Seconds over which they idle
    #[arg(long, default_value_t = 20)]
    idle: u64,
    /// Records a second for the latency
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds over which it is measured
    #[arg(long, default_value_t = 20)]
    seconds: u32,
}

#[derive(Subcommand)]
enum Mode {
    /// Be the embedded broker until the standard input ends
    #[command(hide = true)]
    Serve { data: PathBuf },
    /// Be the endpoint
    #[command(hide = true)]
    Endpoint,
    /// Be the load client
    #[command(hide = true)]
    Load { address: String, requests: u64, concurrency: usize, size: usize },
}

fn main() -> Outcome<()> {
    let args = Args::parse();
    match args.mode {
        Some(Mode::Serve { data }) => serve::until_input_ends(data),
        Some(Mode::Endpoint) => runtime()?.block_on(endpoint::serve())?,
        Some(Mode::Load { address, requests, concurrency, size }) => {
            runtime()?.block_on(wire::load(&address, requests, concurrency, size))?;
        }
        None => runtime()?.block_on(measure(&args.sizes))?,
    }
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

async fn measure(sizes: &Sizes) -> Outcome<()> {
    let data = tempfile::tempdir()?;
    let embedded = sizes.kafka.is_none().then(|| process::Embedded::start(data.path()));
    let brokers = embedded.as_ref().map(|broker| broker.address.clone()).or_else(|| sizes.kafka.clone());
    let cluster = Cluster::open(&brokers.unwrap_or_default()).await.map_err(|error| error.to_string())?;
    println!("| measured | is | asked |\n|---|---:|---:|");
    for part in &sizes.parts {
        match part {
            Part::Push => push::measure(&cluster, sizes, data.path()).await?,
            Part::Idle => idle::measure(&cluster, sizes, data.path()).await?,
            Part::Latency => latency::measure(&cluster, sizes, data.path()).await?,
        }
    }
    load::remove_all(&cluster).await.map_err(|error| error.to_string())?;
    Ok(())
}
