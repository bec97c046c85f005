//! What a process that runs subscriptions tells over HTTP: whether it lives, whether it is ready and if not
//! why and what mends it, its subscriptions as JSON, its metrics; and what can be asked and done about letters.
//!
//! Of subscriptions it reads the statuses that they tell anyway; asking costs them nothing. Letters are in an index
//! that follows Kafka while the process runs.
#![warn(missing_docs)]

mod answer;
mod api;
mod desk;
mod given;
mod guard;
mod health;
mod listen;
mod metrics;
mod problem;
mod subscriptions;

use redrive::Status;
use tokio::sync::watch;

pub use desk::Letters;
pub use listen::{Error, Listener, Serving};

/// What is told of.
#[derive(Clone)]
pub struct Watched {
    /// The subscriptions, in their order.
    pub subscriptions: Vec<Subscription>,
    /// How many events of `notify` were dropped.
    pub dropped_events: fn() -> u64,
    /// How many spans were dropped.
    pub dropped_spans: fn() -> u64,
}

/// A subscription as the server sees it.
#[derive(Clone)]
pub struct Subscription {
    /// What the file calls it, if it does.
    pub name: Option<String>,
    /// Its state, as it changes.
    pub status: watch::Receiver<Status>,
}
