//! What the tests share: a stage, a configuration in words, an endpoint in Python, and waiting for what must come.

#![allow(dead_code, unreachable_pub, reason = "each test file uses what it needs")]

pub mod collector;
pub mod raw;

use std::time::Duration;

use bytes::Bytes;
use redrive::testkit::Stage;
use redrive::{Clock, Outgoing, Record, Running, Status};
use redrive_config::Surroundings;

/// A stage with a topic `orders` of one partition.
pub async fn stage() -> Stage {
    let stage = Stage::new().await.unwrap();
    stage.topic("orders", 1).await.unwrap();
    stage
}

/// What the file says of a subscription to `orders` by the group `g` with these keys.
pub fn configured(keys: &str) -> redrive_config::Subscription {
    let text = format!(
        "kafka.brokers = \"embedded\"\n[[subscription]]\ntopic = \"orders\"\ngroup = \"g\"\nauto-create = true\n{keys}\n"
    );
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    match redrive_config::read("redrive.toml", &text, surroundings) {
        Ok(config) => config.subscriptions.into_iter().next().unwrap(),
        Err(report) => panic!("{report}"),
    }
}

/// The same with what it names, running by the system's clock.
pub async fn run(stage: &Stage, keys: &str) -> Running {
    let subscription = redrive_push::handled(&configured(keys)).unwrap();
    redrive::Worker::new(stage.cluster()).subscribe(subscription).start().await.unwrap()
}

/// The same by the clock of the stage.
pub async fn run_by_hand(stage: &Stage, keys: &str) -> Running {
    let subscription = redrive_push::handled(&configured(keys)).unwrap();
    stage.worker().subscribe(subscription).start().await.unwrap()
}

/// Publishes records with the same keys as values.
pub async fn send(stage: &Stage, values: &[&str]) {
    for value in values {
        stage.send("orders", value, value).await.unwrap();
    }
}

/// Publishes any record at all.
pub async fn publish(stage: &Stage, outgoing: Outgoing) {
    let publisher =
        redrive::Publisher::new(stage.cluster().settings(), &redrive::Publishing::default()).unwrap();
    publisher.publish(outgoing).await.unwrap();
}

pub fn outgoing(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&str, Option<&[u8]>)]) -> Outgoing {
    let bytes = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    Outgoing {
        key: key.map(bytes),
        value: value.map(bytes),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(bytes))).collect(),
        ..Outgoing::to("orders".parse().unwrap())
    }
}

pub async fn until_status(running: &Running, what: &str, is_so: impl FnMut(&Status) -> bool) -> Status {
    let mut status = running.statuses()[0].clone();
    tokio::select! {
        found = status.wait_for(is_so) => found.unwrap().clone(),
        () = sleep(30_000) => panic!("not in time: {what}"),
    }
}

/// Waits until it is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now().steady + Duration::from_secs(30);
    while !is_so() {
        assert!(clock.now().steady < deadline, "not in time: {what}");
        clock.sleep(Duration::from_millis(10)).await;
    }
}

pub async fn sleep(millis: u64) {
    Clock::system().sleep(Duration::from_millis(millis)).await;
}

pub fn header<'a>(letter: &'a Record, name: &str) -> &'a str {
    letter.headers.text(name).unwrap_or_else(|| panic!("no {name} in {:?}", letter.headers))
}
