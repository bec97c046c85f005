//! Records that are delivered at a time, once, and byte for byte.

mod ground;

use std::sync::Arc;
use std::time::Duration;

use ground::until_status;
use redrive::delayed::{Deed, View, Wish};
use redrive::send::{self, Scheduled};
use redrive::testkit::Stage;
use redrive::{Clock, Origin, Outgoing, Publisher, Publishing, Timestamp};
use redrive_kafka::Admin;

const MONTHS: Duration = Duration::from_secs(200 * 86_400);

async fn schedule(stage: &Stage, due: Timestamp, outgoing: Outgoing) -> Origin {
    let settings = stage.cluster().settings();
    send::prepare(&Admin::new(settings).unwrap()).await.unwrap();
    let publisher = Publisher::new(settings, &Publishing::default()).unwrap();
    publisher.publish(Scheduled { due, outgoing }.write()).await.unwrap()
}

fn to_orders(value: &str) -> Outgoing {
    Outgoing::to("orders".parse().unwrap()).key("k").value(value.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_delivered_at_its_time_and_not_before() {
    let stage = ground::stage(2).await;
    let due = Clock::system().now().wall.plus(Duration::from_secs(2));
    let outgoing = Outgoing {
        partition: Some(0),
        key: Some(vec![0, 255].into()),
        value: Some(vec![1, 159, 0].into()),
        ..to_orders("")
    };
    let outgoing = outgoing.header("redrive-due", "mine").header("a", vec![7]).header("a", "two");
    schedule(&stage, due, outgoing.clone()).await;
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    let delivered = stage.letters("orders", 1).await.unwrap().remove(0);
    assert!(delivered.timestamp.unwrap() >= due, "{:?} is before {due}", delivered.timestamp);
    let late = Clock::system().now().wall.since(due);
    assert!(late < Duration::from_secs(2), "{late:?}");
    assert_eq!((delivered.key, delivered.value), (outgoing.key, outgoing.value));
    assert_eq!(delivered.headers, outgoing.headers);
    deliverer.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_due_in_months_waits_over_restarts_and_keeps_no_other_waiting() {
    let stage = ground::stage(1).await;
    let now = Clock::system().now().wall;
    let far = schedule(&stage, now.plus(MONTHS), to_orders("far")).await;
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    until_status(&deliverer, "it waits", |status| status.counts.shelved == 1).await;
    deliverer.stop().await.unwrap();
    schedule(&stage, now, to_orders("now")).await;
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    let delivered = stage.letters("orders", 1).await.unwrap();
    assert_eq!(delivered[0].value.as_deref(), Some(&b"now"[..]));
    deliverer.stop().await.unwrap();
    let shelf = "redrive.send.redrive-send.shelf".parse().unwrap();
    let view = View::read(stage.cluster().settings(), shelf, &[], Arc::new(|_| true), |_| {}).await.unwrap();
    let waiting = view.records();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].origin, far);
    let wait = waiting[0].due.since(now);
    assert!(wait >= MONTHS && wait < MONTHS + Duration::from_secs(30), "{wait:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_released_is_delivered_at_once_and_only_once() {
    let stage = ground::stage(1).await;
    let now = Clock::system().now().wall;
    let far = schedule(&stage, now.plus(MONTHS), to_orders("far")).await;
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    until_status(&deliverer, "it waits", |status| status.counts.shelved == 1).await;
    let settings = stage.cluster().settings();
    let shelf = "redrive.send.redrive-send.shelf".parse().unwrap();
    let mut view = View::read(settings, shelf, &[far.partition], Arc::new(|_| true), |_| {}).await.unwrap();
    let wish = Wish { origin: far, deed: Deed::Release };
    let answers = view.give(&[wish], ("test", ""), Duration::from_secs(20), &Clock::system()).await.unwrap();
    assert!(answers[0].is_done(), "{answers:?}");
    let delivered = stage.letters("orders", 1).await.unwrap();
    assert_eq!(delivered[0].value.as_deref(), Some(&b"far"[..]));
    deliverer.stop().await.unwrap();
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    schedule(&stage, now, to_orders("after")).await;
    let delivered = stage.letters("orders", 2).await.unwrap();
    assert_eq!(delivered[1].value.as_deref(), Some(&b"after"[..]), "the first was delivered once");
    deliverer.stop().await.unwrap();
}
