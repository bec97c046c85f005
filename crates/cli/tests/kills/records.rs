//! What is in the broker when all is over.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::clock::eventually;

pub(crate) const PARTITIONS: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Record {
    pub(crate) value: u64,
}

/// Everything that such a reader sees of a topic, up to its end.
pub(crate) fn all(address: &str, topic: &str, isolation: &str) -> Vec<Record> {
    let mut config = client(address, "all");
    config.set("isolation.level", isolation).set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.assign(&partitions(topic, Offset::Beginning)).expect("an assignment");
    let (mut records, mut ends) = (Vec::new(), 0);
    while ends < PARTITIONS {
        match consumer.poll(PATIENCE).expect("a record or an end in time") {
            Ok(message) => records.push(Record { value: number(&message) }),
            Err(KafkaError::PartitionEOF(_)) => ends += 1,
            Err(other) => panic!("{other}"),
        }
    }
    records
}

/// Where a group is, by partition.
pub(crate) fn committed(address: &str, group: &str, topic: &str) -> BTreeMap<i32, i64> {
    let consumer: BaseConsumer = client(address, group).create().expect("a consumer");
    let offsets = eventually("the group's offsets", || {
        consumer.committed_offsets(partitions(topic, Offset::Invalid), PATIENCE).ok()
    });
    let of = |offset: Offset| offset.to_raw().unwrap_or(-1);
    offsets.elements().iter().map(|each| (each.partition(), of(each.offset()))).collect()
}

pub(crate) fn number(message: &impl Message) -> u64 {
    let value = message.payload_view::<str>().expect("a value").expect("a text");
    value.parse().expect("a number")
}

fn client(address: &str, group: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address).set("group.id", group).set("enable.auto.commit", "false");
    config
}

fn partitions(topic: &str, at: Offset) -> TopicPartitionList {
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(topic, partition, at).expect("an offset");
    }
    all
}
