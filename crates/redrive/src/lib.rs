//! Reliable Kafka consumption, as a library.
#![warn(missing_docs)]

pub mod topics;
