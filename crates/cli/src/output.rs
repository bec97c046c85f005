//! How a command that lists shows what it found.

use clap::ValueEnum;

/// How to show it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Table,
    /// One document
    Json,
    /// A line for each
    Ndjson,
}

/// How many at most, at least one.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "write a whole number of 1 or more".to_owned())
}
