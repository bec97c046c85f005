//! Publishes records, and knows of each whether the broker has confirmed it. Records are on their way in
//! the order of the calls, none waits for another's confirmation, and none is lost when there are more of
//! them than librdkafka holds.

mod outbox;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{Header, OwnedHeaders};
use redrive_core::headers::Headers;
use redrive_core::{Origin, Timestamp, Topic};
use tokio::sync::{mpsc, oneshot};

use crate::{Error, Refusal, Settings};
use outbox::{Outbox, Place, Whom};

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

impl Outgoing {
    /// A record for this topic, with nothing in it.
    #[must_use]
    pub fn to(topic: Topic) -> Self {
        Self { topic, partition: None, timestamp: None, key: None, value: None, headers: Headers::default() }
    }

    /// With this key.
    #[must_use]
    pub fn key(self, key: impl Into<Bytes>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// With this value.
    #[must_use]
    pub fn value(self, value: impl Into<Bytes>) -> Self {
        Self { value: Some(value.into()), ..self }
    }

    /// For this partition, whatever the key.
    #[must_use]
    pub fn partition(self, partition: i32) -> Self {
        Self { partition: Some(partition), ..self }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push(name.into(), Some(value.into()));
        self
    }

    /// The bytes of its key, value and headers.
    #[must_use]
    pub fn size(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        length(&self.key) + length(&self.value) + self.headers.size()
    }
}

/// How records are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publishing {
    /// How long a record may take until it is confirmed, retries included.
    pub timeout: Duration,
    /// What becomes of one that takes longer.
    pub late: Late,
    /// The smallest of the limits of the topics that are written; librdkafka's megabyte if absent.
    pub max_message_bytes: Option<usize>,
    /// How long a record may wait for others to go with.
    pub linger: Duration,
    /// How many bytes go together, unless a topic accepts less.
    pub batch: usize,
}

/// What becomes of a record that is not confirmed in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// It is given up, and nobody knows whether it is there: to publish it again may make two of it.
    GiveUp,
    /// It stays on its way until it is confirmed or refused, so there is only ever one of it. Whoever
    /// waits for it looks at the clock.
    GoOn,
}

/// What librdkafka accepts at most as its limit.
const LARGEST: &str = "1000000000";

/// How many bytes go together where nothing else is said.
const BATCH: usize = 128 * 1_024;

impl Default for Publishing {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            late: Late::GiveUp,
            max_message_bytes: None,
            linger: Duration::from_millis(5),
            batch: BATCH,
        }
    }
}

impl Publishing {
    pub(crate) fn config(&self, settings: &Settings) -> ClientConfig {
        let mut config = ClientConfig::new();
        let timeout = self.timeout.as_millis();
        config.set("linger.ms", (self.linger.as_secs_f64() * 1e3).to_string());
        // A key leads to the partition where other clients of Kafka look for it.
        config.set("partitioner", "murmur2_random");
        // A set-aside record must not make a topic with whatever the broker's defaults are.
        config.set("allow.auto.create.topics", "false");
        // A topic that is missing is looked for this long, from its first record on; then it is said to be
        // missing, before its records time out for no given reason. It is asked for again every second.
        config.set("topic.metadata.propagation.max.ms", (timeout / 2).to_string());
        // So soon is it known that a topic has got more partitions.
        config.set("topic.metadata.refresh.interval.ms", "5000");
        settings.set_on(&mut config);
        match self.late {
            Late::GiveUp => config.set("message.timeout.ms", timeout.to_string()),
            Late::GoOn => config.set("message.timeout.ms", "0"),
        };
        // Each topic has its own limit, and its broker knows it.
        config.set("message.max.bytes", LARGEST);
        // A batch that is larger than its topic accepts is refused as one, and librdkafka does not split it.
        // Few topics accept less than this; a record that is larger goes alone.
        let batch = self.max_message_bytes.unwrap_or(BATCH).min(self.batch);
        config.set("batch.size", batch.to_string());
        config
    }
}

/// Publishes to one cluster: idempotent, confirmed by all replicas in sync. Clones are the same publisher;
/// what is not confirmed when the last is dropped may be lost.
#[derive(Clone)]
pub struct Publisher {
    shared: Arc<Shared>,
}

/// A client is made for the first record and given up when there was none for a while: a hundred
/// subscriptions of which nothing fails need none.
struct Shared {
    config: ClientConfig,
    brokers: String,
    place: Arc<Place>,
}

impl Publisher {
    /// What is told of a record for this topic that goes on although it is late.
    #[must_use]
    pub fn late(topic: Topic) -> Error {
        Error::Publish {
            topic,
            kind: Refusal::Timeout,
            source: KafkaError::MessageProduction(Code::MessageTimedOut),
        }
    }

    /// A publisher; connections are made when they are needed.
    pub fn new(settings: &Settings, publishing: &Publishing) -> Result<Self, Error> {
        let mut config = publishing.config(settings);
        config.set("enable.idempotence", "true");
        let brokers = settings.brokers.clone();
        if let Err(source) = config.create_native_config() {
            return Err(Error::Client { brokers, source });
        }
        Ok(Self { shared: Arc::new(Shared { config, brokers, place: Arc::default() }) })
    }

    /// Sends a record on its way, now; where it stands, once the broker has confirmed it. It is published
    /// even if nobody waits for that.
    pub fn publish(&self, record: Outgoing) -> impl Future<Output = Result<Origin, Error>> + Send + use<> {
        let topic = record.topic.clone();
        let (confirm, confirmed) = oneshot::channel();
        // The outbox lives until the answer: what is under way ends with it.
        let Shared { config, brokers, place } = &*self.shared;
        let outbox = place.put(config, std::iter::once((record, Whom::One(confirm))));
        let outbox = outbox.map_err(|source| Error::Client { brokers: brokers.clone(), source });
        async move {
            let outbox = outbox?;
            let answer = confirmed.await.unwrap_or_else(|_| Err(outbox::cut_off()));
            drop(outbox);
            match answer {
                Ok((partition, offset)) => Ok(Origin { topic, partition, offset }),
                Err(source) => Err(Error::Publish { topic, kind: Refusal::of(&source), source }),
            }
        }
    }

    /// Sends records on their way, now and in this order; which of them were refused, once that is known of all.
    #[must_use]
    pub fn publish_all(&self, records: impl IntoIterator<Item = Outgoing>) -> Refusals {
        let (refuse, refused) = mpsc::unbounded_channel();
        let Shared { config, brokers, place } = &*self.shared;
        let (mut topics, mut records) = (Vec::new(), records.into_iter());
        let mut noted = records.by_ref().map(|record| {
            topics.push(record.topic.clone());
            (record, Whom::Many(topics.len() - 1, refuse.clone()))
        });
        let outbox = place.put(config, noted.by_ref());
        if let Err(source) = &outbox {
            for (number, _) in noted.enumerate() {
                let _ = refuse.send((number, source.clone()));
            }
        }
        Refusals { topics, brokers: brokers.clone(), refused, outbox: outbox.ok() }
    }

    /// Waits until all that is under way is confirmed or refused, which takes no longer than the timeout
    /// of publishing from the last record on that librdkafka had room for.
    pub async fn flush(&self) {
        if let Some(outbox) = self.shared.place.get() {
            outbox.flushed().await;
        }
    }
}

/// Which of some records were refused.
pub struct Refusals {
    topics: Vec<Topic>,
    brokers: String,
    refused: mpsc::UnboundedReceiver<(usize, KafkaError)>,
    /// It lives until the last answer: what is under way ends with it.
    outbox: Option<Arc<Outbox>>,
}

impl Refusals {
    /// The number of the next that was refused, and why; `None` once all others are confirmed.
    pub async fn next(&mut self) -> Option<(usize, Error)> {
        let (number, source) = self.refused.recv().await?;
        let error = match &self.outbox {
            Some(_) => {
                Error::Publish { topic: self.topics[number].clone(), kind: Refusal::of(&source), source }
            }
            None => Error::Client { brokers: self.brokers.clone(), source },
        };
        Some((number, error))
    }
}

pub(crate) fn native(headers: &Headers) -> Option<OwnedHeaders> {
    let count = headers.iter().len();
    (count > 0).then(|| {
        headers.iter().fold(OwnedHeaders::new_with_capacity(count), |native, header| {
            native.insert(Header { key: &header.name, value: header.value.as_deref() })
        })
    })
}

#[cfg(test)]
mod tests {
    use redrive_broker::{Broker, BrokerConfig};
    use redrive_testkit::{Cluster, new_topic_with};

    use super::*;

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "what is waited for has no signal: nothing happens")]
    async fn a_publisher_that_rests_has_no_client_and_makes_another_for_the_next_record() {
        let broker = Broker::start(BrokerConfig::default()).await.unwrap();
        let cluster = Cluster { brokers: broker.address().to_string(), properties: Vec::new() };
        let topic: Topic = new_topic_with(&cluster, "rests", 1, &[]).await.parse().unwrap();
        let publisher = Publisher::new(&Settings::of(cluster.brokers), &Publishing::default()).unwrap();
        for offset in 0..2 {
            let at = publisher.publish(Outgoing::to(topic.clone()).value("v")).await.unwrap();
            assert_eq!(at.offset, offset);
            assert!(publisher.shared.place.get().is_some(), "it is there while it is new");
            let given_up = async {
                while publisher.shared.place.get().is_some() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), given_up).await.unwrap();
        }
    }

    #[test]
    fn a_batch_is_never_larger_than_the_smallest_topic_accepts() {
        let publishing = Publishing {
            timeout: Duration::from_secs(8),
            max_message_bytes: Some(50_000),
            ..Publishing::default()
        };
        let mut settings = Settings::of("b");
        settings.properties = vec![("batch.size".to_owned(), "1000000".to_owned())];
        let config = publishing.config(&settings);
        let told = ["message.max.bytes", "batch.size", "message.timeout.ms"].map(|name| config.get(name));
        assert_eq!(told, [Some(LARGEST), Some("50000"), Some("8000")]);
    }
}
