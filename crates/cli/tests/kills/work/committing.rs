//! A transactional producer: each transaction writes its number to every partition and commits it as a
//! group's offset. What was committed and what was aborted comes out; what is in doubt is in neither.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client;
use crate::records::PARTITIONS;

pub(crate) const GROUP: &str = "of-transactions";
/// Records of a transaction.
pub(crate) const RECORDS: usize = PARTITIONS as usize;
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(crate) struct Transactions {
    pub(crate) committed: BTreeSet<u64>,
    pub(crate) aborted: BTreeSet<u64>,
}

enum Ended {
    Committed,
    Aborted,
    /// The producer cannot go on; its successor ends the transaction.
    InDoubt,
}

/// One transaction after the other until told; every fifth is aborted.
pub(crate) fn until(over: &AtomicBool, address: &str) -> Transactions {
    let member: BaseConsumer = client(address).set("group.id", GROUP).create().expect("a consumer");
    let metadata = member.group_metadata().expect("a group");
    let (mut transactions, mut producer) = (Transactions::default(), None);
    for number in 1_u64.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let current = producer.take().unwrap_or_else(|| new_producer(address));
        match transact(&current, &metadata, number) {
            Ended::Committed => drop(transactions.committed.insert(number)),
            Ended::Aborted => drop(transactions.aborted.insert(number)),
            Ended::InDoubt => continue,
        }
        producer = Some(current);
    }
    // What is in doubt is decided when the successor has begun.
    new_producer(address);
    transactions
}

fn new_producer(address: &str) -> BaseProducer {
    let mut config = client(address);
    config.set("transactional.id", "committing").set("transaction.timeout.ms", "10000");
    let producer: BaseProducer = config.create().expect("a producer");
    again(|| producer.init_transactions(PATIENCE)).expect("a transactional producer");
    producer
}

fn transact(producer: &BaseProducer, metadata: &ConsumerGroupMetadata, number: u64) -> Ended {
    let Err(cause) = attempt(producer, metadata, number) else {
        return Ended::Committed;
    };
    if must_abort(&cause) {
        match again(|| producer.abort_transaction(PATIENCE)) {
            Ok(()) => return Ended::Aborted,
            Err(_) => return Ended::InDoubt,
        }
    }
    Ended::InDoubt
}

fn attempt(producer: &BaseProducer, metadata: &ConsumerGroupMetadata, number: u64) -> Result<(), KafkaError> {
    producer.begin_transaction()?;
    let value = number.to_string();
    for partition in 0..PARTITIONS {
        let record: BaseRecord<'_, (), String> =
            BaseRecord::to("committed").partition(partition).payload(&value);
        producer.send(record).map_err(|(refused, _)| refused)?;
    }
    let mut offsets = TopicPartitionList::new();
    let offset = Offset::Offset(i64::try_from(number).expect("a small number"));
    offsets.add_partition_offset("plain", 0, offset)?;
    again(|| producer.send_offsets_to_transaction(&offsets, metadata, PATIENCE))?;
    if number.is_multiple_of(5) {
        // Not all of them are meant to be.
        return Err(KafkaError::Canceled);
    }
    again(|| producer.commit_transaction(PATIENCE))
}

fn must_abort(cause: &KafkaError) -> bool {
    match cause {
        KafkaError::Canceled => true,
        KafkaError::Transaction(cause) => cause.txn_requires_abort(),
        _ => false,
    }
}

/// What librdkafka calls retriable is tried again, a few times.
fn again(call: impl Fn() -> Result<(), KafkaError>) -> Result<(), KafkaError> {
    for _ in 0..3 {
        match call() {
            Err(KafkaError::Transaction(cause)) if cause.is_retriable() => {}
            other => return other,
        }
    }
    call()
}
