//! A broker in the test, for processes that come and go, and records for it.

use bytes::Bytes;
use redrive::{Cluster, Outgoing, Publisher, Publishing};
use tempfile::TempDir;

/// A broker, a folder, and a publisher.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) folder: TempDir,
    publisher: Publisher,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::open("embedded").await.unwrap();
        let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
        Self { cluster, folder: tempfile::tempdir().unwrap(), publisher }
    }

    pub(crate) async fn topic(&self, name: &str, partitions: i32) {
        self.cluster.create_topic(name, partitions).await.unwrap();
    }

    /// The beginning of a configuration: this broker, a free port.
    pub(crate) fn head(&self) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\n\n[server]\nlisten = \"127.0.0.1:0\"\n",
            self.cluster.settings().brokers
        )
    }

    pub(crate) async fn send(&self, topic: &str, key: &str, value: &str) {
        let outgoing = Outgoing {
            key: Some(Bytes::from(key.to_owned())),
            value: Some(Bytes::from(value.to_owned())),
            ..Outgoing::to(topic.parse().unwrap())
        };
        self.publisher.publish(outgoing).await.unwrap();
    }

    /// All values of a topic of one partition, as text.
    pub(crate) async fn read(&self, topic: &str) -> String {
        let add = |text: &mut String, passage| match passage {
            redrive_kafka::Passage::Begin { .. } => {}
            redrive_kafka::Passage::Record(record) => {
                text.push_str(&String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()));
                text.push('\n');
            }
        };
        let settings = self.cluster.settings();
        redrive_kafka::read_through(settings, topic.parse().unwrap(), vec![0], String::new(), add)
            .await
            .unwrap()
    }

    /// Sends so many, each with the number as its value, over so many keys.
    pub(crate) async fn send_many(&self, topic: &str, numbers: std::ops::Range<usize>, keys: usize) {
        for number in numbers {
            self.send(topic, &format!("key-{}", number % keys), &number.to_string()).await;
        }
    }
}

/// A subscription of a configuration that makes its topics.
pub(crate) fn subscription(topic: &str, group: &str, url: &str, more: &str) -> String {
    format!(
        "\n[[subscription]]\ntopic = \"{topic}\"\ngroup = \"{group}\"\nhandler.http.url = \"{url}\"\nauto-create = true\n{more}\n"
    )
}
