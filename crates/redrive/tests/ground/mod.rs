//! What tests of a worker share: a stage with a topic `orders`, and waiting for what must come.

#![allow(dead_code, unreachable_pub, reason = "each test file uses what it needs")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::testkit::Stage;
use redrive::{Class, Clock, Received, Record, Running, Status, Subscription, Worker};

pub type Seen = Arc<Mutex<Vec<String>>>;

/// A stage with a topic `orders`.
pub async fn stage(partitions: i32) -> Stage {
    let stage = Stage::new().await.unwrap();
    stage.topic("orders", partitions).await.unwrap();
    stage
}

pub fn orders() -> Subscription {
    Subscription::new("orders", "g").auto_create(true).retry(Class::Transient, "list(20ms x2)")
}

pub async fn run(stage: &Stage, subscription: Subscription) -> Running {
    Worker::new(stage.cluster())
        .service("shop")
        .instance("one")
        .subscribe(subscription)
        .start()
        .await
        .unwrap()
}

pub fn seen() -> (Seen, Seen) {
    let seen = Seen::default();
    (seen.clone(), seen)
}

pub fn note(seen: &Seen, received: &Received) {
    seen.lock().unwrap().push(received.text().unwrap_or("-").to_owned());
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

pub async fn until_status(running: &Running, what: &str, is_so: impl FnMut(&Status) -> bool) -> Status {
    let mut status = running.statuses()[0].clone();
    let found = tokio::select! {
        found = status.wait_for(is_so) => found.unwrap().clone(),
        () = sleep(30) => panic!("not in time: {what}"),
    };
    found
}

pub async fn sleep(seconds: u64) {
    Clock::system().sleep(Duration::from_secs(seconds)).await;
}

pub fn header<'a>(letter: &'a Record, name: &str) -> &'a str {
    letter.headers.text(name).unwrap_or_else(|| panic!("no {name} in {:?}", letter.headers))
}

/// Waits until so much was counted; what a worker counts it tells by the same clock, so that is turned a little.
pub async fn until_counted(stage: &Stage, running: &Running, what: &str, is_so: impl Fn(&Status) -> bool) {
    let status = running.statuses()[0].clone();
    until(what, || {
        stage.clock().advance(Duration::from_millis(10));
        is_so(&status.borrow())
    })
    .await;
}
