//! What the worker costs beside a bare client, in one run on one cluster: rates, processor time, memory.
//!
//! `eval "$(tools/kafka env)"` first, or it measures on the embedded broker in a process of its own.

mod bare;
mod clock;
mod load;
mod machine;
mod passes;
mod table;
mod wait;

use clap::Parser;
use redrive::{Cluster, Delivery};

use load::Load;
use passes::{Pass, Work};
use table::Table;

/// As the program `redrive` has it.
#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Measures the worker beside a bare rdkafka poll loop.
#[derive(Parser)]
struct Args {
    /// Kafka's addresses
    #[arg(long, env = "REDRIVE_KAFKA")]
    kafka: String,
    /// Records of the main load
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Records for the handler that waits
    #[arg(long, default_value_t = 256_000)]
    waiting: u64,
    /// Records over which memory is watched; 0 leaves it out
    #[arg(long, default_value_t = 10_000_000)]
    memory: u64,
    /// How often each is measured; the median counts. A pass of the main load takes little more than a second, in
    /// which a machine that others use, too, may be half as fast as in the next
    #[arg(long, default_value_t = 9)]
    passes: usize,
    /// Only these, by a part of their name
    #[arg(long)]
    only: Option<String>,
    /// A property of librdkafka for the worker, as name=value
    #[arg(long)]
    property: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    redrive_allocator::keep_for_a_moment();
    let args = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let properties = args.property.iter().filter_map(|property| property.split_once('='));
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let cluster = Cluster::with(&args.kafka, properties).await?;
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut table = Table::default();

    eprintln!("writing {} records of 1 KiB into 12 partitions", args.records);
    let load = Load::write(&cluster, "load", args.records, 1_024, 10_000).await?;
    if wanted("plain") {
        let (mut bare, mut plain) = (Vec::new(), Vec::new());
        for pass in 0..args.passes {
            eprintln!("plain, pass {}", pass + 1);
            // Each is first as often as the other: what comes second finds the memory in use.
            if pass % 2 == 0 {
                bare.push(bare::count(&cluster, &load)?);
            }
            plain.push(passes::run(&cluster, &load, Work::default()).await?);
            if pass % 2 == 1 {
                bare.push(bare::count(&cluster, &load)?);
            }
        }
        table.compare("no-op handler", plain, "bare poll loop", bare);
    }
    if wanted("waiting") {
        let waiting = Load::write(&cluster, "waiting", args.waiting, 100, 10_000).await?;
        let work = Work { wait: true, concurrency: 256, ..Work::default() };
        let mut all = Vec::new();
        for pass in 0..args.passes.div_ceil(3) {
            eprintln!("waiting, pass {}", pass + 1);
            all.push(passes::run(&cluster, &waiting, work).await?);
        }
        table.against("handler waits 10 ms, 256 at once, key order", &median(all), "the ideal", 25_600.0);
    }
    if wanted("exactly") {
        for (name, output) in [("no output", false), ("one record out for each in", true)] {
            let (mut once, mut least) = (Vec::new(), Vec::new());
            for pass in 0..args.passes {
                eprintln!("at-least-once, {name}, pass {}", pass + 1);
                let work = Work { output, ..Work::default() };
                least.push(passes::run(&cluster, &load, work).await?);
                eprintln!("exactly-once, {name}, pass {}", pass + 1);
                let work = Work { delivery: Delivery::ExactlyOnce, ..work };
                once.push(passes::run(&cluster, &load, work).await?);
            }
            let what = format!("exactly-once, {name}");
            table.compare(&what, once, "at-least-once", least);
        }
    }
    if wanted("failures") {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for pass in 0..args.passes {
            eprintln!("1% permanent failures, pass {}", pass + 1);
            without.push(passes::run(&cluster, &load, Work::default()).await?);
            with.push(passes::run(&cluster, &load, Work { fails: true, ..Work::default() }).await?);
        }
        table.compare("1% permanent failures", with, "none", without);
    }
    if wanted("memory") && args.memory > 0 {
        eprintln!("writing {} records of 100 bytes", args.memory);
        let load = Load::write(&cluster, "memory", args.memory, 100, 10_000).await?;
        let work = Work { fails: true, watch_memory: true, ..Work::default() };
        let pass = passes::run(&cluster, &load, work).await?;
        table.memory(&pass);
    }
    table.print();
    load::remove_all(&cluster).await
}

fn median(mut all: Vec<Pass>) -> Pass {
    all.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    all.swap_remove(all.len() / 2)
}
