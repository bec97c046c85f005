//! What went wrong with Kafka: the deed and the object here, the cause inside.

use rdkafka::error::KafkaError;
use redrive_core::topic::BadTopic;
use redrive_core::{Origin, Topic};

/// Something that Kafka did not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings are not accepted.
    #[error("cannot make a client for {brokers}")]
    Client {
        /// The addresses.
        brokers: String,
        /// Why.
        source: KafkaError,
    },
    /// A record could not be published.
    #[error("cannot publish to {topic}")]
    Publish {
        /// Where to.
        topic: Topic,
        /// Why.
        source: KafkaError,
    },
    /// A partition could not be read.
    #[error("cannot read {at}")]
    Read {
        /// From where on.
        at: Origin,
        /// Why.
        source: KafkaError,
    },
    /// The broker named a topic that cannot be.
    #[error("the broker sent a record of an impossible topic")]
    Topic(#[from] BadTopic),
}
