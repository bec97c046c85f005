//! What a copy costs that does nothing else: each record consumed, and produced as it is, batched and pipelined by
//! librdkafka.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use redrive::Settings;

use crate::clock;

/// Copies so many records of the letters' topic; how long that takes, until the last is confirmed.
pub(crate) fn copy(settings: &Settings, partitions: i32, count: u64) -> Result<Duration, KafkaError> {
    let begun = clock::now();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.brokers);
    for (name, value) in &settings.properties {
        config.set(name, value);
    }
    let producer: BaseProducer =
        config.clone().set("enable.idempotence", "true").set("linger.ms", "5").create()?;
    config.set("group.id", "bare").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.set("isolation.level", "read_committed").create()?;
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset("measured.billing.dlq", partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    for _ in 0..count {
        let Some(message) = consumer.poll(Duration::from_secs(20)) else {
            return Err(KafkaError::Global(RDKafkaErrorCode::OperationTimedOut));
        };
        let message = message?;
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to("bare").partition(message.partition());
        record.key = message.key();
        record.payload = message.payload();
        record.headers = message
            .headers()
            .map(|headers| headers.iter().fold(OwnedHeaders::new(), |all, header| all.insert(header)));
        while let Err((error, back)) = producer.send(record) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(error);
            }
            record = back;
            producer.poll(Duration::from_millis(1));
        }
        producer.poll(Duration::ZERO);
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(begun.elapsed())
}
