//! The suite, by theme. One binary: its tests mostly wait, so they should wait together.
//!
//! `cargo test -p redrive-conformance` runs all; `-- in_memory`, `-- on_disk` or `-- kafka` one broker.

mod configs;
mod records;
mod topic_ids;
mod topics;
