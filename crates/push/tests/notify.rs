//! Whoever is notified hears of everything, and whatever they do, the record goes its way.

mod ground;

use ground::raw::{Raw, request};
use ground::{run, send, stage, until, until_status};
use redrive::Clock;
use redrive_testkit::python::{self, Python};
use serde_json::{Value, json};

const QUICK: &str =
    "retry.transient = \"list(20ms x1)\"\nretry.not-ready = \"list(50ms x1)\"\nsurge-guard = \"off\"\n";

fn keys(url: &str, notify: &str) -> String {
    format!("handler.http.url = \"{url}\"\n{QUICK}notify = {{ {notify} }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn before_and_after_a_record_is_set_aside_or_buried_an_event_is_posted() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let handler = Python::new(&json!({ "early": [{ "status": 425, "body": "no item" }] }));
    let told = Python::new(&json!({ "secret": "s" }));
    let notify = format!("url = \"{}\", bearer = \"t\", signature-secret = \"s\"", told.url());
    let running = run(&stage, &keys(&handler.url(), &notify)).await;
    send(&stage, &["early"]).await;
    stage.letters("orders.g.dlq", 1).await.unwrap();
    until("all events", || told.calls().len() == 4).await;
    running.stop().await.unwrap();
    let events: Vec<Value> =
        told.calls().iter().map(|call| serde_json::from_slice(&call.body).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["redrive.aside.before", "redrive.aside.after", "redrive.letter.before", "redrive.letter.after"]
    );
    let last = &events[3];
    assert_eq!((&last["specversion"], &last["subject"]), (&json!("1.0"), &json!("orders/0/0")));
    assert_eq!(last["source"], "/redrive/g/orders");
    let data = &last["data"];
    assert_eq!(
        (&data["attempts"], &data["class"], &data["reason"]),
        (&json!(2), &json!("not-ready"), &json!("exhausted"))
    );
    assert_eq!((&data["letters"], &data["error"]["type"]), (&json!("orders.g.dlq"), &json!("http.425")));
    assert_eq!(data["error"]["message"], "425 Too Early: no item");
    assert_eq!(told.calls()[0].header("content-type"), Some("application/cloudevents+json"));
    assert_eq!(told.calls()[0].header("authorization"), Some("Bearer t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_refused_is_told_with_the_error() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let handler = Python::new(&json!({ "*": [{ "status": 400 }] }));
    let told = Python::new(&json!({}));
    let keys = keys(&handler.url(), &format!("url = \"{}\"", told.url()));
    let running = run(&stage, &keys).await;
    let brokers = stage.cluster().settings().brokers.clone();
    let cluster = redrive_testkit::Cluster { brokers, properties: Vec::new() };
    redrive_testkit::delete_topic(&cluster, "orders.g.dlq").await;
    send(&stage, &["bad"]).await;
    let refused = || -> Option<Value> {
        let events =
            told.calls().into_iter().map(|call| serde_json::from_slice::<Value>(&call.body).unwrap());
        events.into_iter().find(|event| event["type"] == "redrive.letter.refused")
    };
    until("a refusal", || refused().is_some()).await;
    let refused = refused().unwrap();
    assert!(!refused["data"]["publish_error"].as_str().unwrap().is_empty(), "{refused}");
    drop(running);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_notified_and_does_not_answer_costs_the_records_nothing() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let handler = Python::new(&json!({ "*": [{ "status": 400 }] }));
    let stuck = Raw::new(|_, mut stream| while request(&mut stream).is_some() {});
    let notify = format!("url = \"{}\", queue = 5, timeout = \"1s\"", stuck.url());
    let values: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    send(&stage, &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let began = Clock::system();
    let running = run(&stage, &keys(&handler.url(), &notify)).await;
    until_status(&running, "all buried", |status| status.counts.buried == 100).await;
    // 200 events of a second each would take minutes.
    assert!(began.now().steady.as_secs() < 20);
    assert!(redrive_push::dropped_events() > 100, "{}", redrive_push::dropped_events());
    running.stop().await.unwrap();
}

#[test]
fn an_address_that_cannot_be_called_is_refused_before_anything_runs() {
    let keys = keys("http://localhost/", "url = \"https://localhost/\", ca = \"/no/such.pem\"");
    let error = redrive_push::handled(&ground::configured(&keys)).err().unwrap().to_string();
    assert!(error.contains("notify: ca: /no/such.pem cannot be read"), "{error}");
}
