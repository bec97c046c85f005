//! A record and when it is to be delivered, as a record of `redrive.send`: one header in front of its own.

use redrive_core::topic::BadTopic;
use redrive_core::{Record, Timestamp, Topic};
use redrive_kafka::Outgoing;

/// The header that says where to and when: a version, the time in epoch milliseconds, the partition or `-`
/// for the one of the key, and the topic.
pub const HEADER: &str = "redrive-send";
const VERSION: &str = "1";

/// A record that is to be delivered at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// When, at the earliest.
    pub due: Timestamp,
    /// What, and where to.
    pub outgoing: Outgoing,
}

/// A record of `redrive.send` that does not say where to and when.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadScheduled {
    /// The header is not there, not first, or not as it must be.
    #[error("its first header is not `{HEADER}: {VERSION} TIME PARTITION TOPIC`")]
    Header,
    /// No such topic can be.
    #[error(transparent)]
    Topic(#[from] BadTopic),
}

impl Scheduled {
    /// As it goes to `redrive.send`.
    #[must_use]
    pub fn write(&self) -> Outgoing {
        let Self { due, outgoing } = self;
        let partition = outgoing.partition.map_or("-".to_owned(), |partition| partition.to_string());
        let header = format!("{VERSION} {due} {partition} {}", outgoing.topic);
        let own = outgoing.headers.iter().map(|one| (one.name.clone(), one.value.clone()));
        Outgoing {
            headers: [(HEADER.into(), Some(header.into()))].into_iter().chain(own).collect(),
            partition: None,
            topic: super::topic(),
            ..outgoing.clone()
        }
    }

    /// What a record of `redrive.send` says.
    pub fn read(record: &Record) -> Result<Self, BadScheduled> {
        let mut headers = record.headers.iter();
        let first = headers.next().filter(|first| first.name == HEADER).ok_or(BadScheduled::Header)?;
        let text = first.value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
        let words: Vec<&str> = text.unwrap_or_default().split(' ').collect();
        let &[VERSION, due, partition, topic] = words.as_slice() else { return Err(BadScheduled::Header) };
        let partition = match partition {
            "-" => None,
            number => Some(number.parse().map_err(|_| BadScheduled::Header)?),
        };
        let due = Timestamp::from_millis(due.parse().map_err(|_| BadScheduled::Header)?);
        let outgoing = Outgoing {
            topic: topic.parse::<Topic>()?,
            partition,
            timestamp: None,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: headers.map(|one| (one.name.clone(), one.value.clone())).collect(),
        };
        Ok(Self { due, outgoing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use redrive_core::Origin;

    fn consumed(outgoing: Outgoing) -> Record {
        let at = Origin { topic: outgoing.topic, partition: 0, offset: 0 };
        Record { at, timestamp: None, key: outgoing.key, value: outgoing.value, headers: outgoing.headers }
    }

    fn bytes() -> impl Strategy<Value = Option<Bytes>> {
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from))
    }

    proptest! {
        #[test]
        fn what_is_scheduled_is_read_back_byte_for_byte(
            due in any::<i64>(),
            partition in proptest::option::of(0..1_000),
            key in bytes(),
            value in bytes(),
            headers in proptest::collection::vec(("(redrive-send|redrive-due|a)", bytes()), 0..5),
        ) {
            let outgoing = Outgoing {
                partition, key, value,
                headers: headers.into_iter().collect(),
                ..Outgoing::to("orders".parse().unwrap())
            };
            let scheduled = Scheduled { due: Timestamp::from_millis(due), outgoing };
            let written = scheduled.write();
            prop_assert_eq!(written.topic.as_str(), super::super::TOPIC);
            prop_assert_eq!(Scheduled::read(&consumed(written)), Ok(scheduled));
        }
    }

    #[test]
    fn a_record_of_somebody_else_is_refused() {
        let topic: Topic = "redrive.send".parse().unwrap();
        let other = Outgoing::to(topic.clone()).header("a", "b").header(HEADER, "1 0 - orders");
        assert_eq!(Scheduled::read(&consumed(other)), Err(BadScheduled::Header));
        for text in ["", "2 0 - orders", "1 x - orders", "1 0 p orders", "1 0 -"] {
            let other = Outgoing::to(topic.clone()).header(HEADER, text);
            assert_eq!(Scheduled::read(&consumed(other)), Err(BadScheduled::Header), "{text}");
        }
    }
}
