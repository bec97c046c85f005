//! How a transaction fails, as far as it matters for what to do next.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use redrive_core::Topic;

use crate::Refusal;
use crate::error::moved_on;

/// Why a transaction was not committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionFailed {
    /// Undone; the same can be done again.
    #[error("the transaction was undone")]
    Aborted(#[source] KafkaError),
    /// Undone, because of one record: it will be refused again as it is.
    #[error("the transaction was undone: cannot publish record {index} to {topic}: {kind}")]
    Refused {
        /// Which of the records, counted from 0.
        index: usize,
        /// Where to.
        topic: Topic,
        /// Why.
        kind: Refusal,
        /// In librdkafka's words.
        source: KafkaError,
    },
    /// The group has gone on without this member, or another has taken the transactional id: undone, and
    /// not to be done again by this one.
    #[error("the transaction was fenced off")]
    Fenced(#[source] KafkaError),
    /// There were no offsets.
    #[error("a transaction without offsets is not run")]
    Unmarked,
    /// Nothing can be done with this producer any more; renew it. Whether the transaction was committed
    /// is not known: the committed offsets say.
    #[error("transactions are broken")]
    Broken(#[source] KafkaError),
    /// The runtime is stopping, or the work panicked. Whether it was committed is not known.
    #[error("cut off before the transaction ended")]
    CutOff(#[source] tokio::task::JoinError),
}

impl TransactionFailed {
    /// Whether it was undone because the broker does not accept a record, whichever, and never will: one without a
    /// key for a topic that is compacted, one whose time is too far off, one that a policy forbids.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        let Self::Aborted(error) = self else { return false };
        matches!(
            error.rdkafka_error_code(),
            Some(
                Code::InvalidRecord
                    | Code::InvalidDifferentRecord
                    | Code::InvalidTimestamp
                    | Code::PolicyViolation
                    | Code::UnsupportedForMessageFormat
            )
        )
    }

    /// Whether the producer is of no use any more. If nobody else can have its transactional id, renewing it
    /// harms nobody: then it was the broker that fenced it off, by ending a transaction that took too long.
    #[must_use]
    pub fn ends_the_producer(&self) -> bool {
        match self {
            Self::Broken(_) => true,
            Self::Fenced(error) => fatal(error),
            Self::Aborted(_) | Self::Refused { .. } | Self::Unmarked | Self::CutOff(_) => false,
        }
    }
}

/// Whether what librdkafka says means that this member, or this producer, is left behind.
pub(super) fn fenced(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    code.is_some_and(|code| {
        moved_on(code) || matches!(code, Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch)
    })
}

/// Whether the producer is of no use any more.
pub(super) fn fatal(error: &KafkaError) -> bool {
    match error {
        KafkaError::Transaction(error) => error.is_fatal(),
        other => other.rdkafka_error_code() == Some(Code::Fatal),
    }
}

/// Whether the very same call can be made again.
pub(super) fn retriable(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(error) if error.is_retriable() && !error.txn_requires_abort())
}
