//! A worker on the embedded broker: what becomes of records that fail, in every way they can.

mod ground;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ground::{Seen, header, note, orders, run, seen, stage, until, until_counted, until_status};
use redrive::testkit::Stage;
use redrive::{
    Class, Classed, Clock, Delivery, Event, Failure, Outgoing, Received, Running, Settings, Status,
    Subscription, Worker,
};
use redrive_testkit::delete_topic;

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_record_becomes_a_letter_once_and_its_neighbours_pass() {
    let stage = stage(1).await;
    let (all, handler_saw) = seen();
    let subscription = orders().handler_name("charge").handler(move |received: Received| {
        note(&handler_saw, &received);
        async move {
            match received.text() {
                Some("poison") => Err(Classed::permanent("no such customer")),
                _ => Ok(()),
            }
        }
    });
    for (key, value) in [("a", "1"), ("b", "poison"), ("a", "2"), ("b", "3")] {
        stage.send("orders", key, value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    until_status(&running, "all handled", |status| status.counts.handled == 3).await;
    running.stop().await.unwrap();
    let letter = &letters[0];
    assert_eq!((letter.key.as_deref(), letter.value.as_deref()), (Some(&b"b"[..]), Some(&b"poison"[..])));
    for (name, value) in [
        ("redrive-origin", "orders/0/1"),
        ("redrive-group", "g"),
        ("redrive-attempt", "1"),
        ("redrive-class", "permanent"),
        ("redrive-reason", "permanent"),
        ("redrive-error-type", "redrive::Permanent"),
        ("redrive-error-message", "permanent: no such customer"),
        ("redrive-service", "shop"),
        ("redrive-instance", "one"),
        ("redrive-handler", "charge"),
        ("redrive-lane", "b"),
    ] {
        assert_eq!(header(letter, name), value, "{name}");
    }
    for name in
        ["redrive-origin-timestamp", "redrive-first-failed-at", "redrive-buried-at", "redrive-history"]
    {
        header(letter, name);
    }
    let time = |name| header(letter, name).parse::<i64>().unwrap();
    assert!(time("redrive-first-failed-at") <= time("redrive-buried-at"));
    assert_eq!(letter.timestamp.unwrap().to_string(), header(letter, "redrive-origin-timestamp"));
    assert_eq!(all.lock().unwrap().iter().filter(|value| *value == "poison").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_handler_does_not_see_the_last_record_that_was_buried() {
    let stage = stage(1).await;
    let (all, handler_saw) = seen();
    let subscription = orders().handler(move |received: Received| {
        note(&handler_saw, &received);
        async move { Err::<(), _>(Classed::permanent("always")) }
    });
    stage.send("orders", "a", "last").await.unwrap();
    let running = run(&stage, subscription.clone()).await;
    stage.letters("orders.g.dlq", 1).await.unwrap();
    until_status(&running, "buried", |status| status.counts.buried == 1).await;
    running.stop().await.unwrap();
    let running = run(&stage, subscription).await;
    stage.send("orders", "a", "after").await.unwrap();
    stage.letters("orders.g.dlq", 2).await.unwrap();
    running.stop().await.unwrap();
    assert_eq!(*all.lock().unwrap(), ["last", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transient_failure_is_tried_in_place_and_then_buried_with_its_history() {
    let stage = stage(1).await;
    let subscription =
        orders().handler(async |received: Received| match (received.text(), received.attempt()) {
            (Some("flaky"), 1) => Err(Classed::transient("reset")),
            (Some("cursed"), _) => Err(Classed::transient("reset")),
            _ => Ok(()),
        });
    for value in ["flaky", "cursed"] {
        stage.send("orders", value, value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    let status = until_status(&running, "done", |status| status.counts.buried == 1).await;
    running.stop().await.unwrap();
    assert_eq!(status.counts.attempts, 5);
    assert_eq!(header(&letters[0], "redrive-attempt"), "3");
    assert_eq!(header(&letters[0], "redrive-retries"), "2/0/0");
    assert_eq!(header(&letters[0], "redrive-reason"), "exhausted");
    let history: Vec<serde_json::Value> =
        serde_json::from_str(header(&letters[0], "redrive-history")).unwrap();
    assert_eq!(history.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_stops_the_flow_which_goes_on_in_order_without_letters() {
    let stage = stage(1).await;
    let (all, handler_saw) = seen();
    let up = Arc::new(AtomicBool::new(false));
    let subscription = orders().retry(Class::Outage, "exponential(20ms..50ms x2)").handler({
        let up = up.clone();
        move |received: Received| {
            let is_up = up.load(Ordering::SeqCst);
            if is_up {
                note(&handler_saw, &received);
            }
            async move { if is_up { Ok(()) } else { Err(Classed::outage("connection refused")) } }
        }
    });
    let sent: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    for value in &sent {
        stage.send("orders", "one-key", value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let status = until_status(&running, "blocked", |status| !status.is_ready()).await;
    assert!(status.problems[0].what.contains("outage"), "{:?}", status.problems);
    up.store(true, Ordering::SeqCst);
    let status = until_status(&running, "handled", |status| status.counts.handled == 50).await;
    assert_eq!(status.counts.buried, 0);
    until_status(&running, "ready again", Status::is_ready).await;
    running.stop().await.unwrap();
    assert_eq!(*all.lock().unwrap(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_decode_is_undecodable_and_a_panic_is_permanent() {
    #[derive(serde::Deserialize)]
    struct Order {
        amount: u32,
    }
    let stage = stage(1).await;
    let subscription = orders().json_handler(async |order: Order, _| {
        assert!(order.amount < 100, "too much");
        Ok::<_, Failure>(())
    });
    for value in ["{\"amount\": 1}", "not json", "{\"amount\": 1000}"] {
        stage.send("orders", value, value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let letters = stage.letters("orders.g.dlq", 2).await.unwrap();
    running.stop().await.unwrap();
    let mut reasons: Vec<_> = letters
        .iter()
        .map(|letter| (header(letter, "redrive-reason"), header(letter, "redrive-error-type")))
        .collect();
    reasons.sort_unstable();
    assert_eq!(reasons[0], ("permanent", "redrive::Panic"));
    assert_eq!(reasons[1].0, "undecodable");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_that_always_times_out_ends_as_a_letter_and_the_others_pass() {
    let stage = stage(1).await;
    let subscription = orders()
        .timeouts(Duration::from_millis(30), Duration::from_millis(30))
        .retry(Class::Outage, "exponential(20ms..50ms x2)")
        .retry(Class::NotReady, "list(20ms x2)")
        .handler(async |received: Received| {
            if received.text() == Some("stuck") {
                std::future::pending::<()>().await;
            }
            Ok::<_, Failure>(())
        });
    stage.send("orders", "stuck", "stuck").await.unwrap();
    for n in 0..1_000 {
        stage.send("orders", &n.to_string(), "good").await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    let status = until_status(&running, "handled", |status| status.counts.handled == 1_000).await;
    assert_eq!(status.counts.buried, 1);
    running.stop().await.unwrap();
    assert_eq!(header(&letters[0], "redrive-error-type"), "redrive::Timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_an_outcome_for_each_record() {
    let stage = stage(1).await;
    let largest = Arc::new(AtomicU32::new(0));
    let subscription = orders().batch_handler(NonZeroU32::new(10).unwrap(), {
        let largest = largest.clone();
        move |batch: Vec<Received>| {
            largest.fetch_max(batch.len() as u32, Ordering::SeqCst);
            let outcome = |received: &Received| match received.text() {
                Some("bad") => Err(Classed::permanent("bad").into()),
                _ => Ok(()),
            };
            let outcomes: Vec<_> = batch.iter().map(outcome).collect();
            async move { outcomes }
        }
    });
    for n in 0..100 {
        let value = if n % 10 == 0 { "bad" } else { "good" };
        stage.send("orders", &n.to_string(), value).await.unwrap();
    }
    let running = run(&stage, subscription.surge_guard("off")).await;
    let status =
        until_status(&running, "all", |status| status.counts.handled + status.counts.buried == 100).await;
    running.stop().await.unwrap();
    assert_eq!((status.counts.handled, status.counts.buried), (90, 10));
    assert!((2..=10).contains(&largest.load(Ordering::SeqCst)), "{largest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_publishes_is_there_before_its_offset_counts_and_only_if_it_succeeds() {
    let stage = stage(1).await;
    stage.topic("invoices", 1).await.unwrap();
    let subscription = orders().handler(async |received: Received| {
        let invoice =
            Outgoing::to("invoices".parse().unwrap()).value(format!("for {}", received.text().unwrap()));
        received.send(invoice);
        match (received.text(), received.attempt()) {
            (Some("flaky"), 1) => Err(Classed::transient("after it had sent")),
            (Some("bad"), _) => Err(Classed::permanent("bad")),
            _ => Ok(()),
        }
    });
    for value in ["flaky", "bad", "good"] {
        stage.send("orders", "k", value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    until_status(&running, "all", |status| status.marks.get(&0) == Some(&3)).await;
    running.stop().await.unwrap();
    let invoices = stage.letters("invoices", 2).await.unwrap();
    let values: Vec<_> = invoices.iter().map(|record| record.value.clone().unwrap()).collect();
    assert_eq!(values, ["for flaky", "for good"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_hear_before_and_after_and_of_what_is_refused_and_their_panic_harms_nobody() {
    let stage = stage(1).await;
    let heard = Seen::default();
    let subscription = orders()
        .publish_timeout(Duration::from_secs(2))
        .listener({
            let heard = heard.clone();
            move |event: &Event<'_>| {
                let word = match event {
                    Event::BeforeLetter { .. } => "before",
                    Event::AfterLetter { .. } => "after",
                    Event::LetterRefused { .. } => "refused",
                    _ => "other",
                };
                heard.lock().unwrap().push(word.to_owned());
            }
        })
        .listener(|_: &Event<'_>| panic!("a listener's own trouble"))
        .handler(async |_: Received| Err::<(), _>(Classed::permanent("always")));
    let running = run(&stage, subscription).await;
    let Settings { brokers, properties } = stage.cluster().settings().clone();
    delete_topic(&redrive_testkit::Cluster { brokers, properties }, "orders.g.dlq").await;
    stage.send("orders", "k", "v").await.unwrap();
    let status = until_status(&running, "held", |status| !status.is_ready()).await;
    assert!(status.problems[0].remedy.contains("orders.g.dlq"), "{:?}", status.problems);
    stage.topic("orders.g.dlq", 1).await.unwrap();
    stage.letters("orders.g.dlq", 1).await.unwrap();
    until_status(&running, "ready", Status::is_ready).await;
    running.stop().await.unwrap();
    let heard = heard.lock().unwrap();
    let words: HashSet<&str> = heard.iter().map(String::as_str).collect();
    assert_eq!(words, HashSet::from(["before", "refused", "after"]));
    assert_eq!((heard.first().unwrap().as_str(), heard.last().unwrap().as_str()), ("before", "after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_run_side_by_side_and_each_in_order() {
    let stage = stage(4).await;
    let (all, handler_saw) = seen();
    let running_now = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let subscription = orders().concurrency(16).handler({
        let running_now = running_now.clone();
        move |received: Received| {
            let (running_now, handler_saw) = (running_now.clone(), handler_saw.clone());
            async move {
                let now = running_now.0.fetch_add(1, Ordering::SeqCst) + 1;
                running_now.1.fetch_max(now, Ordering::SeqCst);
                Clock::system().sleep(Duration::from_millis(u64::from(received.at.offset as u32 % 7))).await;
                note(&handler_saw, &received);
                running_now.0.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Failure>(())
            }
        }
    });
    for n in 0..400 {
        stage.send("orders", &format!("key-{}", n % 20), &format!("{}:{n:04}", n % 20)).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    until_status(&running, "handled", |status| status.counts.handled == 400).await;
    running.stop().await.unwrap();
    let all = all.lock().unwrap();
    for key in 0..20 {
        let prefix = format!("{key}:");
        let of_key: Vec<_> = all.iter().filter(|value| value.starts_with(&prefix)).collect();
        assert!(of_key.is_sorted() && of_key.len() == 20, "{of_key:?}");
    }
    assert!((2..=16).contains(&running_now.1.load(Ordering::SeqCst)));
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_go_by_the_clock_of_the_stage() {
    let stage = stage(1).await;
    let attempts = Arc::new(AtomicU32::new(0));
    let subscription = orders().retry(Class::NotReady, "list(1h x1)").handler({
        let attempts = attempts.clone();
        move |_: Received| {
            attempts.fetch_add(1, Ordering::SeqCst);
            async { Err::<(), _>(Classed::not_ready("not yet")) }
        }
    });
    stage.send("orders", "k", "v").await.unwrap();
    let running = stage.worker().subscribe(subscription).start().await.unwrap();
    // That turns the clock a little, by seconds at most.
    until_counted(&stage, &running, "it waits", |status| status.counts.shelved == 1).await;
    stage.clock().advance(Duration::from_secs(3_500));
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    stage.clock().advance(Duration::from_secs(120));
    until("the second attempt", || attempts.load(Ordering::SeqCst) == 2).await;
    stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test]
async fn every_wrong_setting_is_told_at_once() {
    let stage = Stage::new().await.unwrap();
    let wrong = Subscription::new("no/topic", "g").handler(async |_: Received| Ok::<_, Failure>(()));
    let also = Subscription::new("orders", "g").retry(Class::Transient, "sometimes").concurrency(0);
    let error = stage.worker().subscribe(wrong).subscribe(also).start().await.err().unwrap().to_string();
    for part in ["no/topic", "sometimes", "concurrency", "no handler"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_that_are_missing_are_refused_with_the_remedy() {
    let stage = stage(1).await;
    let subscription = Subscription::new("orders", "g").handler(async |_: Received| Ok::<_, Failure>(()));
    let error = stage.worker().subscribe(subscription).start().await.err().unwrap().to_string();
    assert!(error.contains("orders.g.dlq") && error.contains("auto_create(true)"), "{error}");
}

/// A worker that has handled three records.
async fn handled_three(stage: &Stage) -> (Running, Subscription, Seen) {
    let (all, handler_saw) = seen();
    let subscription = orders().handler(move |received: Received| {
        note(&handler_saw, &received);
        async { Ok::<_, Failure>(()) }
    });
    for value in ["1", "2", "3"] {
        stage.send("orders", "k", value).await.unwrap();
    }
    let running = run(stage, subscription.clone()).await;
    until_status(&running, "handled", |status| status.counts.handled == 3).await;
    (running, subscription, all)
}

async fn make_anew(stage: &Stage) {
    let Settings { brokers, properties } = stage.cluster().settings().clone();
    delete_topic(&redrive_testkit::Cluster { brokers, properties }, "orders").await;
    stage.topic("orders", 1).await.unwrap();
}

fn is_anew(status: &Status) -> bool {
    status.problems.iter().any(|problem| problem.what.contains("made anew"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_anew_while_it_is_consumed_stops_it_until_that_is_accepted() {
    let stage = stage(1).await;
    let (running, subscription, all) = handled_three(&stage).await;
    make_anew(&stage).await;
    let status = until_status(&running, "noticed", is_anew).await;
    assert!(status.problems.iter().any(|problem| problem.remedy.contains("--accept-loss")), "{status:?}");
    running.stop().await.unwrap();
    for value in ["4", "5", "6", "7"] {
        stage.send("orders", "k", value).await.unwrap();
    }
    let accepting = Worker::new(stage.cluster()).accept_loss(true).subscribe(subscription);
    let running = accepting.start().await.unwrap();
    until("the new ones are handled", || {
        all.lock().unwrap().ends_with(&["4", "5", "6", "7"].map(String::from))
    })
    .await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_topic_that_was_made_anew_is_handled_where_the_old_one_was_left() {
    let stage = stage(1).await;
    let (running, _, all) = handled_three(&stage).await;
    // So long nothing comes at least where a topic is made anew.
    Clock::system().sleep(Duration::from_millis(1_100)).await;
    make_anew(&stage).await;
    for value in ["4", "5", "6", "7", "8", "9"] {
        stage.send("orders", "k", value).await.unwrap();
    }
    until_status(&running, "noticed", is_anew).await;
    running.stop().await.unwrap();
    assert_eq!(*all.lock().unwrap(), ["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_output_letters_and_offsets_come_together() {
    let stage = stage(2).await;
    stage.topic("invoices", 1).await.unwrap();
    let subscription =
        orders().delivery(Delivery::ExactlyOnce).surge_guard("off").handler(async |received: Received| {
            received
                .send(Outgoing::to("invoices".parse().unwrap()).value(received.text().unwrap().to_owned()));
            match received.text() {
                Some(text) if text.ends_with('7') => Err(Classed::permanent("sevens")),
                _ => Ok(()),
            }
        });
    let running = run(&stage, subscription).await;
    for n in 0..100 {
        stage.send("orders", &format!("key-{}", n % 10), &n.to_string()).await.unwrap();
    }
    let mut invoices = stage.letters("invoices", 90).await.unwrap();
    until_status(&running, "all", |status| status.counts.buried == 10).await;
    running.stop().await.unwrap();
    invoices.sort_by_key(|record| record.value.clone());
    invoices.dedup_by_key(|record| record.value.clone());
    assert_eq!(invoices.len(), 90);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_reads_its_topic_anew_passes_over_what_is_a_letter_already() {
    let stage = stage(1).await;
    let (seen, handled) = seen();
    for n in 0..4 {
        stage.send("orders", &format!("k{n}"), &format!("{n}")).await.unwrap();
    }
    // As an earlier run of the group left it, of the second record; another group's letters are not its own.
    let letter = |group: &str, offset: i64| {
        Outgoing::to("orders.g.dlq".parse().unwrap())
            .partition(0)
            .value("1")
            .header("redrive-origin", format!("orders/0/{offset}"))
            .header("redrive-group", group.to_owned())
    };
    stage.topic("orders.g.dlq", 1).await.unwrap();
    let publisher =
        redrive::Publisher::new(stage.cluster().settings(), &redrive::Publishing::default()).unwrap();
    publisher.publish(letter("g", 1)).await.unwrap();
    publisher.publish(letter("other", 2)).await.unwrap();
    let running = run(
        &stage,
        orders().skip_damaged(true).handler(move |order: Received| {
            note(&seen, &order);
            async { Ok::<_, Failure>(()) }
        }),
    )
    .await;
    let status = until_status(&running, "all but one", |status| status.counts.handled == 3).await;
    assert_eq!(*handled.lock().unwrap(), ["0", "2", "3"]);
    let status = if status.tally.skipped == 1 {
        status
    } else {
        until_status(&running, "one is skipped", |status| status.tally.skipped == 1).await
    };
    assert_eq!(status.tally.skipped, 1);
    running.stop().await.unwrap();
}
