//! The measure: the same bytes produced and consumed by bare clients at the same time.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use redrive::Cluster;

use crate::clock;
use crate::load::{Load, PARTITIONS, config, create};

/// Records per second, written and read back. Each pass has a topic of its own: what another wrote is not read again.
pub(crate) async fn produce_and_consume(
    cluster: &Cluster,
    pass: u32,
    records: u64,
    bytes: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let purpose = format!("plain-{pass}");
    let topic = Load::topic(&purpose);
    create(cluster, &topic).await?;
    let reader: BaseConsumer =
        config(cluster).set("group.id", "bench-plain").set("enable.auto.commit", "false").create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(&topic, partition, Offset::Beginning)?;
    }
    reader.assign(&all)?;
    let began = clock::now();
    let counting = tokio::task::spawn_blocking(move || {
        let mut counted = 0;
        while counted < records {
            if let Some(Ok(_)) = reader.poll(Duration::from_millis(100)) {
                counted += 1;
            }
        }
        began.elapsed()
    });
    Load::write(cluster, &purpose, records, bytes, 10_000).await?;
    Ok(records as f64 / counting.await?.as_secs_f64())
}
