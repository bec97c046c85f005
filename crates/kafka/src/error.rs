//! What went wrong with Kafka: the deed and the object here, the cause inside.

use rdkafka::error::KafkaError;
use redrive_core::topic::BadTopic;
use redrive_core::{Origin, Topic};

use crate::refusal::Refusal;

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
    /// No broker answers, or none lets us in.
    #[error("cannot reach Kafka at {brokers}")]
    Unreachable {
        /// The addresses.
        brokers: String,
        /// Why.
        source: Refusal,
    },
    /// What there is in the cluster could not be listed.
    #[error("cannot list the topics of the cluster")]
    List {
        /// Why.
        source: Refusal,
    },
    /// Topics could not be looked at.
    #[error("cannot describe {topics}")]
    Describe {
        /// Which, separated by commas.
        topics: String,
        /// Why.
        source: Refusal,
    },
    /// The settings of topics could not be read.
    #[error("cannot read the settings of {topics}")]
    Settings {
        /// Which, separated by commas.
        topics: String,
        /// Why.
        source: Refusal,
    },
    /// A topic could not be changed.
    #[error("cannot {deed} {topic}")]
    Change {
        /// What was to be done to it.
        deed: &'static str,
        /// Which.
        topic: Topic,
        /// Why.
        source: Refusal,
    },
    /// The broker named a topic that cannot be.
    #[error("the broker named an impossible topic")]
    Topic(#[from] BadTopic),
}

impl Error {
    /// What the cluster answered, where it was asked to show or change topics.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Unreachable { source, .. }
            | Self::List { source }
            | Self::Describe { source, .. }
            | Self::Settings { source, .. }
            | Self::Change { source, .. } => Some(source),
            Self::Client { .. } | Self::Publish { .. } | Self::Read { .. } | Self::Topic(_) => None,
        }
    }
}
