//! Why a shelf cannot be seen, or an order not be given.

use redrive_core::shelf::BadEntry;
use redrive_core::{Origin, Topic};

/// Why a shelf cannot be seen, or an order not be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such topic.
    #[error("there is no shelf topic {0}")]
    NoShelf(Topic),
    /// The shelf has fewer partitions than that.
    #[error("{shelf} has {partitions} partitions; there is none with number {partition}")]
    NoPartition {
        /// The shelf.
        shelf: Topic,
        /// How many it has.
        partitions: i32,
        /// What was asked for.
        partition: i32,
    },
    /// An entry that this version must not pass over.
    #[error("cannot read the entry at {at}")]
    Entry {
        /// Where it stands.
        at: Origin,
        /// What is wrong with it.
        source: BadEntry,
    },
    /// Kafka did not do something.
    #[error(transparent)]
    Kafka(#[from] redrive_kafka::Error),
}
