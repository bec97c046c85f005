//! How many records a second go in, acknowledged by all and none doubled, and how many come out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::Offset;

use crate::Sizes;
use crate::clock::timed;
use crate::cluster::{Cluster, PATIENCE};
use crate::table::Table;

/// What counts of a broker's passes.
struct Middle {
    broker: &'static str,
    rate: f64,
}

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

/// Into new topics. The brokers take turns, so that whatever else the machine does meets both alike.
pub(crate) fn produce(clusters: &[Cluster], partitions: i32, sizes: &Sizes, table: &mut Table) {
    let middle = in_turns(clusters, sizes.passes, |cluster, pass| {
        let topic = cluster.topic(&format!("in-{partitions}-{pass}"), partitions);
        let rate = produce_once(&cluster.producing("5"), &topic, partitions, sizes);
        cluster.remove(&[topic]);
        rate
    });
    note(table, "produced", partitions, sizes, &middle);
}

fn produce_once(config: &ClientConfig, topic: &str, partitions: i32, sizes: &Sizes) -> f64 {
    let producer: BaseProducer<Deliveries> =
        config.create_with_context(Deliveries::default()).expect("a producer");
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

/// Out of topics that hold the same batches. Gives their name.
pub(crate) fn consume(clusters: &[Cluster], partitions: i32, sizes: &Sizes, table: &mut Table) -> String {
    let topics: Vec<String> = clusters.iter().map(|cluster| fill(cluster, partitions, sizes)).collect();
    let middle =
        in_turns(clusters, sizes.passes, |cluster, _| consume_once(cluster, &topics[0], partitions, sizes));
    note(table, "consumed", partitions, sizes, &middle);
    topics.into_iter().next().expect("a broker")
}

/// A topic whose batches are all of one size: a client that waits longer for a slower broker makes larger
/// ones, and these cost less to read.
fn fill(cluster: &Cluster, partitions: i32, sizes: &Sizes) -> String {
    let topic = cluster.topic(&format!("out-{partitions}"), partitions);
    let mut config = cluster.producing("1000");
    config.set("batch.num.messages", sizes.batch.to_string());
    produce_once(&config, &topic, partitions, sizes);
    topic
}

/// The middle rate of each, all measured in turns and each turn in the other order.
fn in_turns(clusters: &[Cluster], passes: usize, measure: impl Fn(&Cluster, usize) -> f64) -> Vec<Middle> {
    let mut rates = vec![Vec::new(); clusters.len()];
    for pass in 0..passes {
        let mut order: Vec<usize> = (0..clusters.len()).collect();
        if pass % 2 == 1 {
            order.reverse();
        }
        for at in order {
            rates[at].push(measure(&clusters[at], pass));
        }
    }
    let middle = |(cluster, mut rates): (&Cluster, Vec<f64>)| {
        rates.sort_by(f64::total_cmp);
        eprintln!("{}: {rates:.0?}", cluster.name);
        Middle { broker: cluster.name, rate: rates[rates.len() / 2] }
    };
    clusters.iter().zip(rates).map(middle).collect()
}

fn note(table: &mut Table, done: &str, partitions: i32, sizes: &Sizes, middle: &[Middle]) {
    let records = format!("{}k × {} B", sizes.records / 1000, sizes.size);
    for Middle { broker, rate } in middle {
        table.note(&format!("{records}, {partitions} partition(s): {done} a second"), broker, *rate);
    }
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
