//! What a group has committed, asked from outside: nobody joins it for that.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::Topic;
use tokio::task::spawn_blocking;

use crate::{Error, Settings};

/// How long a broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a group goes on in each partition of a topic of so many; `None` where it never committed.
pub async fn committed(
    settings: &Settings,
    group: &str,
    topic: &Topic,
    partitions: i32,
) -> Result<Vec<Option<i64>>, Error> {
    let mut config = settings.client();
    config.set("group.id", group).set("enable.auto.commit", "false");
    let consumer: BaseConsumer =
        config.create().map_err(|source| Error::Client { brokers: settings.brokers.clone(), source })?;
    let topic = topic.clone();
    let asked = spawn_blocking(move || {
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic.as_str(), 0, partitions.saturating_sub(1));
        let list = consumer.committed_offsets(list, PATIENCE)?;
        let offset = |partition: i32| match list.find_partition(topic.as_str(), partition) {
            Some(found) => {
                found.error()?;
                Ok(match found.offset() {
                    Offset::Offset(offset) => Some(offset),
                    _ => None,
                })
            }
            None => Ok(None),
        };
        (0..partitions).map(offset).collect::<Result<Vec<_>, KafkaError>>()
    });
    asked.await?.map_err(|source| Error::Group { group: group.to_owned(), source: source.into() })
}
