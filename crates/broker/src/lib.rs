//! An embedded Kafka broker: one node in this process, for demos, tests and one machine.
//!
//! A [`BrokerConfig`] comes in, a [`Broker`] that any Kafka client can use goes out. What it has
//! acknowledged is never lost when the process dies; what it does not support it does not advertise.
#![warn(missing_docs)]

mod api;
mod broker;
mod clock;
mod config;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod groups;
mod journal;
mod log;
mod node;
mod server;
mod sync;
mod tidy;
mod topics;
mod transactions;

pub use broker::Broker;
pub use config::{BrokerConfig, Data};
pub use error::Error;
pub use node::TopicOutcome;
