//! Exactly-once delivery: output, letters and offsets in one transaction, and what becomes of those that
//! cannot be in it.

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{Seen, header, orders, run, stage, until, until_status};
use redrive::{Class, Classed, Delivery, Event, Failure, Outgoing, Received, Settings, Subscription};
use redrive_testkit::delete_topic;

fn exactly_once() -> Subscription {
    orders().delivery(Delivery::ExactlyOnce).surge_guard("off")
}

fn invoice(value: impl Into<bytes::Bytes>) -> Outgoing {
    Outgoing::to("invoices".parse().unwrap()).partition(0).value(value)
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_its_topic_refuses_is_a_failure_of_its_record_which_ends_as_a_letter_that_says_why() {
    let stage = stage(1).await;
    stage.topic("invoices", 1).await.unwrap();
    let subscription = exactly_once().handler(async |received: Received| {
        received.send(match received.text() {
            Some("large") => invoice(vec![b'x'; 3 << 20]),
            Some("astray") => invoice("astray").partition(7),
            text => invoice(text.unwrap_or_default().to_owned()),
        });
        Ok::<_, Failure>(())
    });
    for (key, value) in [("a", "1"), ("b", "large"), ("c", "2"), ("b", "3"), ("d", "astray"), ("a", "4")] {
        stage.send("orders", key, value).await.unwrap();
    }
    let running = run(&stage, subscription).await;
    let letters = stage.letters("orders.g.dlq", 2).await.unwrap();
    until_status(&running, "all saved", |status| status.marks.get(&0) == Some(&6)).await;
    let invoices = stage.letters("invoices", 4).await.unwrap();
    until_status(&running, "ready", redrive::Status::is_ready).await;
    running.stop().await.unwrap();
    let values: Vec<_> = invoices.iter().map(|record| record.value.clone().unwrap()).collect();
    assert_eq!(values, ["1", "2", "3", "4"], "nothing twice, nothing missing");
    let values: Vec<_> = letters.iter().map(|record| record.value.clone().unwrap()).collect();
    assert_eq!(values, ["large", "astray"]);
    for letter in &letters {
        assert_eq!(header(letter, "redrive-class"), "permanent");
        assert!(header(letter, "redrive-error-message").contains("invoices"), "{:?}", letter.headers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_does_not_wait_for_an_earlier_record_that_is_not_done() {
    const MANY: usize = 20_000;
    let stage = stage(1).await;
    stage.topic("invoices", 1).await.unwrap();
    let goes_on = Arc::new(AtomicBool::new(false));
    let subscription = exactly_once().retry(Class::Transient, "list(50ms x10000)").handler({
        let goes_on = goes_on.clone();
        move |received: Received| {
            let fails = received.text() == Some("stuck") && !goes_on.load(Ordering::SeqCst);
            if received.text() == Some("many") {
                (0..MANY).for_each(|_| received.send(invoice("m")));
            }
            async move { if fails { Err(Classed::transient("not yet")) } else { Ok(()) } }
        }
    });
    let running = run(&stage, subscription).await;
    stage.send("orders", "stuck", "stuck").await.unwrap();
    stage.send("orders", "other", "many").await.unwrap();
    assert_eq!(stage.letters("invoices", MANY).await.unwrap().len(), MANY);
    until_status(&running, "ready", redrive::Status::is_ready).await;
    goes_on.store(true, Ordering::SeqCst);
    until_status(&running, "all saved", |status| status.marks.get(&0) == Some(&2)).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_hear_of_a_letter_when_it_is_there_and_of_one_that_is_refused() {
    let stage = stage(1).await;
    let heard = Seen::default();
    let subscription = exactly_once()
        .publish_timeout(Duration::from_secs(2))
        .listener({
            let heard = heard.clone();
            move |event: &Event<'_>| {
                let word = match event {
                    Event::BeforeLetter { .. } => "before",
                    Event::AfterLetter { told, .. } if told.failure.is_some() => "after",
                    Event::LetterRefused { .. } => "refused",
                    _ => "other",
                };
                let mut heard = heard.lock().unwrap();
                if heard.last().map(String::as_str) != Some(word) {
                    heard.push(word.to_owned());
                }
            }
        })
        .handler(async |_: Received| Err::<(), _>(Classed::permanent("always")));
    let running = run(&stage, subscription).await;
    let Settings { brokers, properties } = stage.cluster().settings().clone();
    delete_topic(&redrive_testkit::Cluster { brokers, properties }, "orders.g.dlq").await;
    stage.send("orders", "k", "v").await.unwrap();
    until("it is refused", || heard.lock().unwrap().len() == 2).await;
    assert_eq!(*heard.lock().unwrap(), ["before", "refused"], "it is not there");
    stage.topic("orders.g.dlq", 1).await.unwrap();
    stage.letters("orders.g.dlq", 1).await.unwrap();
    until_status(&running, "ready", redrive::Status::is_ready).await;
    running.stop().await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["before", "refused", "after"]);
}
