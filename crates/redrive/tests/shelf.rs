//! A worker with its shelf, by a clock that is turned by hand.

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{note, orders, seen, stage, until_counted};
use redrive::{Class, Classed, Failure, Received};

/// The seed's story: an update comes before its item is there, and a second one names the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_names_its_predecessor_waits_behind_it_and_runs_after_it() {
    let stage = stage(1).await;
    let (all, handler_saw) = seen();
    let is_there = Arc::new(AtomicBool::new(false));
    let first = stage.send("orders", "a", "first").await.unwrap();
    let named = first.clone();
    let item = is_there.clone();
    let subscription = orders().retry(Class::NotReady, "list(10m x20)").handler(move |received: Received| {
        note(&handler_saw, &received);
        let (item, named) = (item.clone(), named.clone());
        async move {
            let is_there = item.load(Ordering::SeqCst);
            match received.text() {
                Some("first") if !is_there => Err(Failure::from_any(Classed::not_ready("no such item"))),
                // It has a key of its own: only its failure says what it follows.
                Some("second") if !is_there => Err(Failure::follows(named)),
                _ => Ok(()),
            }
        }
    });
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    until_counted(&stage, &running, "the first waits", |status| status.counts.shelved == 1).await;
    stage.send("orders", "b", "second").await.unwrap();
    until_counted(&stage, &running, "both wait", |status| status.counts.shelved == 2).await;
    stage.send("orders", "c", "other").await.unwrap();
    until_counted(&stage, &running, "the other passes", |status| status.counts.handled == 1).await;
    // Time passes, but not enough for the one in front: the other has no delay of its own, and waits too.
    stage.clock().advance(Duration::from_mins(5));
    stage.send("orders", "c", "another").await.unwrap();
    until_counted(&stage, &running, "another passes", |status| status.counts.handled == 2).await;
    assert_eq!(*all.lock().unwrap(), ["first", "second", "other", "another"]);
    is_there.store(true, Ordering::SeqCst);
    stage.clock().advance(Duration::from_mins(5));
    until_counted(&stage, &running, "both are handled", |status| status.counts.handled == 4).await;
    assert_eq!(all.lock().unwrap()[4..], ["first", "second"], "one after the other");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_predecessor_that_is_set_aside_again_keeps_who_named_it_waiting() {
    let stage = stage(1).await;
    let (all, handler_saw) = seen();
    let first = stage.send("orders", "a", "first").await.unwrap();
    let subscription = orders().retry(Class::NotReady, "list(1m x20)").handler(move |received: Received| {
        note(&handler_saw, &received);
        let first = first.clone();
        async move {
            match (received.text(), received.attempt()) {
                (Some("first"), 1..=3) => Err(Failure::from_any(Classed::not_ready("not yet"))),
                (Some("second"), 1) => Err(Failure::follows(first)),
                _ => Ok(()),
            }
        }
    });
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    until_counted(&stage, &running, "the first waits", |status| status.counts.shelved == 1).await;
    stage.send("orders", "b", "second").await.unwrap();
    for shelved in 2..=4 {
        until_counted(&stage, &running, "set aside", |status| status.counts.shelved == shelved).await;
        stage.clock().advance(Duration::from_mins(1));
    }
    until_counted(&stage, &running, "both are handled", |status| status.counts.handled == 2).await;
    assert_eq!(*all.lock().unwrap(), ["first", "second", "first", "first", "first", "second"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_entry_of_a_shelf_becomes_a_letter_once_and_nothing_waits_for_it() {
    let stage = stage(1).await;
    let subscription = || orders().handler(async |_: Received| Ok::<_, Failure>(()));
    // The shelf is there, and somebody else writes to it.
    stage.worker().subscribe(subscription()).start().await.unwrap().stop().await.unwrap();
    let foreign = stage.send("orders.g.shelf", "k", "whose is this?").await.unwrap();
    let running = stage.worker().subscribe(subscription()).start().await.unwrap();
    until_counted(&stage, &running, "it is buried", |status| status.counts.buried == 1).await;
    stage.send("orders", "a", "good").await.unwrap();
    until_counted(&stage, &running, "the source goes on", |status| status.counts.handled == 1).await;
    stage.send("orders.g.shelf", "k", "and this?").await.unwrap();
    until_counted(&stage, &running, "while it runs too", |status| status.counts.buried == 2).await;
    running.stop().await.unwrap();
    // Nor is it buried again by whoever comes next.
    let running = stage.worker().subscribe(subscription()).start().await.unwrap();
    stage.send("orders.g.shelf", "k", "the last").await.unwrap();
    until_counted(&stage, &running, "only the new one", |status| status.counts.buried == 1).await;
    running.stop().await.unwrap();
    let letters = stage.letters("orders.g.dlq", 3).await.unwrap();
    let values: Vec<_> = letters.iter().map(|letter| letter.value.as_deref().unwrap()).collect();
    assert_eq!(values, [&b"whose is this?"[..], b"and this?", b"the last"]);
    assert_eq!(ground::header(&letters[0], "redrive-reason"), "undecodable");
    assert_eq!(ground::header(&letters[0], "redrive-origin"), foreign.to_string());
    assert!(ground::header(&letters[0], "redrive-error-message").contains("redrive-entry"));
}
