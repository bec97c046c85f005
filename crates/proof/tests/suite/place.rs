//! Where a test takes place: a broker, a topic with its letters, a group, and a log.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use redrive::{Clock, Outgoing, Publisher, Publishing, Settings, Topic};
use redrive_broker::{Broker, BrokerConfig};
use redrive_core::shelf::{Deed, Entry, Order};
use redrive_kafka::Admin;
use redrive_testkit::{Cluster, Stored, new_name};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::calls::Calls;
use crate::subject::Command;

/// How long anything may take before a test fails. Passing tests never wait for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) struct Place {
    pub(crate) cluster: Cluster,
    pub(crate) admin: Admin,
    pub(crate) topic: String,
    pub(crate) group: String,
    folder: TempDir,
    publisher: Publisher,
    broker: Option<Mutex<Broker>>,
    /// The log as far as it was read.
    read: std::sync::Mutex<Calls>,
}

/// A record that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: String,
}

impl Place {
    /// A broker of its own, set up as `tools/kafka` sets up Apache Kafka.
    pub(crate) async fn embedded() -> Self {
        let config = BrokerConfig { auto_create_topics: false, ..BrokerConfig::default() };
        let broker = Broker::start(config).await.expect("an embedded broker");
        let cluster = Cluster { brokers: broker.address().to_string(), properties: Vec::new() };
        Self::on(cluster, Some(broker))
    }

    /// Apache Kafka, where there is one.
    pub(crate) fn kafka() -> Option<Self> {
        redrive_testkit::kafka().map(|cluster| Self::on(cluster, None))
    }

    fn on(cluster: Cluster, broker: Option<Broker>) -> Self {
        let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
        let publishing = Publishing { timeout: Duration::from_secs(30), ..Publishing::default() };
        Self {
            admin: Admin::new(&settings).expect("an admin client"),
            publisher: Publisher::new(&settings, &publishing).expect("a publisher"),
            topic: new_name("proof"),
            group: new_name("group"),
            folder: tempfile::tempdir().expect("a folder"),
            broker: broker.map(Mutex::new),
            read: std::sync::Mutex::default(),
            cluster,
        }
    }

    /// The broker, to be made to fail.
    pub(crate) async fn broker(&self) -> tokio::sync::MutexGuard<'_, Broker> {
        self.broker.as_ref().expect("only on the embedded broker").lock().await
    }

    pub(crate) fn dlq(&self) -> String {
        format!("{}.{}.dlq", self.topic, self.group)
    }

    pub(crate) fn shelf(&self) -> String {
        format!("{}.{}.shelf", self.topic, self.group)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the topic and the one for its letters; a worker mends the settings when it starts.
    pub(crate) async fn topics(&self, partitions: i32) {
        self.make(&self.topic, partitions, &[]).await;
        self.make(&self.dlq(), partitions, &[]).await;
    }

    /// Makes a topic; one of that name that was just deleted may stand in the way for a while.
    pub(crate) async fn make(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let topic: Topic = name.parse().expect("the name of a topic");
        let settings: BTreeMap<_, _> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        until("the topic is made", async || self.admin.create(&topic, partitions, 1, &settings).await.ok())
            .await;
        until("the topic is known", async || {
            let known = self.admin.outline(std::slice::from_ref(&topic)).await.ok()?;
            (known.get(&topic)?.partitions == partitions).then_some(())
        })
        .await;
    }

    /// Sends records, each to the partition of its key, in this order.
    pub(crate) async fn send<K: Into<String>, V: Into<String>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Vec<Sent> {
        self.publish(records.into_iter().map(|(key, value)| (None, key.into(), value.into()))).await
    }

    /// Sends records to one partition.
    pub(crate) async fn send_to(&self, partition: i32, values: &[&str]) -> Vec<Sent> {
        let records = values.iter().map(|value| (Some(partition), "k".to_owned(), (*value).to_owned()));
        self.publish(records).await
    }

    async fn publish(&self, records: impl Iterator<Item = (Option<i32>, String, String)>) -> Vec<Sent> {
        let topic: Topic = self.topic.parse().expect("the name of a topic");
        let mut on_their_way = Vec::new();
        for (partition, key, value) in records {
            let mut outgoing = Outgoing::to(topic.clone()).key(key.clone()).value(value);
            outgoing.partition = partition;
            on_their_way.push((key, self.publisher.publish(outgoing)));
        }
        let mut sent = Vec::new();
        for (key, on_its_way) in on_their_way {
            let at = on_its_way.await.expect("it is published");
            sent.push(Sent { partition: at.partition, offset: at.offset, key });
        }
        sent
    }

    /// A worker to be started.
    pub(crate) fn worker(&self) -> Command<'_> {
        Command::new(self)
    }

    /// What the workers have written down so far.
    pub(crate) fn calls(&self) -> Calls {
        let mut read = self.read.lock().expect("nobody failed while reading");
        read.read_on(&self.file("log"));
        read.clone()
    }

    /// Waits until the log shows something.
    pub(crate) async fn until_calls<T>(&self, what: &str, look: impl Fn(&Calls) -> Option<T>) -> T {
        let clock = Clock::system();
        loop {
            let calls = self.calls();
            if let Some(found) = look(&calls) {
                return found;
            }
            assert!(clock.now().steady < PATIENCE, "not in time: {what}\n{}", calls.tail());
            clock.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until so many calls began, or little is left of what was sent.
    pub(crate) async fn until_progress(&self, what: &str, starts: usize, sent: usize) {
        let enough = |calls: &Calls| calls.starts() > starts || calls.done() * 10 > sent * 9;
        self.until_calls(what, |calls| enough(calls).then_some(())).await;
    }

    /// Waits until so many records were handled: as long as something goes on, it may take its time.
    pub(crate) async fn until_done(&self, count: usize) {
        let (clock, mut last) = (Clock::system(), (0, Duration::ZERO));
        loop {
            let calls = self.calls();
            if calls.done() >= count {
                return;
            }
            let now = clock.now().steady;
            if calls.starts() > last.0 {
                last = (calls.starts(), now);
            }
            let late = now > last.1 + PATIENCE;
            assert!(!late, "not in time: {count} handled, {} are\n{}", calls.done(), calls.tail());
            clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// All letters.
    pub(crate) async fn letters(&self, partitions: i32) -> Vec<Stored> {
        self.stored(&self.dlq(), partitions).await
    }

    /// All records of a topic.
    pub(crate) async fn stored(&self, topic: &str, partitions: i32) -> Vec<Stored> {
        let (cluster, topic) = (self.cluster.clone(), topic.to_owned());
        let read = tokio::task::spawn_blocking(move || cluster.everything(&topic, partitions));
        read.await.expect("the topic is read")
    }

    pub(crate) async fn committed(&self, partitions: i32) -> Vec<Option<i64>> {
        let (cluster, topic, group) = (self.cluster.clone(), self.topic.clone(), self.group.clone());
        let asked = tokio::task::spawn_blocking(move || cluster.committed(&group, &topic, partitions));
        asked.await.expect("the group is asked")
    }

    /// The offset at which a partition of the shelf begins.
    pub(crate) async fn shelf_begins(&self, partition: i32) -> i64 {
        let (cluster, shelf) = (self.cluster.clone(), self.shelf());
        let asked = tokio::task::spawn_blocking(move || cluster.begins(&shelf, partition));
        asked.await.expect("the topic is asked")
    }

    /// As an operator's tool does: the group, which nobody is in, is to go on here.
    pub(crate) async fn reset(&self, partition: i32, offset: i64) {
        until("the group is set", async || {
            let (cluster, topic, group) = (self.cluster.clone(), self.topic.clone(), self.group.clone());
            let reset = tokio::task::spawn_blocking(move || cluster.reset(&group, &topic, partition, offset));
            reset.await.expect("the group is asked").then_some(())
        })
        .await;
    }

    /// As a tool does: an order about a record, appended to its shelf.
    pub(crate) async fn order(&self, partition: i32, origin: i64, deed: Deed) {
        let order = Order {
            id: new_name("order"),
            origin,
            deed,
            by: "the test".to_owned(),
            reason: String::new(),
            job: None,
        };
        let written = Entry::Order(order).write();
        let topic: Topic = self.shelf().parse().expect("the name of a topic");
        let outgoing = Outgoing {
            partition: Some(partition),
            key: written.key,
            value: written.value,
            headers: written.headers,
            ..Outgoing::to(topic)
        };
        self.publisher.publish(outgoing).await.expect("it is published");
    }

    /// Waits until the workers say, by their commits, that all of this is complete.
    pub(crate) async fn until_complete(&self, sent: &[Sent], partitions: i32) {
        let mut ends = vec![None; partitions as usize];
        for one in sent {
            let end: &mut Option<i64> = &mut ends[one.partition as usize];
            *end = (*end).max(Some(one.offset + 1));
        }
        let clock = Clock::system();
        loop {
            let committed = self.committed(partitions).await;
            let complete = ends.iter().zip(&committed).all(|(end, committed)| committed >= end);
            if complete {
                return;
            }
            let late = clock.now().steady > PATIENCE;
            assert!(!late, "not in time: {ends:?} complete, {committed:?} is\n{}", self.calls().tail());
            clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// After the workers say that all is complete: nothing is lost, and each lane was in order.
    pub(crate) async fn judge(&self, sent: &[Sent], partitions: i32) -> Verdict {
        self.until_complete(sent, partitions).await;
        let (calls, letters) = (self.calls(), self.letters(partitions).await);
        calls.judge(sent, &letters);
        Verdict { calls, letters }
    }
}

/// What a test that fails leaves behind is its log.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            println!("the log is {}", self.file("log").display());
        }
    }
}

/// What was seen when all was complete.
pub(crate) struct Verdict {
    pub(crate) calls: Calls,
    pub(crate) letters: Vec<Stored>,
}

/// Looks again and again until there is something to see.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let clock = Clock::system();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(clock.now().steady < PATIENCE, "not in time: {what}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}
