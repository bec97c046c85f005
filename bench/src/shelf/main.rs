//! What the shelf costs and how exact it is, on real Kafka, in one run.
//!
//! `eval "$(tools/kafka env)"` first.

#[path = "../worker/clock.rs"]
mod clock;
#[path = "../worker/wait.rs"]
mod exact_wait;
mod figures;
#[path = "../worker/load.rs"]
mod load;
#[allow(dead_code, reason = "the worker's measurements use the rest")]
#[path = "../worker/machine.rs"]
mod machine;
mod plain;
mod scenes;
mod told;

use clap::Parser;
use redrive::Cluster;

/// As the program `redrive` has it.
#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Measures the shelf.
#[derive(Parser)]
struct Args {
    /// Kafka's addresses
    #[arg(long, env = "REDRIVE_KAFKA")]
    kafka: String,
    /// Only these, by a part of their name: exact, through, retries, ordered, hot, waiting, growth
    #[arg(long)]
    only: Option<String>,
    /// Records that wait at once, for what they take and how fast they are taken over
    #[arg(long, default_value_t = 2_000_000)]
    waiting: u64,
    /// Short waits beside one of a month
    #[arg(long, default_value_t = 10_000_000)]
    short: u64,
    /// Only take this shelf over, which holds so many records: `topic group records`
    #[arg(long, num_args = 3, hide = true)]
    take_over: Option<Vec<String>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    redrive_allocator::keep_for_a_moment();
    let args = Args::parse();
    match args.take_over {
        // What the worker logs is what is measured.
        Some(_) => tracing_subscriber::fmt().with_writer(|| told::Told).init(),
        None => tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_max_level(tracing::Level::ERROR)
            .init(),
    }
    let cluster = Cluster::open(&args.kafka).await?;
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    if let Some([topic, group, records]) = args.take_over.as_deref() {
        return scenes::take_over(&cluster, topic, group, records.parse()?).await;
    }
    println!("| measured | figure |\n|---|---|");
    for scene in ["exact", "through", "retries", "ordered", "hot", "waiting", "growth"] {
        if !wanted(scene) {
            continue;
        }
        match scene {
            "exact" => scenes::exact(&cluster).await?,
            "through" => scenes::through(&cluster).await?,
            "retries" => scenes::retries(&cluster).await?,
            "ordered" => scenes::ordered(&cluster).await?,
            "hot" => scenes::hot(&cluster).await?,
            "waiting" => scenes::waiting(&cluster, &args.kafka, args.waiting).await?,
            _ => scenes::growth(&cluster, args.short).await?,
        }
        load::remove_all(&cluster).await?;
    }
    Ok(())
}
