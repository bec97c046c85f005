//! Records that are delivered at a time, once, and byte for byte.

mod ground;

use std::sync::Arc;
use std::time::Duration;

use ground::{until, until_status};
use redrive::delayed::{Deed, View, Wish};
use redrive::send::{self, Scheduled};
use redrive::testkit::Stage;
use redrive::{Clock, Origin, Outgoing, Publisher, Publishing, Status, Subscription, Timestamp};
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
    let due = Clock::system().now().wall.plus(Duration::from_secs(8));
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
    assert!(late < Duration::from_secs(6), "{late:?}");
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

/// Where a partition of what is sent begins.
async fn begins(stage: &Stage, partition: i32) -> i64 {
    let admin = Admin::new(stage.cluster().settings()).unwrap();
    admin.bounds(&send::topic(), partition + 1).await.unwrap()[partition as usize].0
}

async fn until_begins(stage: &Stage, partition: i32, offset: i64) {
    let clock = Clock::system();
    while begins(stage, partition).await != offset {
        assert!(clock.now().steady < Duration::from_secs(30), "it does not begin at {offset}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_consumed_is_deleted_and_what_waits_is_delivered_all_the_same() {
    let stage = ground::stage(1).await;
    let now = Clock::system().now().wall;
    let far = schedule(&stage, now.plus(MONTHS), to_orders("far")).await;
    let last = schedule(&stage, now, to_orders("now")).await;
    assert_eq!((far.partition, far.offset, last.offset), (last.partition, 0, 1));
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    stage.letters("orders", 1).await.unwrap();
    deliverer.stop().await.unwrap();
    let late = schedule(&stage, now, to_orders("late")).await;
    assert!(begins(&stage, far.partition).await <= late.offset, "nobody has consumed it");

    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    stage.letters("orders", 2).await.unwrap();
    deliverer.stop().await.unwrap();
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    until_begins(&stage, far.partition, late.offset + 1).await;
    let settings = stage.cluster().settings();
    let shelf = "redrive.send.redrive-send.shelf".parse().unwrap();
    let mut view = View::read(settings, shelf, &[far.partition], Arc::new(|_| true), |_| {}).await.unwrap();
    let wish = Wish { origin: far, deed: Deed::Release };
    let answers = view.give(&[wish], ("test", ""), Duration::from_secs(20), &Clock::system()).await.unwrap();
    assert!(answers[0].is_done(), "{answers:?}");
    let delivered = stage.letters("orders", 3).await.unwrap();
    assert_eq!(delivered[2].value.as_deref(), Some(&b"far"[..]));
    deliverer.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_group_reads_is_not_deleted_and_that_is_told() {
    let stage = ground::stage(1).await;
    let now = Clock::system().now().wall;
    let sent = schedule(&stage, now, to_orders("now")).await;
    let (seen, noting) = ground::seen();
    let audit = Subscription::new(send::TOPIC, "audit").auto_create(true).handler(move |received| {
        ground::note(&noting, &received);
        async { Ok::<_, redrive::Failure>(()) }
    });
    let audit = ground::run(&stage, audit).await;
    until("it is read", || seen.lock().unwrap().len() == 1).await;
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    let is_told =
        |status: &Status| status.problems.iter().any(|problem| problem.what.contains("by audit too"));
    let status = until_status(&deliverer, "told", is_told).await;
    assert!(status.problems.iter().any(|problem| problem.kind == "growing"), "{status:?}");
    assert_eq!(begins(&stage, sent.partition).await, 0);
    deliverer.stop().await.unwrap();
    audit.stop().await.unwrap();
    let deliverer = send::deliverer(stage.cluster()).start().await.unwrap();
    until_begins(&stage, sent.partition, 1).await;
    deliverer.stop().await.unwrap();
}
