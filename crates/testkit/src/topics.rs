//! Topics that no other test uses.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use crate::Cluster;

static MADE: AtomicU32 = AtomicU32::new(0);

/// Makes a topic of this many partitions and waits until it is there.
///
/// # Panics
/// If the cluster refuses.
pub async fn new_topic(cluster: &Cluster, purpose: &str, partitions: i32) -> String {
    let name = format!("test-{purpose}-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &cluster.brokers);
    for (property, value) in &cluster.properties {
        config.set(property, value);
    }
    let admin: AdminClient<DefaultClientContext> = config.create().expect("an admin client");
    let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    let made = admin.create_topics([&topic], &options).await.expect("an answer of the cluster");
    assert!(made.iter().all(Result::is_ok), "cannot make {name}: {made:?}");
    name
}
