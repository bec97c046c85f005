//! Records that are delivered at a time: a subscription of this library like any other.
//!
//! A [`Scheduled`] record goes to the topic `redrive.send`. Whoever runs [`deliverer`] consumes it as group
//! `redrive-send`: until its time has come a record is not ready and waits on the shelf of that subscription;
//! then it is published to its topic, in the transaction that completes it. `redrive delayed` shows what waits.

mod deliver;
mod scheduled;

use std::collections::BTreeMap;

use redrive_core::Topic;
use redrive_kafka::{Admin, Error, Refused};

pub use deliver::{deliverer, subscription};
pub use scheduled::{BadScheduled, HEADER, Scheduled};

/// The topic of records that are to be delivered.
pub const TOPIC: &str = "redrive.send";
/// The group that delivers them.
pub const GROUP: &str = "redrive-send";

/// Deliverers that can share the work.
const PARTITIONS: i32 = 6;

/// The topic of records that are to be delivered.
#[must_use]
pub fn topic() -> Topic {
    TOPIC.parse().expect("Kafka accepts it")
}

/// Makes the topic of records that are to be delivered, unless it is there. What is in it is kept until it is
/// consumed, however long nobody delivers.
pub async fn prepare(admin: &Admin) -> Result<(), Error> {
    let topic = topic();
    if !admin.outline(std::slice::from_ref(&topic)).await?.is_empty() {
        return Ok(());
    }
    let replication = i16::try_from(admin.cluster().await?.brokers.clamp(1, 3)).unwrap_or(1);
    let settings = [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];
    let settings: BTreeMap<_, _> =
        settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match admin.create(&topic, PARTITIONS, replication, &settings).await {
        Err(error) if error.refusal().is_some_and(Refused::is_there_already) => Ok(()),
        result => result,
    }
}
