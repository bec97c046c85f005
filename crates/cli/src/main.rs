//! The program `redrive`: one file per command.

use clap::Parser;

/// Reliable Kafka consumption.
#[derive(Parser)]
#[command(version)]
struct Cli {}

fn main() {
    Cli::parse();
}
