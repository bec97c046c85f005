//! For tests of handlers: a broker inside the test, records in, letters out, and a clock turned by hand.
//!
//! ```
//! # tokio_test(async {
//! use redrive::testkit::Stage;
//! use redrive::{Classed, Received, Subscription};
//!
//! let stage = Stage::new().await?;
//! stage.topic("orders", 1).await?;
//! let orders = Subscription::new("orders", "billing").auto_create(true).handler(async |order: Received| {
//!     match order.text() {
//!         Some("bad") => Err(Classed::permanent("no such customer")),
//!         _ => Ok(()),
//!     }
//! });
//! let worker = stage.worker().subscribe(orders).start().await?;
//! stage.send("orders", "customer-1", "good").await?;
//! stage.send("orders", "customer-2", "bad").await?;
//! let letters = stage.letters("orders.billing.dlq", 1).await?;
//! assert_eq!(letters[0].headers.text("redrive-reason"), Some("permanent"));
//! worker.stop().await?;
//! # Ok::<_, Box<dyn std::error::Error>>(()) });
//! # fn tokio_test(test: impl Future<Output = Result<(), Box<dyn std::error::Error>>>) {
//! #     tokio::runtime::Runtime::new().unwrap().block_on(test).unwrap();
//! # }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use redrive_core::Origin;
use redrive_core::{Record, Timestamp, Topic};
use redrive_kafka::{Admin, Outgoing, Publisher, Publishing, Reader};

use crate::{Clock, Cluster, Error, Worker};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything a handler's test needs.
pub struct Stage {
    cluster: Cluster,
    clock: Clock,
    publisher: Publisher,
    admin: Admin,
}

impl Stage {
    /// A broker in memory, and a clock that stands still.
    pub async fn new() -> Result<Self, Error> {
        Self::on(Cluster::open("embedded").await?)
    }

    /// The same on a cluster that is there.
    pub fn on(cluster: Cluster) -> Result<Self, Error> {
        let publisher = Publisher::new(cluster.settings(), &Publishing::default())?;
        let admin = Admin::new(cluster.settings())?;
        let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
        Ok(Self { cluster, clock, publisher, admin })
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The clock that the worker's waits go by: [`Clock::advance`] turns it.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A worker on this stage, without subscriptions.
    #[must_use]
    pub fn worker(&self) -> Worker {
        Worker::new(&self.cluster).clock(self.clock.clone())
    }

    /// Makes a topic.
    pub async fn topic(&self, name: &str, partitions: i32) -> Result<(), Error> {
        let topic = parsed(name)?;
        self.admin.create(&topic, partitions, 1, &BTreeMap::new()).await?;
        Ok(())
    }

    /// Publishes a record by its key.
    pub async fn send(&self, topic: &str, key: &str, value: &str) -> Result<Origin, Error> {
        let bytes = |text: &str| Some(Bytes::from(text.to_owned()));
        let outgoing = Outgoing { key: bytes(key), value: bytes(value), ..Outgoing::to(parsed(topic)?) };
        Ok(self.publisher.publish(outgoing).await?)
    }

    /// Waits for so many records of partition 0 of a topic, dead letters for example.
    ///
    /// # Panics
    /// If they do not come.
    pub async fn letters(&self, topic: &str, count: usize) -> Result<Vec<Record>, Error> {
        let at = Origin { topic: parsed(topic)?, partition: 0, offset: 0 };
        let read = async {
            let reader = Reader::from(self.cluster.settings(), at)?;
            let mut letters = Vec::new();
            while letters.len() < count {
                letters.push(reader.next().await?);
            }
            Ok(letters)
        };
        let wall = Clock::system();
        tokio::select! {
            letters = read => letters,
            () = wall.sleep(PATIENCE) => panic!("{count} records of {topic} did not come in time"),
        }
    }
}

fn parsed(name: &str) -> Result<Topic, Error> {
    name.parse().map_err(|error| Error::Settings(vec![format!("{error}")]))
}
