//! What is hidden is hidden everywhere: in the letter, on the shelf, and from whoever is notified.

mod ground;

use ground::{outgoing, publish, run, stage, until};
use redrive_testkit::python::{self, Python};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn neither_letters_nor_the_shelf_nor_events_repeat_what_is_masked() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let value = json!({ "card": { "number": "4111-1111", "holder": "Ada" }, "id": 7 }).to_string();
    let problem = json!({ "type": "urn:card:4111-1111", "title": "card 4111-1111 of Ada", "detail": "tok-9: id 7, iban DE89370400440532013000" });
    let answer = json!({ "status": 425, "body": problem.to_string(), "headers": { "content-type": "application/problem+json" } });
    let handler = Python::new(&json!({ "*": [answer] }));
    let told = Python::new(&json!({}));
    let keys = format!(
        "handler.http.url = \"{}\"\nnotify.url = \"{}\"\nretry.not-ready = \"list(50ms x1)\"\n\
         mask = {{ json = [\"/card\"], headers = [\"token\"], patterns = [\"DE[0-9]{{20}}\"] }}",
        handler.url(),
        told.url()
    );
    let running = run(&stage, &keys).await;
    publish(&stage, outgoing(Some(b"k"), Some(value.as_bytes()), &[("token", Some(b"tok-9"))])).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    let shelf = stage.letters("orders.g.shelf", 3).await.unwrap();
    until("all events", || told.calls().len() == 4).await;
    running.stop().await.unwrap();
    let letter = &letters[0];
    assert_eq!(letter.headers.text("redrive-error-type"), Some("urn:card:***"));
    assert_eq!(
        letter.headers.text("redrive-error-message"),
        Some("425 Too Early: card *** of ***: ***: id 7, iban ***")
    );
    // The record itself is what it was, and its own header with it.
    assert_eq!(
        (letter.value.as_deref(), letter.headers.text("token")),
        (Some(value.as_bytes()), Some("tok-9"))
    );
    let ours = letters.iter().chain(&shelf).flat_map(|record| record.headers.iter());
    let ours = ours.filter(|header| header.name.starts_with("redrive-")).map(|header| format!("{header:?}"));
    let events = told.calls().into_iter().map(|call| call.text());
    let all: Vec<_> = ours.chain(events).collect();
    assert!(all.iter().any(|text| text.contains("iban ***")), "{all:#?}");
    for secret in ["4111", "Ada", "tok-9", "DE893"] {
        let leaks: Vec<_> = all.iter().filter(|text| text.contains(secret)).collect();
        assert!(leaks.is_empty(), "{secret}: {leaks:#?}");
    }
}
