//! The suite, by theme. One binary: its tests mostly wait, so they should wait together.
//!
//! `cargo test -p redrive-conformance` runs all; `-- ::in_memory`, `-- ::on_disk` or `-- ::kafka` one
//! broker. More threads than cores (`--test-threads 8`) make it several times quicker.

mod batches;
mod cluster;
mod commits;
mod configs;
mod delete_records;
mod group_admin;
mod idempotence;
mod members;
mod older_clients;
mod reading;
mod records;
mod sessions;
mod static_members;
mod tidying;
mod times;
mod topic_ids;
mod topics;
mod transaction_offsets;
mod transactions;
mod transactions_by_hand;
