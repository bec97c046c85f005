//! The suite, by theme. One binary: its tests mostly wait, so they should wait together.
//!
//! `cargo test -p redrive-conformance` runs all; `-- in_memory`, `-- on_disk` or `-- kafka` one broker.

mod batches;
mod configs;
mod delete_records;
mod idempotence;
mod reading;
mod records;
mod tidying;
mod times;
mod topic_ids;
mod topics;
