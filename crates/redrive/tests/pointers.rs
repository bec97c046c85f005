//! Records that wait as pointers: their payload stays where it was consumed.

mod ground;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ground::{header, orders, until_counted};
use redrive::testkit::Stage;
use redrive::{
    Class, Classed, Failure, Outgoing, Payload, Publisher, Publishing, Received, Record, Subscription,
};
use redrive_core::Origin;
use redrive_core::Timestamp;
use redrive_core::headers::Headers;
use redrive_core::shelf::Entry;
use redrive_kafka::Admin;

/// A stage with a topic `orders` of one partition that has these settings.
async fn stage(settings: &[(&str, &str)]) -> Stage {
    let stage = Stage::new().await.unwrap();
    let settings: BTreeMap<_, _> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    admin(&stage).create(&"orders".parse().unwrap(), 1, 1, &settings).await.unwrap();
    stage
}

fn admin(stage: &Stage) -> Admin {
    Admin::new(stage.cluster().settings()).unwrap()
}

fn by_pointer() -> Subscription {
    orders().payload(Payload::Pointer).retry(Class::NotReady, "list(10m x3)")
}

async fn send(stage: &Stage) -> Record {
    let publisher = Publisher::new(stage.cluster().settings(), &Publishing::default()).unwrap();
    let mut headers = Headers::default();
    headers.push("trace", Some(Bytes::from_static(b"\x00\xff")));
    headers.push("trace", None);
    headers.push("redrive-due", Some(Bytes::from_static(b"the user's own")));
    let (key, value) = (Some(Bytes::from_static(b"a")), Some(Bytes::from_static(b"\x00\x01\xfe")));
    let timestamp = Some(Timestamp::from_millis(1_700_000_000_123));
    let topic = "orders".parse().unwrap();
    let outgoing = Outgoing {
        key: key.clone(),
        value: value.clone(),
        headers: headers.clone(),
        timestamp,
        ..Outgoing::to(topic)
    };
    let at = publisher.publish(outgoing).await.unwrap();
    Record { at, timestamp, key, value, headers }
}

/// The entries of the shelf that are records that wait.
async fn waits(stage: &Stage, entries: usize) -> Vec<Record> {
    let all = stage.letters("orders.g.shelf", entries).await.unwrap();
    all.into_iter().filter(|entry| header(entry, "redrive-entry").contains(" wait ")).collect()
}

async fn comes_back_as_it_was(subscription: Subscription) {
    let stage = stage(&[("retention.ms", "315360000000")]).await;
    let tried: Arc<Mutex<Vec<Record>>> = Arc::default();
    let handler_saw = tried.clone();
    let subscription = subscription.handler(move |received: Received| {
        handler_saw.lock().unwrap().push(Record::clone(&received));
        async move {
            match received.attempt() {
                1 | 2 => Err(Failure::from_any(Classed::not_ready("not yet"))),
                _ => Ok(()),
            }
        }
    });
    let original = send(&stage).await;
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    for shelved in 1..=2 {
        until_counted(&stage, &running, "it waits", |status| status.counts.shelved == shelved).await;
        stage.clock().advance(Duration::from_mins(10));
    }
    until_counted(&stage, &running, "it is handled", |status| status.counts.handled == 1).await;
    assert_eq!(*tried.lock().unwrap(), [original.clone(), original.clone(), original], "byte for byte");
    let waits = waits(&stage, 3).await;
    let Ok(Entry::Wait(_, wait)) = Entry::read(&waits[0]) else { panic!("{:?}", waits[0]) };
    assert_eq!(wait.trail.pointer, Some("orders/0/0".parse().unwrap()));
    assert_eq!((&waits[0].key, &waits[0].value), (&None, &None));
    assert!(waits[0].headers.text("trace").is_none(), "nor are its headers there");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_waits_as_a_pointer_comes_back_byte_for_byte() {
    comes_back_as_it_was(by_pointer()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_waits_as_a_pointer_comes_back_byte_for_byte_exactly_once() {
    comes_back_as_it_was(by_pointer().delivery(redrive::Delivery::ExactlyOnce)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_original_was_removed_becomes_a_letter_that_says_so() {
    let stage = stage(&[("retention.ms", "-1")]).await;
    let subscription = by_pointer().handler(async |received: Received| match received.text() {
        Some("good") => Ok(()),
        _ => Err(Failure::from_any(Classed::not_ready("not yet"))),
    });
    let original = send(&stage).await;
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    until_counted(&stage, &running, "it waits", |status| status.counts.shelved == 1).await;
    stage.send("orders", "b", "good").await.unwrap();
    until_counted(&stage, &running, "the other passes", |status| status.counts.handled == 1).await;
    let below = Origin { offset: 1, ..original.at.clone() };
    admin(&stage).delete_records(&below).await.unwrap();
    stage.clock().advance(Duration::from_mins(10));
    until_counted(&stage, &running, "it is a letter", |status| status.counts.buried == 1).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    assert_eq!(header(&letters[0], "redrive-reason"), "expired");
    assert_eq!(header(&letters[0], "redrive-origin"), "orders/0/0");
    assert!(header(&letters[0], "redrive-error-message").contains("orders/0/0 is gone"));
    assert_eq!((&letters[0].key, &letters[0].value), (&None, &None));
    // And the subscription goes on.
    stage.send("orders", "b", "good").await.unwrap();
    until_counted(&stage, &running, "the next passes", |status| status.counts.handled == 2).await;
    assert!(running.statuses()[0].borrow().problems.is_empty());
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_may_remove_what_waits_is_refused_with_the_remedy() {
    for (settings, part, remedy) in [
        ([("cleanup.policy", "compact")].as_slice(), "cleanup.policy=compact", "set cleanup.policy=delete"),
        (&[("retention.bytes", "1000000")], "retention.bytes=1000000", "set retention.bytes=-1"),
        (&[("retention.ms", "60000")], "retention.ms=60000", "set retention.ms=1800000 or more"),
    ] {
        let stage = stage(settings).await;
        let subscription = by_pointer().handler(async |_: Received| Ok::<_, Failure>(()));
        let error = stage.worker().subscribe(subscription).start().await.err().unwrap().to_string();
        for part in [part, remedy, "payload = \"whole\"", "orders"] {
            assert!(error.contains(part), "{part} in {error}");
        }
        let whole = orders().retry(Class::NotReady, "list(10m x3)");
        let whole = whole.handler(async |_: Received| Ok::<_, Failure>(()));
        stage.worker().subscribe(whole).start().await.unwrap().stop().await.unwrap();
    }
}

/// A record that the source accepts and the shelf does not, as somebody has made its limit smaller.
async fn waits_though_it_is_too_large(subscription: Subscription) {
    let stage = stage(&[("retention.ms", "-1")]).await;
    let large = "x".repeat(60_000);
    let (tried, expected) = (Arc::new(Mutex::new(Vec::new())), large.clone());
    let handler_saw = tried.clone();
    let subscription =
        subscription.retry(Class::NotReady, "list(10m x3)").handler(move |received: Received| {
            handler_saw.lock().unwrap().push((received.attempt(), received.text() == Some(&expected)));
            async move {
                match (received.text(), received.attempt()) {
                    (Some("small"), _) | (_, 2) => Ok(()),
                    _ => Err(Failure::from_any(Classed::not_ready("not yet"))),
                }
            }
        });
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    let limit = BTreeMap::from([("max.message.bytes".to_owned(), "20000".to_owned())]);
    admin(&stage).alter(&"orders.g.shelf".parse().unwrap(), &limit).await.unwrap();
    stage.send("orders", "a", &large).await.unwrap();
    until_counted(&stage, &running, "it waits", |status| status.counts.shelved == 1).await;
    assert!(running.statuses()[0].borrow().problems.is_empty(), "nothing is held");
    stage.send("orders", "b", "small").await.unwrap();
    until_counted(&stage, &running, "another passes", |status| status.counts.handled == 1).await;
    stage.clock().advance(Duration::from_mins(10));
    until_counted(&stage, &running, "it is handled", |status| status.counts.handled == 2).await;
    assert_eq!(*tried.lock().unwrap(), [(1, true), (1, false), (2, true)]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_does_not_fit_on_the_shelf_waits_as_a_pointer() {
    waits_though_it_is_too_large(orders()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_does_not_fit_on_the_shelf_waits_as_a_pointer_exactly_once() {
    waits_though_it_is_too_large(orders().delivery(redrive::Delivery::ExactlyOnce)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_does_not_fit_on_the_shelf_and_may_be_removed_from_its_source_holds_its_partition() {
    let stage = stage(&[("retention.bytes", "100000000")]).await;
    let subscription = orders().handler(async |_: Received| Err::<(), _>(Classed::not_ready("not yet")));
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    let limit = BTreeMap::from([("max.message.bytes".to_owned(), "20000".to_owned())]);
    admin(&stage).alter(&"orders.g.shelf".parse().unwrap(), &limit).await.unwrap();
    stage.send("orders", "a", &"x".repeat(60_000)).await.unwrap();
    until_counted(&stage, &running, "it is held", |status| {
        status
            .problems
            .iter()
            .any(|problem| problem.remedy.contains("raise max.message.bytes of orders.g.shelf"))
    })
    .await;
    // A stop would wait for it, by a clock that nobody turns.
    drop(running);
}
