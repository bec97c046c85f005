//! What a broker costs while nothing happens: many topics, and a member of a group that waits on one.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::Sizes;
use crate::clock::timed;
use crate::cluster::Cluster;
use crate::process::processor_time;

/// The share of one core, in percent.
pub(crate) fn processor_share(cluster: &Cluster, sizes: &Sizes) -> f64 {
    let topics = cluster.topics("idle", sizes.topics, 12);
    let mut config = cluster.config();
    config.set("group.id", format!("bench-{}", std::process::id()));
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&[&topics[0]]).expect("subscribed");
    while consumer.assignment().expect("an assignment").count() < 12 {
        assert!(consumer.poll(Duration::from_millis(100)).is_none(), "an empty topic");
    }
    // Making the topics is not idleness; Kafka is busy with it for a while after it has answered.
    assert!(consumer.poll(Duration::from_secs(sizes.idle / 2)).is_none(), "an empty topic");
    let before = processor_time(cluster.process);
    let (_, took) = timed(|| consumer.poll(Duration::from_secs(sizes.idle)));
    let spent = processor_time(cluster.process) - before;
    drop(consumer);
    cluster.remove(&topics);
    100.0 * spent.as_secs_f64() / took.as_secs_f64()
}
