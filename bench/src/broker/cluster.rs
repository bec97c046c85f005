//! A broker to be measured: its clients, its topics, its process.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::process::{self, Embedded};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) process: u32,
}

impl Cluster {
    pub(crate) fn embedded(broker: &Embedded) -> Cluster {
        Cluster { name: "embedded", address: broker.address.clone(), process: broker.id() }
    }

    /// Apache Kafka on this machine.
    pub(crate) fn at(address: &str) -> Cluster {
        let port =
            address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("an address with a port");
        let process = process::listening_on(port).expect("a broker on this machine");
        Cluster { name: "kafka", address: address.to_owned(), process }
    }

    pub(crate) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.address);
        config
    }

    /// A producer's settings: nothing is lost, nothing doubled.
    pub(crate) fn producing(&self, linger: &str) -> ClientConfig {
        let mut config = self.config();
        config.set("acks", "all").set("enable.idempotence", "true").set("linger.ms", linger);
        config
    }

    pub(crate) fn topic(&self, purpose: &str, partitions: i32) -> String {
        self.topics(purpose, 1, partitions).remove(0)
    }

    /// New topics; all are led when this returns.
    pub(crate) fn topics(&self, purpose: &str, count: usize, partitions: i32) -> Vec<String> {
        let names: Vec<_> =
            (0..count).map(|number| format!("bench-{}-{purpose}-{number}", std::process::id())).collect();
        let new: Vec<_> =
            names.iter().map(|name| NewTopic::new(name, partitions, TopicReplication::Fixed(1))).collect();
        let (admin, options) = (self.admin(), AdminOptions::new().operation_timeout(Some(PATIENCE)));
        let made = wait(admin.create_topics(&new, &options)).expect("an answer");
        assert!(made.iter().all(Result::is_ok), "{made:?}");
        let all = usize::try_from(partitions).expect("partitions");
        for name in &names {
            let led = || {
                let metadata = admin.inner().fetch_metadata(Some(name), PATIENCE).expect("metadata");
                let partitions = metadata.topics()[0].partitions();
                partitions.iter().filter(|partition| partition.leader() >= 0).count() == all
            };
            while !led() {
                crate::clock::pass(Duration::from_millis(20));
            }
        }
        names
    }

    pub(crate) fn remove(&self, topics: &[String]) {
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        wait(self.admin().delete_topics(&names, &options)).expect("an answer");
    }

    /// A consumer of all partitions of a topic, from here on.
    pub(crate) fn consumer(&self, topic: &str, partitions: i32, from: Offset) -> BaseConsumer {
        let mut config = self.config();
        config.set("group.id", "bench").set("enable.auto.commit", "false").set("check.crcs", "false");
        let consumer: BaseConsumer = config.create().expect("a consumer");
        let mut assignment = TopicPartitionList::new();
        for partition in 0..partitions {
            assignment.add_partition_offset(topic, partition, from).expect("an offset");
        }
        consumer.assign(&assignment).expect("an assignment");
        consumer
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("an admin client")
    }
}

fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(answer)
}
