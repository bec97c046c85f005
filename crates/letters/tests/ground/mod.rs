//! What tests of letters share: a broker, letters as different programs write them, and an index in a folder.

#![allow(dead_code, unreachable_pub, reason = "each test file uses what it needs")]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use redrive::{Clock, Cluster, Origin, Outgoing, Publisher, Publishing, Settings, Topic};
use redrive_kafka::Admin;
use redrive_letters::feed::{Fed, Feed, PATTERN, Which};
use redrive_letters::{Index, Page, Query, Summary};
use tempfile::TempDir;

pub struct Ground {
    pub cluster: Cluster,
    pub folder: TempDir,
    pub publisher: Publisher,
    pub admin: Admin,
}

impl Ground {
    pub async fn new() -> Self {
        let cluster = Cluster::open("embedded").await.unwrap();
        let publishing = Publishing { max_message_bytes: Some(4 << 20), ..Publishing::default() };
        let publisher = Publisher::new(cluster.settings(), &publishing).unwrap();
        let admin = Admin::new(cluster.settings()).unwrap();
        Self { cluster, folder: tempfile::tempdir().unwrap(), publisher, admin }
    }

    pub fn settings(&self) -> &Settings {
        self.cluster.settings()
    }

    pub async fn topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Topic {
        let topic: Topic = name.parse().unwrap();
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        self.admin.create(&topic, partitions, 1, &settings).await.unwrap();
        topic
    }

    pub async fn publish(&self, outgoing: Outgoing) -> Origin {
        self.publisher.publish(outgoing).await.unwrap()
    }

    pub fn feed(&self) -> Feed {
        let which = Which::new(Vec::new(), &[PATTERN.to_owned()]).unwrap();
        Feed::new(self.settings(), self.folder.path(), which)
    }

    pub async fn catch_up(&self) -> (Index, Fed) {
        self.feed().catch_up(|_| {}).await.unwrap()
    }

    /// All letters, the oldest first.
    pub async fn letters(&self) -> Vec<Summary> {
        let (mut index, _) = self.catch_up().await;
        all(&mut index, &Query { sort: redrive_letters::Sort::Oldest, ..Query::default() })
    }

    /// The file of the index.
    pub fn file(&self) -> std::path::PathBuf {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All that a question means, page by page.
pub fn all(index: &mut Index, query: &Query) -> Vec<Summary> {
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let Page { letters, next, .. } = index.page(query, 7, from).unwrap();
        found.extend(letters);
        from = next;
        if from.is_none() {
            return found;
        }
    }
}

/// A letter of Redrive.
pub fn letter(topic: &Topic, partition: i32, offset: i64, key: &str, message: &str) -> Outgoing {
    Outgoing::to(topic.clone())
        .partition(partition)
        .key(key.to_owned())
        .value(format!("payload of {offset}"))
        .header("trace-id", format!("t{offset}"))
        .header("redrive-origin", format!("orders/{partition}/{offset}"))
        .header("redrive-group", "billing")
        .header("redrive-attempt", "3")
        .header("redrive-class", "transient")
        .header("redrive-error-type", "Timeout")
        .header("redrive-error-message", message.to_owned())
        .header("redrive-reason", "exhausted")
        .header("redrive-lane", key.to_owned())
        .header("redrive-buried-at", (1_800_000_000_000 + offset * 1_000).to_string())
}

pub fn bytes(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

/// Waits until it is so.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now().steady + Duration::from_secs(30);
    while !is_so().await {
        assert!(clock.now().steady < deadline, "not in time: {what}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}
