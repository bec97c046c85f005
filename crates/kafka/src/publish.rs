//! Publishes records, and knows of each whether the broker has confirmed it.

use bytes::Bytes;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use redrive_core::headers::Headers;
use redrive_core::{Origin, Timestamp, Topic};

use crate::{Error, Settings};

/// A record on its way to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Where to.
    pub topic: Topic,
    /// Which partition; by the key if absent.
    pub partition: Option<i32>,
    /// Its timestamp; the time of publishing if absent.
    pub timestamp: Option<Timestamp>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value.
    pub value: Option<Bytes>,
    /// Its headers, in this order.
    pub headers: Headers,
}

/// Publishes to one cluster: idempotent, confirmed by all replicas in sync.
#[derive(Clone)]
pub struct Publisher {
    producer: FutureProducer,
}

impl Publisher {
    /// A publisher; connections are made when they are needed.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let mut config = settings.client();
        config.set("enable.idempotence", "true");
        let producer = config.create();
        let producer =
            producer.map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
        Ok(Self { producer })
    }

    /// Publishes one record; where it stands, once the broker has confirmed it.
    pub async fn publish(&self, record: &Outgoing) -> Result<Origin, Error> {
        let mut outgoing: FutureRecord<'_, [u8], [u8]> =
            FutureRecord::to(record.topic.as_str()).headers(native(&record.headers));
        outgoing.partition = record.partition;
        outgoing.timestamp = record.timestamp.map(Timestamp::millis);
        outgoing.key = record.key.as_deref();
        outgoing.payload = record.value.as_deref();
        match self.producer.send(outgoing, Timeout::Never).await {
            Ok(sent) => {
                Ok(Origin { topic: record.topic.clone(), partition: sent.partition, offset: sent.offset })
            }
            Err((source, _)) => Err(Error::Publish { topic: record.topic.clone(), source }),
        }
    }
}

fn native(headers: &Headers) -> OwnedHeaders {
    headers.iter().fold(OwnedHeaders::new_with_capacity(headers.iter().len()), |native, header| {
        native.insert(Header { key: &header.name, value: header.value.as_deref() })
    })
}
