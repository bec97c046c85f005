//! Records to consume: written once, read by every pass.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use redrive::Cluster;

pub(crate) const PARTITIONS: i32 = 12;

/// A topic full of records.
pub(crate) struct Load {
    pub(crate) topic: String,
    pub(crate) records: u64,
}

impl Load {
    pub(crate) async fn write(
        cluster: &Cluster,
        purpose: &str,
        records: u64,
        bytes: usize,
        keys: u64,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let topic = Self::topic(purpose);
        create(cluster, &topic).await?;
        let load = Self { topic, records };
        load.append(cluster, bytes, keys)?;
        Ok(load)
    }

    /// What the topic of this purpose is called, in this run.
    pub(crate) fn topic(purpose: &str) -> String {
        format!("bench-{purpose}-{}", std::process::id())
    }

    /// Writes as many records as it says.
    pub(crate) fn append(
        &self,
        cluster: &Cluster,
        bytes: usize,
        keys: u64,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let producer: ThreadedProducer<DefaultProducerContext> = config(cluster)
            .set("enable.idempotence", "true")
            .set("linger.ms", "20")
            .set("batch.num.messages", "1000")
            .set("queue.buffering.max.kbytes", "262144")
            .create()?;
        let value = vec![b'v'; bytes];
        for n in 0..self.records {
            let key = format!("key-{}", n.wrapping_mul(2_654_435_761) % keys);
            let mut record = BaseRecord::to(&self.topic).key(&key).payload(&value);
            while let Err((error, refused)) = producer.send(record) {
                match error {
                    KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) => {
                        record = refused;
                        producer.flush(Duration::from_millis(100)).ok();
                    }
                    other => return Err(other.into()),
                }
            }
        }
        producer.flush(Duration::from_secs(120))?;
        Ok(())
    }
}

pub(crate) fn config(cluster: &Cluster) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &cluster.settings().brokers);
    config
}

pub(crate) async fn create(cluster: &Cluster, topic: &str) -> Result<(), Box<dyn std::error::Error>> {
    let admin: AdminClient<DefaultClientContext> = config(cluster).create()?;
    let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1)).set("retention.ms", "-1");
    for result in admin.create_topics([&new], &AdminOptions::new()).await? {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, error)) => return Err(format!("cannot make {topic}: {error}").into()),
        }
    }
    Ok(())
}

/// Removes the topics of this run, and those that were made for them: nobody else does, and they fill a disk.
pub(crate) async fn remove_all(cluster: &Cluster) -> Result<(), Box<dyn std::error::Error>> {
    let admin: AdminClient<DefaultClientContext> = config(cluster).create()?;
    let all = admin.inner().fetch_metadata(None, Duration::from_secs(10))?;
    let own = format!("-{}", std::process::id());
    let is_own = |name: &str| {
        let rest = name.strip_prefix("bench-").and_then(|name| name.split_once(&own));
        rest.is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('.'))
    };
    let names = all.topics().iter().map(rdkafka::metadata::MetadataTopic::name);
    let names: Vec<_> = names.filter(|name| is_own(name)).collect();
    if !names.is_empty() {
        admin.delete_topics(&names, &AdminOptions::new()).await?;
    }
    Ok(())
}
