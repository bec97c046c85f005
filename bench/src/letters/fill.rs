//! Letters as Redrive writes them, of many causes, over thirty days: most messages differ from all others.

use std::collections::BTreeMap;

use bytes::Bytes;
use redrive::{Cluster, Outgoing, Publisher, Publishing, Topic};
use redrive_kafka::Admin;

const TOPICS: u64 = 4;
const PARTITIONS: i32 = 12;
/// How many different errors there are in each topic.
const CAUSES: u64 = 50;
const DAYS: u64 = 30;
pub(crate) const BEGAN: u64 = 1_790_000_000_000;

type Failed = Box<dyn std::error::Error>;

/// Makes letter topics and fills them.
pub(crate) async fn fill(cluster: &Cluster, letters: u64, bytes: usize) -> Result<Vec<Topic>, Failed> {
    let admin = Admin::new(cluster.settings())?;
    let mut topics = Vec::new();
    for number in 0..TOPICS {
        let topic: Topic = format!("bench-letters-{}.{number}.dlq", std::process::id()).parse()?;
        admin.create(&topic, PARTITIONS, 1, &BTreeMap::new()).await?;
        topics.push(topic);
    }
    write(cluster, &topics, 0, letters, letters, bytes).await?;
    Ok(topics)
}

/// Adds some letters.
pub(crate) async fn more(
    cluster: &Cluster,
    topics: &[Topic],
    from: u64,
    count: u64,
    bytes: usize,
) -> Result<(), Failed> {
    write(cluster, topics, from, from + count, from + count, bytes).await
}

async fn write(
    cluster: &Cluster,
    topics: &[Topic],
    from: u64,
    to: u64,
    of: u64,
    bytes: usize,
) -> Result<(), Failed> {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
    let payload = Bytes::from(vec![b'x'; bytes]);
    for number in from..to {
        let published = publisher.publish(letter(topics, number, of, &payload));
        if number % 20_000 == 19_999 {
            published.await?;
        }
    }
    publisher.flush().await;
    Ok(())
}

/// Scatters numbers, the same in every run.
pub(crate) fn scattered(number: u64) -> u64 {
    (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn letter(topics: &[Topic], number: u64, of: u64, payload: &Bytes) -> Outgoing {
    let chance = scattered(number);
    // Some errors are much more common than others.
    let cause = (chance % CAUSES) * (chance / CAUSES % CAUSES) / CAUSES;
    let topic = (chance / 7) % TOPICS;
    let partition = i32::try_from(number % 12).unwrap_or(0);
    let at = BEGAN + number * (DAYS * 86_400_000 / of.max(1));
    let key = format!("customer-{}", chance % (of / 4).max(1));
    let class = ["permanent", "transient", "outage", "not-ready"][(cause % 4) as usize];
    let kind = format!("shop.errors.Kind{cause}");
    let words = WORDS[(cause % 8) as usize];
    let message = format!(
        "{words}: order {number} of customer {} was not taken by node-{}",
        chance % 9_999,
        chance % 3
    );
    let chain = format!(
        "[{{\"type\":\"{kind}\",\"message\":\"{message}\"}},{{\"type\":\"io.Error\",\"message\":\"connection reset\"}}]"
    );
    let history =
        format!("[{{\"at\":{at},\"class\":\"{class}\",\"type\":\"{kind}\",\"instance\":\"worker-1\"}}]");
    Outgoing::to(topics[topic as usize].clone())
        .partition(partition)
        .key(key.clone())
        .value(payload.clone())
        .header("trace-id", format!("{chance:016x}"))
        .header("redrive-origin", format!("orders-{topic}/{partition}/{}", number / 12))
        .header("redrive-origin-timestamp", at.to_string())
        .header("redrive-group", format!("group-{topic}"))
        .header("redrive-attempt", (1 + chance % 5).to_string())
        .header("redrive-first-failed-at", at.to_string())
        .header("redrive-lane", key)
        .header("redrive-class", class)
        .header("redrive-error-type", kind)
        .header("redrive-error-message", message)
        .header("redrive-error-chain", chain)
        .header("redrive-history", history)
        .header("redrive-reason", if cause.is_multiple_of(4) { "permanent" } else { "exhausted" })
        .header("redrive-service", "shop")
        .header("redrive-instance", "worker-1")
        .header("redrive-handler", "http")
        .header("redrive-buried-at", at.to_string())
}

const WORDS: [&str; 8] = [
    "timed out while waiting for the database",
    "no such customer",
    "the card was declined",
    "cannot decode the payload",
    "connection refused by the ledger",
    "the version is older than the one that is stored",
    "the total does not match",
    "too many requests",
];
