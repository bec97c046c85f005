//! Looks at what is stored: records as a read-committed reader sees them, and what a group committed.
//! All of it blocks.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::Cluster;

const ANSWER: Duration = Duration::from_secs(20);

/// A record that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its key, as text.
    pub key: Option<String>,
    /// Its value, as text.
    pub value: Option<String>,
    /// Its headers, as text.
    pub headers: BTreeMap<String, String>,
}

impl Cluster {
    /// What a client of this cluster begins with.
    #[must_use]
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        config
    }

    /// Everything in these partitions of a topic that is committed by now, as text.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn everything(&self, topic: &str, partitions: i32) -> Vec<Stored> {
        self.messages(topic, partitions).iter().map(kept).collect()
    }

    /// The same, byte for byte.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn messages(&self, topic: &str, partitions: i32) -> Vec<OwnedMessage> {
        let mut config = self.client();
        config.set("group.id", "testkit").set("enable.auto.commit", "false");
        config.set("isolation.level", "read_committed").set("enable.partition.eof", "true");
        config.set("fetch.wait.max.ms", "50").set("auto.offset.reset", "error");
        let reader: BaseConsumer = config.create().expect("a reader");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(topic, partition, Offset::Beginning).expect("a partition");
        }
        reader.assign(&list).expect("an assignment");
        let (mut stored, mut ends) = (Vec::new(), 0);
        while ends < partitions {
            match reader.poll(ANSWER) {
                Some(Ok(message)) => stored.push(message.detach()),
                Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
                Some(Err(error)) => panic!("cannot read {topic}: {error}"),
                None => panic!("cannot read {topic} within {ANSWER:?}"),
            }
        }
        stored
    }

    /// Where a group goes on in these partitions of a topic; none where it never committed.
    ///
    /// # Panics
    /// If the cluster does not answer.
    #[must_use]
    pub fn committed(&self, group: &str, topic: &str, partitions: i32) -> Vec<Option<i64>> {
        let consumer: BaseConsumer = self.client().set("group.id", group).create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition(topic, partition);
        }
        let committed = consumer.committed_offsets(list, ANSWER).expect("committed offsets");
        let offset = |offset| match offset {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        };
        committed.elements().iter().map(|element| offset(element.offset())).collect()
    }

    /// The first offset of a partition.
    ///
    /// # Panics
    /// If the cluster does not answer.
    #[must_use]
    pub fn begins(&self, topic: &str, partition: i32) -> i64 {
        let consumer: BaseConsumer = self.client().create().expect("a consumer");
        consumer.fetch_watermarks(topic, partition, ANSWER).expect("its bounds").0
    }

    /// Commits an offset for a group that nobody is in; whether the cluster took it.
    ///
    /// # Panics
    /// If there can be no such partition.
    #[must_use]
    pub fn reset(&self, group: &str, topic: &str, partition: i32, offset: i64) -> bool {
        let consumer: BaseConsumer = self.client().set("group.id", group).create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a partition");
        consumer.commit(&list, CommitMode::Sync).is_ok()
    }
}

fn kept(message: &impl Message) -> Stored {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = message.headers().into_iter().flat_map(Headers::iter);
    Stored {
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(text),
        value: message.payload().map(text),
        headers: headers
            .map(|header| (header.key.to_owned(), header.value.map(text).unwrap_or_default()))
            .collect(),
    }
}
