//! Why a job does not begin, or does not go on.

use redrive_core::Topic;
use redrive_kafka::{Error as KafkaError, Refusal, TransactionFailed};

use crate::jobs::JobId;

/// Why a job does not begin, or does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Kafka did not do something.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// A shelf could not be read.
    #[error(transparent)]
    Shelf(#[from] redrive::delayed::Error),
    /// It could not be written what a job does.
    #[error("cannot write what job {job} does")]
    Write {
        /// Which.
        job: JobId,
        /// Why.
        source: TransactionFailed,
    },
    /// A letter could not be sent, and the others of its topic cannot be either.
    #[error("cannot send letters to {topic}: {kind}")]
    Refused {
        /// Where to.
        topic: Topic,
        /// Why.
        kind: Refusal,
    },
    /// What was written does not come back.
    #[error("what was written to redrive.state cannot be read back: a transaction there is not ended")]
    Unread,
    /// There is no such job.
    #[error("there is no job {0}")]
    NoJob(String),
    /// Several jobs are called so.
    #[error("several jobs begin with {begins}: {}", ids.join(", "))]
    Several {
        /// What was asked for.
        begins: String,
        /// Those there are.
        ids: Vec<String>,
    },
    /// The job is over.
    #[error("job {0} has ended")]
    Ended(JobId),
    /// Too many lanes would have to be held.
    #[error(
        "{0} lanes would be held at once, and at most {most} are; ask for fewer letters at a time",
        most = super::lanes::MOST
    )]
    TooManyLanes(usize),
    /// Letters that would be deleted were not written again.
    #[error(
        "{letters} letters below {below} could not be read back and were not written again; nothing is deleted there"
    )]
    NotKept {
        /// How many.
        letters: usize,
        /// Where.
        below: redrive_core::Origin,
    },
    /// It is not one that sends letters.
    #[error("job {0} is no replay")]
    NoReplay(JobId),
}
