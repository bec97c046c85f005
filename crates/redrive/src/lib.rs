//! Reliable Kafka consumption: a handler, a policy, run.
//!
//! A record that fails is classified, retried in the way that fits its failure, kept in order with the
//! records of its key and, when nothing helps, dead-lettered with everything that is known about it.
//! Its offset counts as complete only when it was handled, or when its letter is confirmed.
//!
//! ```
//! use redrive::{Class, Classed, Cluster, Received, Subscription, Worker};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::open("embedded").await?; // or "localhost:9092"
//! cluster.create_topic("orders", 1).await?;
//! let orders = Subscription::new("orders", "billing")
//!     .retry(Class::Transient, "list(100ms x2, 1s)")
//!     .auto_create(true)
//!     .handler(async |order: Received| match order.text() {
//!         Some("poison") => Err(Classed::permanent("no such customer")),
//!         _ => Ok(()),
//!     });
//! let shutdown = async {}; // or redrive::stop_signal()
//! Worker::new(&cluster).subscribe(orders).run(shutdown).await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod clock;
mod cluster;
pub mod delayed;
mod error;
mod handler;
mod listener;
pub mod pauses;
pub mod replay;
pub mod send;
mod status;
mod subscription;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod topics;
mod worker;

pub use clock::Clock;
pub use cluster::Cluster;
pub use error::Error;
pub use handler::{BatchHandler, Handler, Received};
pub use listener::{Event, Listener, Told};
pub use status::{Failures, Pause, Problem, State, Status, Tally};
pub use subscription::Subscription;
pub use worker::{Control, Running, Unchangeable, Worker, stop_signal};

pub use redrive_core::settings::{Blocking, Delivery, LetterPartition, Payload};
pub use redrive_core::{
    Cause, Class, Classed, Failure, Mask, Origin, Policy, Record, Timestamp, Topic, classify, headers,
};
pub use redrive_kafka::{Late, Outgoing, Publisher, Publishing, Reader, Settings};
