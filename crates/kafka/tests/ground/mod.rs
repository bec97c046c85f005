//! Where a test runs: on the embedded broker always, and the same on real Kafka where there is one.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use redrive_broker::{Broker, BrokerConfig};
use redrive_core::Topic;
use redrive_core::headers::Headers;
use redrive_kafka::{
    Consumer, ConsumerSettings, Event, Events, Outgoing, Publisher, Publishing, Settings, join,
};
use redrive_testkit::{Cluster, kafka, new_name, new_topic_with};

pub(crate) struct Ground {
    pub(crate) cluster: Cluster,
    pub(crate) broker: Option<Broker>,
}

impl Ground {
    pub(crate) async fn embedded() -> Self {
        let config = BrokerConfig { auto_create_topics: false, ..BrokerConfig::default() };
        let broker = Broker::start(config).await.unwrap();
        let cluster = Cluster { brokers: broker.address().to_string(), properties: Vec::new() };
        Self { cluster, broker: Some(broker) }
    }

    pub(crate) fn real() -> Option<Self> {
        kafka().map(|cluster| Self { cluster, broker: None })
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { brokers: self.cluster.brokers.clone(), properties: self.cluster.properties.clone() }
    }

    pub(crate) async fn topic(&self, purpose: &str, partitions: i32) -> Topic {
        self.topic_with(purpose, partitions, &[]).await
    }

    pub(crate) async fn topic_with(
        &self,
        purpose: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> Topic {
        new_topic_with(&self.cluster, purpose, partitions, settings).await.parse().unwrap()
    }

    /// Makes a topic of this name, or more partitions of it.
    pub(crate) async fn grow(&self, topic: &Topic, partitions: usize) {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.cluster.brokers);
        for (name, value) in &self.cluster.properties {
            config.set(name, value);
        }
        let admin: AdminClient<DefaultClientContext> = config.create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
        let new = NewTopic::new(topic.as_str(), 1, TopicReplication::Fixed(1));
        let made = admin.create_topics([&new], &options).await.unwrap();
        if partitions > 1 || made[0].is_err() {
            let more = NewPartitions::new(topic.as_str(), partitions);
            let grown = admin.create_partitions([&more], &options).await.unwrap();
            assert!(grown.iter().all(Result::is_ok), "{grown:?}");
        }
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(&self.settings(), &Publishing::default()).unwrap()
    }

    /// So many records to each partition, numbered.
    pub(crate) async fn fill(&self, topic: &Topic, partitions: i32, each: i64) {
        let publisher = self.publisher();
        let all: Vec<_> = (0..each)
            .flat_map(|number| (0..partitions).map(move |partition| (partition, number)))
            .map(|(partition, number)| publisher.publish(numbered(topic, partition, number)))
            .collect();
        for published in all {
            soon(published).await.unwrap();
        }
    }

    pub(crate) fn join(&self, topic: &Topic, group: &str) -> (Consumer, Events) {
        join(ConsumerSettings::of(self.settings(), topic.clone(), group)).unwrap()
    }
}

pub(crate) fn numbered(topic: &Topic, partition: i32, number: i64) -> Outgoing {
    Outgoing {
        topic: topic.clone(),
        partition: Some(partition),
        timestamp: None,
        key: Some(Bytes::from(number.to_string())),
        value: Some(Bytes::from(vec![b'x'; 100])),
        headers: Headers::default(),
    }
}

pub(crate) fn new_group() -> String {
    new_name("group")
}

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("in time")
}

/// The next event that is no trouble.
pub(crate) async fn event(events: &mut Events) -> Event {
    loop {
        match soon(events.next()).await.expect("an event") {
            Event::Trouble(_) => {}
            event => return event,
        }
    }
}

/// Waits until the group has given something.
pub(crate) async fn assigned(events: &mut Events) -> Vec<i32> {
    loop {
        match event(events).await {
            Event::Assigned(partitions) if partitions.is_empty() => {}
            Event::Assigned(partitions) => return partitions,
            other => panic!("not an assignment: {other:?}"),
        }
    }
}

/// Makes a test of each function for the embedded broker and one for real Kafka.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(&super::ground::Ground::embedded().await).await;
            })*
        }
        mod real {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some(ground) = super::ground::Ground::real() else { return };
                super::$name(&ground).await;
            })*
        }
    };
}
