//! Why the cluster did not do something: a code for programs, a reason for people.

use std::fmt;

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;

/// What the broker, or librdkafka in its place, answered instead of doing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    code: RDKafkaErrorCode,
    reason: String,
}

impl Refused {
    pub(crate) fn new(code: RDKafkaErrorCode, reason: String) -> Self {
        Self { code, reason }
    }

    pub(crate) fn from_code(code: RDKafkaErrorCode) -> Self {
        Self::new(code, String::new())
    }

    /// Something that cannot even be asked.
    pub(crate) fn of(reason: &str) -> Self {
        Self::new(RDKafkaErrorCode::InvalidArgument, reason.to_owned())
    }

    pub(crate) fn because(self, complaint: Option<String>) -> Self {
        Self { reason: complaint.unwrap_or(self.reason), ..self }
    }

    /// Whether the topic is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.code, RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic)
    }

    /// Whether the topic is there already.
    #[must_use]
    pub fn is_there_already(&self) -> bool {
        self.code == RDKafkaErrorCode::TopicAlreadyExists
    }

    /// Whether the cluster does not accept a setting, or the settings together.
    #[must_use]
    pub fn is_of_settings(&self) -> bool {
        matches!(self.code, RDKafkaErrorCode::InvalidConfig | RDKafkaErrorCode::PolicyViolation)
    }

    /// Whether an ACL is missing.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(
            self.code,
            RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
        )
    }

    /// Whether no broker could be asked: nothing listens, nobody answers, or the login failed.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        matches!(
            self.code,
            RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::OperationTimedOut
                | RDKafkaErrorCode::SSL
        )
    }
}

impl From<KafkaError> for Refused {
    fn from(error: KafkaError) -> Self {
        match error.rdkafka_error_code() {
            Some(code) => Self::from_code(code),
            None => Self::of(&error.to_string()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason.is_empty() { write!(f, "{}", self.code) } else { f.write_str(&self.reason) }
    }
}

impl std::error::Error for Refused {}
