//! How long a record takes: from its production to its consumption, one at a time, and from the start
//! of the broker's process to the first acknowledgement.

use std::path::Path;

use rdkafka::consumer::BaseConsumer;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::Offset;

use crate::clock::{milliseconds, timed};
use crate::cluster::{Cluster, PATIENCE};
use crate::process::Embedded;

/// In milliseconds.
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Through a topic of this many partitions that one consumer has, a record after the other.
pub(crate) fn through(cluster: &Cluster, partitions: i32, count: usize) -> Latency {
    let topic = cluster.topic(&format!("latency-{partitions}"), partitions);
    let consumer = cluster.consumer(&topic, partitions, Offset::Beginning);
    let producer: BaseProducer = cluster.producing("0").create().expect("a producer");
    let mut pass = |number: usize| {
        let partition =
            i32::try_from(number * 7_919 % usize::try_from(partitions).expect("some")).expect("a partition");
        let ((), took) = timed(|| one(&producer, &consumer, &topic, partition, &number.to_string()));
        milliseconds(took)
    };
    // Connections and first fetches are not what is measured.
    for number in 0..usize::max(100, count / 10) {
        pass(number);
    }
    let mut times: Vec<f64> = (0..count).map(&mut pass).collect();
    times.sort_by(f64::total_cmp);
    cluster.remove(&[topic]);
    Latency { p50: times[count / 2], p99: times[count * 99 / 100] }
}

fn one(producer: &BaseProducer, consumer: &BaseConsumer, topic: &str, partition: i32, value: &str) {
    let record = BaseRecord::<(), str>::to(topic).partition(partition).payload(value);
    producer.send(record).map_err(|(refused, _)| refused).expect("room in the queue");
    let message = consumer.poll(PATIENCE).expect("a record in time").expect("a record");
    assert_eq!(message.payload(), Some(value.as_bytes()));
    producer.poll(std::time::Duration::ZERO);
}

/// From nothing to the first acknowledged record, with a process and a client that are new.
pub(crate) fn of_start(data: &Path) -> f64 {
    middle_of_five(|number| {
        let (broker, took) = timed(|| {
            let broker = Embedded::start(&data.join(number.to_string()));
            first_record(&Cluster::embedded(&broker), "first");
            broker
        });
        drop(broker);
        milliseconds(took)
    })
}

/// From a new client to its first acknowledged record.
pub(crate) fn of_client(cluster: &Cluster) -> f64 {
    let topic = cluster.topic("client", 1);
    let middle = middle_of_five(|_| milliseconds(timed(|| first_record(cluster, &topic)).1));
    cluster.remove(&[topic]);
    middle
}

fn first_record(cluster: &Cluster, topic: &str) {
    // Without idempotence: librdkafka waits half a second before it asks for a producer id again.
    let mut config = cluster.config();
    config.set("acks", "all").set("linger.ms", "0").set("topic.metadata.refresh.fast.interval.ms", "10");
    let producer: BaseProducer = config.create().expect("a producer");
    let record = BaseRecord::<(), str>::to(topic).partition(0).payload("first");
    producer.send(record).map_err(|(refused, _)| refused).expect("room in the queue");
    // Not `flush`, which looks again every 100 ms.
    while producer.in_flight_count() > 0 {
        producer.poll(std::time::Duration::from_millis(1));
    }
}

/// From nothing to a broker that listens: the part of it that is not the client's.
pub(crate) fn of_listening(data: &Path) -> f64 {
    middle_of_five(|number| {
        let (broker, took) = timed(|| Embedded::start(&data.join(number.to_string())));
        drop(broker);
        milliseconds(took)
    })
}

fn middle_of_five(measure: impl FnMut(usize) -> f64) -> f64 {
    let mut times: Vec<f64> = (0..5).map(measure).collect();
    times.sort_by(f64::total_cmp);
    times[2]
}
