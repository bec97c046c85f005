//! Where a test takes place: a broker, a topic, a group, and a configuration for them.

use std::fmt::Write;
use std::path::Path;

use bytes::Bytes;
use redrive::{Outgoing, Publisher, Publishing, Settings};
use redrive_broker::{Broker, BrokerConfig};
use redrive_testkit::{Cluster, Stored, new_name, new_topic};
use tempfile::TempDir;

pub(crate) const PARTITIONS: i32 = 3;

pub(crate) struct Place {
    pub(crate) cluster: Cluster,
    pub(crate) topic: String,
    pub(crate) group: String,
    folder: TempDir,
    publisher: Publisher,
    _broker: Option<Broker>,
}

/// A record that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) spot: (i32, i64),
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Place {
    /// A broker of its own, set up as `tools/kafka` sets up Apache Kafka.
    pub(crate) async fn embedded() -> Self {
        let config = BrokerConfig { auto_create_topics: false, ..BrokerConfig::default() };
        let broker = Broker::start(config).await.unwrap();
        let cluster = Cluster { brokers: broker.address().to_string(), properties: Vec::new() };
        Self::on(cluster, Some(broker)).await
    }

    /// Apache Kafka, where there is one.
    pub(crate) async fn kafka() -> Option<Self> {
        Some(Self::on(redrive_testkit::kafka()?, None).await)
    }

    async fn on(cluster: Cluster, broker: Option<Broker>) -> Self {
        let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
        Self {
            topic: new_topic(&cluster, "service", PARTITIONS).await,
            group: new_name("group"),
            folder: tempfile::tempdir().unwrap(),
            publisher: Publisher::new(&settings, &Publishing::default()).unwrap(),
            _broker: broker,
            cluster,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A configuration with one subscription, the clients of which have these properties besides.
    pub(crate) fn config(&self, properties: &[(&str, &str)], url: &str, more: &str) -> String {
        // The shortest session that brokers allow: what dies is missed soon.
        let session = [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "500")];
        let own = self.cluster.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut text = format!("[kafka]\nbrokers = \"{}\"\n[kafka.properties]\n", self.cluster.brokers);
        for (name, value) in session.into_iter().chain(own).chain(properties.iter().copied()) {
            writeln!(text, "\"{name}\" = \"{value}\"").unwrap();
        }
        let (topic, group) = (&self.topic, &self.group);
        text + &format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[[subscription]]\ntopic = \"{topic}\"\ngroup = \"{group}\"\n\
             auto-create = true\nhandler.http.url = \"{url}\"\n{more}\n"
        )
    }

    /// Sends records, each to the partition of its key, in this order.
    pub(crate) async fn send<K: Into<String>, V: Into<String>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Vec<Sent> {
        let mut on_their_way = Vec::new();
        for (key, value) in records {
            let (key, value) = (key.into(), value.into());
            let outgoing = Outgoing::to(self.topic.parse().unwrap()).key(key.clone()).value(value.clone());
            on_their_way.push((key, value, self.publisher.publish(outgoing)));
        }
        let mut sent = Vec::new();
        for (key, value, on_its_way) in on_their_way {
            let at = on_its_way.await.unwrap();
            sent.push(Sent { spot: (at.partition, at.offset), key, value });
        }
        sent
    }

    /// Sends any record at all.
    pub(crate) async fn publish(&self, key: &[u8], value: &[u8], headers: &[(&str, Option<&[u8]>)]) {
        let bytes = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        let outgoing = Outgoing {
            key: Some(bytes(key)),
            value: Some(bytes(value)),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(bytes))).collect(),
            ..Outgoing::to(self.topic.parse().unwrap())
        };
        self.publisher.publish(outgoing).await.unwrap();
    }

    pub(crate) fn dlq(&self) -> String {
        format!("{}.{}.dlq", self.topic, self.group)
    }

    /// All dead letters.
    pub(crate) async fn letters(&self) -> Vec<Stored> {
        let (cluster, dlq) = (self.cluster.clone(), self.dlq());
        tokio::task::spawn_blocking(move || cluster.everything(&dlq, PARTITIONS)).await.unwrap()
    }
}
