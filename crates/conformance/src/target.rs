//! The broker under test, and the clients of it that a test asks for.

use std::collections::HashMap;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::FutureProducer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use redrive_testkit::{Cluster, new_name, new_topic_with};

use crate::clients::{Member, Rebalances};
use crate::clock::{PATIENCE, eventually};
use crate::embedded;
use crate::raw::Connection;

/// A broker that a test may use as it likes, beside other tests.
#[derive(Debug)]
pub struct Target {
    cluster: Cluster,
}

/// Properties of a client, in librdkafka's words.
type Properties<'a> = &'a [(&'a str, &'a str)];

impl Target {
    /// The embedded broker that keeps everything in memory.
    #[must_use]
    pub fn in_memory() -> Target {
        Target { cluster: embedded::in_memory() }
    }

    /// The embedded broker that keeps everything in files.
    #[must_use]
    pub fn on_disk() -> Target {
        Target { cluster: embedded::on_disk() }
    }

    /// Apache Kafka, where there is one.
    #[must_use]
    pub fn kafka() -> Option<Target> {
        redrive_testkit::kafka().map(|cluster| Target { cluster })
    }

    /// A new topic with the broker's own settings.
    #[must_use]
    pub fn topic(&self, purpose: &str, partitions: i32) -> String {
        self.topic_with(purpose, partitions, &[])
    }

    /// A new topic with settings of its own. It is there when this returns.
    #[must_use]
    pub fn topic_with(&self, purpose: &str, partitions: i32, settings: Properties<'_>) -> String {
        let name = embedded::block_on(new_topic_with(&self.cluster, purpose, partitions, settings));
        self.wait_for(&name, partitions);
        name
    }

    /// Waits until every partition has a leader: Kafka answers before its brokers know.
    pub fn wait_for(&self, topic: &str, partitions: i32) {
        let client = self.admin();
        eventually("the topic is known", || {
            let metadata = client.inner().fetch_metadata(Some(topic), PATIENCE).ok()?;
            let known = metadata.topics().first()?.partitions();
            let led = known.iter().filter(|partition| partition.error().is_none() && partition.leader() >= 0);
            (led.count() == usize::try_from(partitions).ok()?).then_some(())
        });
    }

    /// A name that nobody else uses, for a group or a transactional id.
    #[must_use]
    pub fn name(&self, purpose: &str) -> String {
        new_name(purpose)
    }

    /// A client for administration.
    #[must_use]
    pub fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config(&[]).create().expect("an admin client")
    }

    /// A producer that gives up within the suite's patience.
    pub fn producer(&self, properties: Properties<'_>) -> FutureProducer {
        let mut config = self.config(&[("message.timeout.ms", "20000"), ("linger.ms", "5")]);
        config.extend(owned(properties));
        config.create().expect("a producer")
    }

    /// A producer with this transactional id, ready to begin.
    ///
    /// # Panics
    /// If the broker refuses it.
    pub fn transactional(&self, id: &str) -> FutureProducer {
        let producer = self.producer(&[("transactional.id", id)]);
        rdkafka::producer::Producer::init_transactions(&producer, PATIENCE)
            .expect("a transactional producer");
        producer
    }

    /// A member-to-be of a group: it subscribes to nothing yet, and commits only when told.
    #[must_use]
    pub fn member(&self, group: &str, properties: Properties<'_>) -> Member {
        let mut config = self.config(&[
            ("group.id", group),
            ("enable.auto.commit", "false"),
            // What rdkafka reads and drops while it leaves a group must not be committed as handled.
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "earliest"),
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "200"),
            ("fetch.wait.max.ms", "50"),
        ]);
        config.extend(owned(properties));
        config.create_with_context(Rebalances::default()).expect("a consumer")
    }

    /// A consumer outside any group, at this offset of one partition. It reports the end.
    #[must_use]
    pub fn reader(
        &self,
        topic: &str,
        partition: i32,
        from: Offset,
        properties: Properties<'_>,
    ) -> BaseConsumer {
        let mut config = self.config(&[
            ("group.id", "test-readers"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
            ("fetch.wait.max.ms", "20"),
        ]);
        config.extend(owned(properties));
        let reader: BaseConsumer = config.create().expect("a consumer");
        let mut assignment = TopicPartitionList::new();
        assignment.add_partition_offset(topic, partition, from).expect("an offset");
        reader.assign(&assignment).expect("an assignment");
        reader
    }

    /// The first and the next offset of a partition.
    #[must_use]
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        self.admin().inner().fetch_watermarks(topic, partition, PATIENCE).expect("watermarks")
    }

    /// A connection for requests that librdkafka does not make. It speaks neither TLS nor SASL.
    #[must_use]
    pub fn connect(&self) -> Connection {
        let secured = self.cluster.properties.iter().find(|(name, _)| name == "security.protocol");
        assert!(secured.is_none_or(|(_, protocol)| protocol == "PLAINTEXT"), "by hand means in plain text");
        let first = self.cluster.brokers.split(',').next().expect("an address");
        Connection::to(first)
    }

    /// Waits for an answer of an admin client.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        embedded::block_on(answer)
    }

    /// The options of administrative requests.
    #[must_use]
    pub fn options(&self) -> AdminOptions {
        AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE))
    }

    fn config(&self, properties: Properties<'_>) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.cluster.brokers);
        config.extend(self.cluster.properties.iter().cloned());
        config.extend(owned(properties));
        config
    }
}

fn owned(properties: Properties<'_>) -> HashMap<String, String> {
    properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
