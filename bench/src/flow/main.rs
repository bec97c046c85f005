//! What the decisions cost, without Kafka, threads or a clock: records that are set aside and come back, and a shelf
//! that is taken over. For finding out where time goes; the figures that count are those of `shelf`.

mod turns;

use std::time::Instant;

use clap::Parser;
use turns::Turns;

/// As the program `redrive` has it.
#[global_allocator]
static ALLOCATOR: redrive_allocator::MiMalloc = redrive_allocator::MiMalloc;

/// Measures the flow alone.
#[derive(Parser)]
struct Args {
    /// Records
    #[arg(long, default_value_t = 300_000)]
    records: u64,
    /// Bytes of each
    #[arg(long, default_value_t = 1_024)]
    bytes: usize,
    /// Only these, by a part of their name: plain, through, take-over
    #[arg(long)]
    only: Option<String>,
}

fn main() {
    redrive_allocator::keep_for_a_moment();
    let Args { records, bytes, only } = Args::parse();
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let tell = |name: &str, began: Instant| {
        println!("{name}: {:.2} us a record", began.elapsed().as_secs_f64() * 1e6 / records as f64);
    };
    if wanted("plain") {
        let mut turns = Turns::new();
        let began = now();
        turns.play(records, bytes, None);
        tell("plain", began);
    }
    if wanted("through") {
        let mut turns = Turns::new();
        let began = now();
        turns.play(records, bytes, Some(1));
        tell("through the shelf and back", began);
    }
    if wanted("take-over") {
        let mut turns = Turns::that_keeps();
        turns.play(records, bytes, Some(3_600_000));
        let log = turns.log();
        let mut turns = Turns::with(log);
        let began = now();
        turns.read();
        tell("take-over", began);
    }
}

#[allow(clippy::disallowed_methods, reason = "measuring is what this program does")]
fn now() -> Instant {
    Instant::now()
}
