//! Who did what to letters, when and why: the topic `redrive.journal`, from which nothing is ever deleted.
//!
//! Deeds go in, entries come out; each writer's entries are a chain of hashes ([`Chain`]), whose end is noted in
//! `redrive.state`. A deed is written before it is told to have been done.

mod append;
mod chain;
mod entry;
mod store;

pub use append::append;
pub use chain::{Chain, Fault};
pub use entry::{BadEntry, Deed, Entry, sha256};
pub use store::{Error, Journal, TOPIC, topic, topic_settings, writer};
