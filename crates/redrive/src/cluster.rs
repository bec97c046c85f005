//! Where Kafka is: somewhere else, or inside this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_kafka::Settings;

use crate::Error;

/// A Kafka cluster to work with. If it is embedded, it lives as long as this and its clones do.
#[derive(Clone)]
pub struct Cluster {
    settings: Settings,
    #[cfg(feature = "embedded")]
    broker: Option<Arc<redrive_broker::Broker>>,
}

impl Cluster {
    /// The cluster at these addresses (`localhost:9092,other:9092`), or `embedded` for a broker inside
    /// this process that keeps everything in memory.
    pub async fn open(brokers: &str) -> Result<Self, Error> {
        Self::with(brokers, Vec::new()).await
    }

    /// The same with properties of librdkafka, `security.protocol` for example.
    pub async fn with(brokers: &str, properties: Vec<(String, String)>) -> Result<Self, Error> {
        if brokers != "embedded" {
            let settings = Settings { brokers: brokers.to_owned(), properties };
            return Ok(Self {
                settings,
                #[cfg(feature = "embedded")]
                broker: None,
            });
        }
        Self::embedded(properties).await
    }

    #[cfg(feature = "embedded")]
    async fn embedded(properties: Vec<(String, String)>) -> Result<Self, Error> {
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        Self::embedded_at(listen, None, properties).await
    }

    /// A broker inside this process that others on this machine find at an address, and that keeps
    /// everything in a folder if it is given one.
    #[cfg(feature = "embedded")]
    pub async fn embedded_at(
        listen: std::net::SocketAddr,
        folder: Option<std::path::PathBuf>,
        properties: Vec<(String, String)>,
    ) -> Result<Self, Error> {
        let data = folder.map_or(redrive_broker::Data::Memory, redrive_broker::Data::Dir);
        let config = redrive_broker::BrokerConfig { listen, data, ..redrive_broker::BrokerConfig::default() };
        let broker = redrive_broker::Broker::start(config).await?;
        let settings = Settings { brokers: broker.address().to_string(), properties };
        Ok(Self { settings, broker: Some(Arc::new(broker)) })
    }

    #[cfg(not(feature = "embedded"))]
    #[allow(clippy::unused_async, reason = "the same shape as with the broker")]
    async fn embedded(_: Vec<(String, String)>) -> Result<Self, Error> {
        let what = "brokers = \"embedded\" needs the feature `embedded` of the crate redrive";
        Err(Error::Settings(vec![what.to_owned()]))
    }

    /// Makes a topic unless it is there, with the cluster's default settings.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<(), Error> {
        let topic = name.parse().map_err(|error| Error::Settings(vec![format!("{error}")]))?;
        let admin = redrive_kafka::Admin::new(&self.settings)?;
        if admin.outline(std::slice::from_ref(&topic)).await?.is_empty() {
            admin.create(&topic, partitions, 1, &BTreeMap::new()).await?;
        }
        Ok(())
    }

    /// How to reach it.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The broker, if it is inside this process.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn broker(&self) -> Option<&redrive_broker::Broker> {
        self.broker.as_deref()
    }
}
