//! How many records a second go in, acknowledged by all and none doubled, and how many come out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::Offset;

use crate::Sizes;
use crate::clock::timed;
use crate::cluster::{Cluster, PATIENCE};

#[derive(Default)]
struct Deliveries {
    acknowledged: AtomicU64,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        assert!(result.is_ok(), "a record was not delivered");
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn produce(cluster: &Cluster, topic: &str, partitions: i32, sizes: &Sizes) -> f64 {
    let producer: BaseProducer<Deliveries> =
        cluster.producing("5").create_with_context(Deliveries::default()).expect("a producer");
    let value: Vec<u8> = (0..sizes.size).map(|place| (place * 31 % 251) as u8).collect();
    let ((), took) = timed(|| {
        for number in 0..sizes.records {
            let partition =
                i32::try_from(number % u64::from(partitions.unsigned_abs())).expect("a partition");
            send(&producer, BaseRecord::to(topic).partition(partition).payload(&value));
        }
        // Not `flush`, which looks again every 100 ms.
        while producer.in_flight_count() > 0 {
            producer.poll(Duration::from_millis(1));
        }
    });
    assert_eq!(producer.context().acknowledged.load(Ordering::Relaxed), sizes.records);
    rate(sizes.records, took)
}

fn send(producer: &BaseProducer<Deliveries>, record: BaseRecord<'_, (), Vec<u8>>) {
    let mut waiting = record;
    loop {
        match producer.send(waiting) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), record)) => {
                producer.poll(Duration::from_millis(10));
                waiting = record;
            }
            Err((refused, _)) => panic!("{refused}"),
        }
    }
}

/// One pass takes less than a second, in which anything may come between: the middle one of five counts.
pub(crate) fn consume(cluster: &Cluster, topic: &str, partitions: i32, sizes: &Sizes) -> f64 {
    let mut rates = [0.0; 5].map(|_: f64| consume_once(cluster, topic, partitions, sizes));
    rates.sort_by(f64::total_cmp);
    rates[2]
}

fn consume_once(cluster: &Cluster, topic: &str, partitions: i32, sizes: &Sizes) -> f64 {
    let consumer = cluster.consumer(topic, partitions, Offset::Beginning);
    let size = || consumer.poll(PATIENCE).expect("a record in time").expect("a record").payload_len() as u64;
    // From the first record on: connecting is not what is measured.
    let first = size();
    let (rest, took) = timed(|| (1..sizes.records).map(|_| size()).sum::<u64>());
    let bytes = first + rest;
    assert_eq!(bytes, sizes.records * sizes.size as u64);
    rate(sizes.records, took)
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn rate(records: u64, took: Duration) -> f64 {
    records as f64 / took.as_secs_f64()
}
