//! A dead letter as it is found: everything that its headers say, whatever their dialect.
//!
//! Any record can be read as a letter. What cannot be understood is told in `problems` and otherwise left out;
//! nothing that a header holds makes reading fail.

use bytes::Bytes;
use redrive_core::headers::{Attempt, Headers, Link};
use redrive_core::route::Reason;
use redrive_core::{Class, Origin, Record, Timestamp};

use crate::Dialect;
use crate::fingerprint::Fingerprint;

/// Where the record of a letter was consumed, as far as the letter says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The topic.
    pub topic: Option<String>,
    /// The partition.
    pub partition: Option<i32>,
    /// The offset.
    pub offset: Option<i64>,
    /// The timestamp that it had there.
    pub timestamp: Option<Timestamp>,
}

/// What is known of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where it lies: its id.
    pub at: Origin,
    /// Who wrote it.
    pub dialect: Dialect,
    /// The timestamp of the letter's own record.
    pub timestamp: Option<Timestamp>,
    /// Where its record was consumed.
    pub source: Source,
    /// The consumer group that it failed in.
    pub group: Option<String>,
    /// The original key.
    pub key: Option<Bytes>,
    /// The key under which it is filed, where that is not the original one.
    pub filed_under: Option<Bytes>,
    /// Its business key.
    pub lane: Option<Bytes>,
    /// The class of the last failure.
    pub class: Option<Class>,
    /// Why it is a letter.
    pub reason: Option<Reason>,
    /// The type of the error that a person looks for.
    pub error_type: Option<String>,
    /// What the error says.
    pub message: Option<String>,
    /// The causes, from the outside in.
    pub chain: Vec<Link>,
    /// The stack.
    pub stack: Option<String>,
    /// How often the handler was called.
    pub attempts: Option<u32>,
    /// The last attempts.
    pub history: Vec<Attempt>,
    /// When it failed first.
    pub first_failed_at: Option<Timestamp>,
    /// When it became a letter, if it says so.
    pub buried_at: Option<Timestamp>,
    /// The record because of which it is a letter.
    pub leader: Option<Origin>,
    /// The service it failed in; a connector, for one of Connect.
    pub service: Option<String>,
    /// The instance of it; a task, for one of Connect.
    pub instance: Option<String>,
    /// The handler it failed in.
    pub handler: Option<String>,
    /// The type of the payload.
    pub content_type: Option<String>,
    /// How often it was sent back before.
    pub replays: u32,
    /// The job that sent it back last, and its number there: `ID/N`.
    pub replay: Option<String>,
    /// When it was sent back last.
    pub replayed_at: Option<Timestamp>,
    /// Where the payload is, if it is not here.
    pub pointer: Option<Origin>,
    /// When the payload is gone from there, if it is known.
    pub pointer_expires: Option<Timestamp>,
    /// The size of the payload; none if there is none, which is a tombstone or a pointer.
    pub payload: Option<usize>,
    /// About how many bytes the whole letter takes.
    pub size: usize,
    /// What could not be understood in its headers.
    pub problems: Vec<String>,
}

/// The header that tells when a record was sent back.
pub(crate) const REPLAYED_AT: &str = "redrive-replayed-at";

impl Letter {
    /// What a record of a letter topic says.
    #[must_use]
    pub fn read(record: &Record) -> Self {
        let dialect = Dialect::of(&record.headers);
        let mut letter = Self::bare(record, dialect);
        letter.read_replays(&record.headers);
        dialect.read(&record.headers, &mut letter);
        letter
    }

    fn bare(record: &Record, dialect: Dialect) -> Self {
        Self {
            at: record.at.clone(),
            dialect,
            timestamp: record.timestamp,
            source: Source::default(),
            group: None,
            key: record.key.clone(),
            filed_under: None,
            lane: None,
            class: None,
            reason: None,
            error_type: None,
            message: None,
            chain: Vec::new(),
            stack: None,
            attempts: None,
            history: Vec::new(),
            first_failed_at: None,
            buried_at: None,
            leader: None,
            service: None,
            instance: None,
            handler: None,
            content_type: None,
            replays: 0,
            replay: None,
            replayed_at: None,
            pointer: None,
            pointer_expires: None,
            payload: record.value.as_ref().map(Bytes::len),
            size: record.size(),
            problems: Vec::new(),
        }
    }

    /// What Redrive wrote when it sent the record back: whoever buried it again left that alone.
    fn read_replays(&mut self, headers: &Headers) {
        let number = |name: &str| headers.text(name).and_then(|text| text.parse().ok());
        self.replays = number("redrive-replays").and_then(|n: i64| u32::try_from(n).ok()).unwrap_or(0);
        self.replay = headers.text("redrive-replay").map(ToOwned::to_owned);
        self.replayed_at = number(REPLAYED_AT).map(Timestamp::from_millis);
    }

    /// When it became a letter, as well as can be known.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let known = self.buried_at.or(self.timestamp).or(self.first_failed_at);
        known.unwrap_or(Timestamp::from_millis(0))
    }

    /// Where its record was consumed, if the letter says all of it.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        let topic = self.source.topic.as_deref()?.parse().ok()?;
        Some(Origin { topic, partition: self.source.partition?, offset: self.source.offset? })
    }

    /// Whether its record has no value: a tombstone that failed. One that points to its payload is none.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.payload.is_none() && self.pointer.is_none()
    }

    /// Which failures it is one of.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: &[&str] = &[
        "redrive-origin",
        "redrive-reason",
        "redrive-buried-at",
        "redrive-error-chain",
        "redrive-history",
        "redrive-error-message",
        "redrive-replays",
        "redrive-replayed-at",
        "redrive-key",
        "redrive-pointer",
        "kafka_dlt-original-topic",
        "kafka_dlt-original-partition",
        "kafka_dlt-original-offset",
        "kafka_dlt-original-timestamp",
        "kafka_dlt-exception-fqcn",
        "kafka_dlt-exception-message",
        "kafka_original-topic",
        "kafka_original-offset",
        "kafka_exception-cause-fqcn",
        "retry_topic-attempts",
        "retry_topic-original-timestamp",
        "x-original-topic",
        "x-original-partition",
        "x-exception-fqcn",
        "__connect.errors.topic",
        "__connect.errors.partition",
        "__connect.errors.connector.name",
        "__streams.errors.exception",
        "__streams.errors.offset",
        "__dlq.errors.topic",
        "__dlq.errors.partition",
        "__dlq.errors.offset",
        "__dlq.errors.delivery.count",
        "dead-letter-reason",
        "dead-letter-offset",
        "delayed-retry-count",
        "X_DELAY_REASON",
        "dlq-time",
        "failure-time",
        "exception-class",
        "x",
    ];

    prop_compose! {
        fn any_record()(
            names in proptest::collection::vec(proptest::sample::select(NAMES), 0..12),
            values in proptest::collection::vec(proptest::option::of(prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                "[0-9]{0,20}".prop_map(String::into_bytes),
                "[a-z]{1,4}/[0-9]{1,3}/[0-9]{1,4}".prop_map(String::into_bytes),
                "\\[\\{\"type\":\"[a-z]*\",\"message\":\"[a-z]*\"\\}\\]".prop_map(String::into_bytes),
            ]), 12),
            key in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12)),
            value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12)),
            timestamp in proptest::option::of(any::<i64>()),
        ) -> Record {
            Record {
                at: "orders.g.dlq/0/7".parse().unwrap(),
                timestamp: timestamp.map(Timestamp::from_millis),
                key: key.map(Bytes::from),
                value: value.map(Bytes::from),
                headers: names.into_iter().zip(values).collect(),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn any_record_is_a_letter(record in any_record()) {
            let letter = Letter::read(&record);
            prop_assert_eq!(&letter.at, &record.at);
            prop_assert_eq!(letter.payload, record.value.as_ref().map(Bytes::len));
            let _ = (letter.fingerprint(), letter.time(), letter.origin(), letter.is_tombstone());
        }

        #[test]
        fn stripping_keeps_the_users_headers_in_order_whatever_the_dialect(record in any_record()) {
            let stripped = Dialect::of(&record.headers).strip(&record.headers);
            let mut kept = stripped.iter();
            for header in record.headers.iter().filter(|header| header.name == "x") {
                prop_assert!(kept.any(|other| other == header));
            }
            prop_assert_eq!(Dialect::of(&stripped).strip(&stripped), Dialect::of(&stripped).strip(&Dialect::of(&stripped).strip(&stripped)));
        }
    }
}
