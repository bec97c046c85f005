//! A member of a group that commits as it reads. It must never skip a record, and never be sent back
//! behind a commit that was acknowledged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client;

#[derive(Default)]
pub(crate) struct Read {
    /// The commits that were acknowledged, by partition.
    pub(crate) committed: BTreeMap<i32, i64>,
    /// The next offset that was not seen, by partition.
    next: BTreeMap<i32, i64>,
}

pub(crate) fn until(over: &AtomicBool, address: &str) -> Read {
    let mut config = client(address);
    config
        .set("group.id", "readers")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "200");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&["plain"]).expect("subscribed");
    let (mut read, mut since) = (Read::default(), 0);
    while !over.load(Ordering::SeqCst) {
        // Errors are the broker's absence, which librdkafka gets over by itself.
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) else {
            continue;
        };
        read.take_note(message.partition(), message.offset());
        since += 1;
        if since >= 50 {
            since = 0;
            read.commit(&consumer);
        }
    }
    assert!(!read.committed.is_empty(), "the group has committed nothing");
    read
}

impl Read {
    fn take_note(&mut self, partition: i32, offset: i64) {
        let next = self.next.entry(partition).or_default();
        assert!(offset <= *next, "partition {partition} went on at {offset}, {next} was not seen");
        let committed = self.committed.get(&partition).copied().unwrap_or_default();
        assert!(offset >= committed, "partition {partition} went back to {offset} behind {committed}");
        *next = (*next).max(offset + 1);
    }

    fn commit(&mut self, consumer: &BaseConsumer) {
        let mut offsets = TopicPartitionList::new();
        for (partition, next) in &self.next {
            offsets.add_partition_offset("plain", *partition, Offset::Offset(*next)).expect("an offset");
        }
        if consumer.commit(&offsets, CommitMode::Sync).is_ok() {
            self.committed.clone_from(&self.next);
        }
    }
}
