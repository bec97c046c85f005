//! Reads partitions from an offset on, without a group.

use bytes::Bytes;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::headers::{Headers, known};
use redrive_core::{Origin, Record, Timestamp};

use crate::breaks::Breaks;
use crate::{Error, Settings};

/// Reads partitions; never past an open transaction, never resets its position by itself.
pub struct Reader {
    consumer: StreamConsumer,
    from: Origin,
    breaks: Breaks,
}

impl Reader {
    /// Reads from this offset on.
    pub fn from(settings: &Settings, from: Origin) -> Result<Self, Error> {
        Self::from_each(settings, from, &[])
    }

    /// Reads several partitions, each from its offset on.
    pub fn from_each(settings: &Settings, from: Origin, more: &[Origin]) -> Result<Self, Error> {
        let mut config = settings.client();
        // librdkafka wants a group even where none is joined.
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
        let consumer: StreamConsumer =
            config.create().map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
        let mut assignment = TopicPartitionList::new();
        let added = [&from].into_iter().chain(more).try_for_each(|from| {
            assignment.add_partition_offset(from.topic.as_str(), from.partition, Offset::Offset(from.offset))
        });
        let assigned = added.and_then(|()| consumer.assign(&assignment));
        assigned.map_err(|source| Error::Read { at: from.clone(), source })?;
        Ok(Self { consumer, from, breaks: Breaks::default() })
    }

    /// The next record, waiting for it if need be.
    pub async fn next(&self) -> Result<Record, Error> {
        loop {
            match self.consumer.recv().await {
                Ok(message) => {
                    self.breaks.mended();
                    return record(&message);
                }
                // The group is never joined, so that nobody has to be allowed to use it.
                Err(KafkaError::MessageConsumption(RDKafkaErrorCode::GroupAuthorizationFailed)) => {}
                Err(source) if self.breaks.bear(&source) => {}
                Err(source) => return Err(Error::Read { at: self.from.clone(), source }),
            }
        }
    }
}

pub(crate) fn record(message: &BorrowedMessage<'_>) -> Result<Record, Error> {
    let at =
        Origin { topic: message.topic().parse()?, partition: message.partition(), offset: message.offset() };
    let mut headers = Headers::default();
    for header in message.headers().iter().flat_map(|native| native.iter()) {
        headers.push(known(header.key), header.value.map(Bytes::copy_from_slice));
    }
    Ok(Record {
        at,
        timestamp: message.timestamp().to_millis().map(Timestamp::from_millis),
        key: message.key().map(Bytes::copy_from_slice),
        value: message.payload().map(Bytes::copy_from_slice),
        headers,
    })
}
