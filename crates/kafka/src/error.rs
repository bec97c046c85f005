//! What went wrong with Kafka: the deed and the object here, the cause inside.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use redrive_core::topic::BadTopic;
use redrive_core::{Origin, Topic};

use crate::refusal::Refused;

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
    #[error("cannot publish to {topic}: {kind}")]
    Publish {
        /// Where to.
        topic: Topic,
        /// What can be done about it.
        kind: Refusal,
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
        source: Refused,
    },
    /// What there is in the cluster could not be listed.
    #[error("cannot list the topics of the cluster")]
    List {
        /// Why.
        source: Refused,
    },
    /// Topics could not be looked at.
    #[error("cannot describe {topics}")]
    Describe {
        /// Which, separated by commas.
        topics: String,
        /// Why.
        source: Refused,
    },
    /// A group could not be looked at.
    #[error("cannot look at group {group}")]
    Group {
        /// Which.
        group: String,
        /// Why.
        source: Refused,
    },
    /// The settings of topics could not be read.
    #[error("cannot read the settings of {topics}")]
    Settings {
        /// Which, separated by commas.
        topics: String,
        /// Why.
        source: Refused,
    },
    /// A topic could not be changed.
    #[error("cannot {deed} {topic}")]
    Change {
        /// What was to be done to it.
        deed: &'static str,
        /// Which.
        topic: Topic,
        /// Why.
        source: Refused,
    },
    /// The group could not be joined.
    #[error("cannot consume {topic} as group {group}")]
    Join {
        /// Of what.
        topic: Topic,
        /// Which.
        group: String,
        /// Why.
        source: KafkaError,
    },
    /// A partition that the group has not given to this consumer, or asks back.
    #[error("partition {partition} of {topic} is not this consumer's")]
    NotOurs {
        /// Of what.
        topic: Topic,
        /// Which.
        partition: i32,
    },
    /// Fetching could not be begun.
    #[error("cannot begin {at}")]
    Begin {
        /// From where on.
        at: Origin,
        /// Why.
        source: KafkaError,
    },
    /// Partitions could not be given up.
    #[error("cannot give up partitions {partitions:?} of {topic}")]
    GiveUp {
        /// Of what.
        topic: Topic,
        /// Which.
        partitions: Vec<i32>,
        /// Why.
        source: KafkaError,
    },
    /// A partition could not be paused or resumed.
    #[error("cannot {deed} partition {partition} of {topic}")]
    Flow {
        /// `pause` or `resume`.
        deed: &'static str,
        /// Of what.
        topic: Topic,
        /// Which.
        partition: i32,
        /// Why.
        source: KafkaError,
    },
    /// Offsets could not be committed.
    #[error("cannot commit offsets of {topic} for group {group}")]
    Commit {
        /// Of what.
        topic: Topic,
        /// For whom.
        group: String,
        /// Why.
        source: KafkaError,
    },
    /// A question was not answered.
    #[error("cannot learn the {what} of {topic}")]
    Ask {
        /// What was asked for.
        what: &'static str,
        /// About what.
        topic: Topic,
        /// Why.
        source: KafkaError,
    },
    /// What librdkafka reports by itself.
    #[error("{words}")]
    Trouble {
        /// Its words.
        words: String,
        /// Which.
        source: KafkaError,
    },
    /// The work was cut off: the runtime is stopping, or it panicked.
    #[error("cut off before Kafka answered")]
    CutOff(#[from] tokio::task::JoinError),
    /// The broker named a topic that cannot be.
    #[error("the broker named an impossible topic")]
    Topic(#[from] BadTopic),
}

impl Error {
    /// What the cluster answered, where it was asked to show or change topics.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refused> {
        match self {
            Self::Unreachable { source, .. }
            | Self::List { source }
            | Self::Describe { source, .. }
            | Self::Group { source, .. }
            | Self::Settings { source, .. }
            | Self::Change { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether the group no longer counts this consumer in, or goes on without what was asked: to try
    /// again is no use.
    #[must_use]
    pub fn group_moved_on(&self) -> bool {
        match self {
            Self::NotOurs { .. } => true,
            Self::Commit { source, .. } | Self::Begin { source, .. } | Self::GiveUp { source, .. } => {
                source.rdkafka_error_code().is_some_and(moved_on)
            }
            _ => false,
        }
    }
}

/// The answers to a member that the group has left behind.
pub(crate) fn moved_on(code: Code) -> bool {
    matches!(
        code,
        Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::RebalanceInProgress
            | Code::FencedInstanceId
            | Code::FencedMemberEpoch
            | Code::StaleMemberEpoch
            | Code::AssignmentLost
    )
}

/// Why a record was not accepted, as far as it matters for what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such topic.
    MissingTopic,
    /// The topic has fewer partitions than the one asked for.
    MissingPartition,
    /// Larger than the client or the topic accepts.
    TooLarge,
    /// This user may not.
    NotAllowed,
    /// Nobody confirmed it in time. It may have been written all the same.
    Timeout,
    /// Anything else; see the source.
    Other,
}

impl Refusal {
    pub(crate) fn of(error: &KafkaError) -> Self {
        match error.rdkafka_error_code() {
            Some(Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::InvalidTopic) => {
                Self::MissingTopic
            }
            Some(Code::UnknownPartition) => Self::MissingPartition,
            Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge) => Self::TooLarge,
            Some(
                Code::TopicAuthorizationFailed
                | Code::ClusterAuthorizationFailed
                | Code::TransactionalIdAuthorizationFailed
                | Code::SaslAuthenticationFailed
                | Code::Authentication,
            ) => Self::NotAllowed,
            Some(Code::MessageTimedOut | Code::RequestTimedOut | Code::OperationTimedOut) => Self::Timeout,
            _ => Self::Other,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MissingTopic => "there is no such topic",
            Self::MissingPartition => "it has no such partition",
            Self::TooLarge => "the record is too large",
            Self::NotAllowed => "it is not allowed",
            Self::Timeout => "not confirmed in time",
            Self::Other => "refused",
        })
    }
}
