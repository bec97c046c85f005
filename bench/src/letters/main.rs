//! Letters in numbers: how fast they are indexed, how soon a restart goes on, what one takes in the index, and how
//! long questions take. On real Kafka (`eval "$(tools/kafka env)"` first), or on the embedded broker.

#[allow(dead_code, reason = "others use the rest")]
#[path = "../worker/clock.rs"]
mod clock;
mod fill;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../worker/machine.rs"]
mod machine;
mod questions;

use std::time::Duration;

use clap::Parser;
use redrive::Cluster;
use redrive_letters::feed::{Feed, Which};

/// As the program `redrive` has it.
#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Measures the index of letters.
#[derive(Parser)]
struct Args {
    /// Kafka's addresses
    #[arg(long, env = "REDRIVE_KAFKA", required_unless_present = "embedded")]
    kafka: Option<String>,
    /// On the embedded broker, inside this process
    #[arg(long)]
    embedded: bool,
    /// How many letters
    #[arg(long, default_value_t = 1_000_000)]
    letters: u64,
    /// The size of each payload
    #[arg(long, default_value_t = 1_024)]
    bytes: usize,
    /// How many questions are asked
    #[arg(long, default_value_t = 2_000)]
    questions: u32,
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
    let topics = fill::fill(&cluster, args.letters, args.bytes).await?;
    let feed = || -> Result<Feed, redrive_letters::Error> {
        Ok(Feed::new(cluster.settings(), data.path(), Which::new(topics.clone(), &[])?))
    };
    println!("| measured | figure |\n|---|---|");
    let (begun, before) = (clock::now(), machine::processor_time());
    let (index, fed) = feed()?.catch_up(|_| {}).await?;
    let (took, used) = (begun.elapsed(), machine::processor_time() - before);
    assert_eq!(fed.came, args.letters, "every letter is indexed");
    let rate = per_second(args.letters, took);
    row(
        &format!("indexing {} letters of {} bytes", args.letters, args.bytes),
        &format!("{rate} letters/s, {:.1} s of processor", used.as_secs_f64()),
    );
    drop(index);

    let begun = clock::now();
    let (index, fed) = feed()?.catch_up(|_| {}).await?;
    assert_eq!(fed.came, 0, "nothing is read twice");
    row("a restart goes on after", &millis(begun.elapsed()));
    fill::more(&cluster, &topics, args.letters, 1_000, args.bytes).await?;
    drop(index);
    let begun = clock::now();
    let (mut index, fed) = feed()?.catch_up(|_| {}).await?;
    assert_eq!(fed.came, 1_000, "what is new is read");
    row("a restart with 1,000 new letters", &millis(begun.elapsed()));
    let letters = index.count()?;
    #[allow(clippy::cast_precision_loss, reason = "a figure to read")]
    let size = index.bytes() as f64 / letters as f64;
    row("the index takes", &format!("{size:.0} bytes a letter"));
    questions::ask(&mut index, args.letters, args.questions)?;
    row("memory of this process", &format!("{:.0} MB", machine::resident()));
    Ok(())
}

pub(crate) fn row(measured: &str, figure: &str) {
    println!("| {measured} | {figure} |");
}

pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn per_second(count: u64, time: Duration) -> u64 {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate to read"
    )]
    let rate = (count as f64 / time.as_secs_f64()) as u64;
    rate
}
