//! Topics and names that no other test uses, in this run or an earlier one.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::types::RDKafkaErrorCode;

use crate::Cluster;

/// A name for a topic, a group or a transactional id.
#[must_use]
pub fn new_name(purpose: &str) -> String {
    static RUN: OnceLock<u64> = OnceLock::new();
    static MADE: AtomicU32 = AtomicU32::new(0);
    // By chance, not by the process id: a cluster outlives many processes, and their ids come again.
    let run = RUN.get_or_init(|| RandomState::new().build_hasher().finish());
    format!("test-{purpose}-{run:016x}-{}", MADE.fetch_add(1, Ordering::Relaxed))
}

/// Makes a topic of this many partitions and waits until it is there.
///
/// # Panics
/// If the cluster refuses.
pub async fn new_topic(cluster: &Cluster, purpose: &str, partitions: i32) -> String {
    new_topic_with(cluster, purpose, partitions, &[]).await
}

/// Makes a topic with a configuration of its own and waits until it is there.
///
/// # Panics
/// If the cluster refuses.
pub async fn new_topic_with(
    cluster: &Cluster,
    purpose: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) -> String {
    let name = new_name(purpose);
    let admin = admin(cluster);
    let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
    let topic = settings.iter().fold(topic, |topic, (setting, value)| topic.set(setting, value));
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    let made = admin.create_topics([&topic], &options).await.expect("an answer of the cluster");
    assert!(made.iter().all(Result::is_ok), "cannot make {name}: {made:?}");
    name
}

/// Deletes a topic.
///
/// # Panics
/// If the cluster refuses.
pub async fn delete_topic(cluster: &Cluster, name: &str) {
    let deleted = admin(cluster).delete_topics(&[name], &AdminOptions::new()).await.expect("an answer");
    for result in deleted {
        result.expect("a topic that is gone");
    }
}

/// Deletes a group and all that it committed. Says whether that is done: it is refused while somebody is in it.
pub async fn delete_group(cluster: &Cluster, name: &str) -> bool {
    let deleted = admin(cluster).delete_groups(&[name], &AdminOptions::new()).await;
    deleted.is_ok_and(|groups| {
        groups.iter().all(|group| matches!(group, Ok(_) | Err((_, RDKafkaErrorCode::GroupIdNotFound))))
    })
}

fn admin(cluster: &Cluster) -> AdminClient<DefaultClientContext> {
    cluster.client().create().expect("an admin client")
}
