//! Several records in one request, and what its answer says of each.

mod ground;

use std::sync::{Arc, Mutex};

use ground::raw::{Raw, request, write};
use ground::{header, outgoing, publish, run, send, stage, until_status};
use serde_json::{Value, json};

const QUICK: &str = "retry.transient = \"list(20ms x1)\"\nretry.outage = \"exponential(50ms..50ms x1)\"\n\
                     retry.not-ready = \"list(50ms x1)\"\nsurge-guard = \"off\"\n";

fn keys(url: &str, format: &str) -> String {
    format!(
        "handler.http = {{ url = \"{url}\", batch = {{ records = 10, format = \"{format}\" }} }}\n{QUICK}"
    )
}

/// An endpoint that answers each batch with what `answer` makes of its body, and keeps the bodies.
fn endpoint(
    answer: impl Fn(&str) -> (String, String) + Send + Sync + 'static,
) -> (Raw, Arc<Mutex<Vec<String>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = bodies.clone();
    let server = Raw::new(move |_, mut stream| {
        while let Some(request) = request(&mut stream) {
            let body = request.split_once("\r\n\r\n").unwrap().1;
            kept.lock().unwrap().push(body.to_owned());
            let (head, body) = answer(body);
            write(&mut stream, &format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
        }
    });
    (server, bodies)
}

const JSON: &str = "200 OK\r\ncontent-type: application/json";

fn lines(body: &str) -> Vec<Value> {
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_of_a_batch_has_its_own_outcome() {
    let stage = stage().await;
    let (server, bodies) = endpoint(|body| {
        let outcomes = lines(body).into_iter().map(|record| match record["value"].as_str() {
            Some("bad") => {
                json!({ "id": record["id"], "status": 422, "type": "no-stock", "message": "none left" })
            }
            Some("flaky") if record["attempt"] == 1 => json!({ "id": record["id"], "class": "transient" }),
            Some("early") if record["attempt"] == 1 => {
                json!({ "id": record["id"], "status": 425, "retry_after": 0.1 })
            }
            Some("good") => json!({ "id": record["id"], "status": 200 }),
            _ => json!({ "id": "orders/0/999", "status": 500 }),
        });
        (JSON.to_owned(), Value::Array(outcomes.collect()).to_string())
    });
    let running = run(&stage, &keys(&server.url(), "ndjson")).await;
    send(&stage, &["good", "bad", "flaky", "early", "unmentioned"]).await;
    until_status(&running, "done", |status| status.counts.handled == 4 && status.counts.buried == 1).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    assert_eq!(letters[0].value.as_deref(), Some(&b"bad"[..]));
    assert_eq!(header(&letters[0], "redrive-error-type"), "no-stock");
    assert_eq!(header(&letters[0], "redrive-error-message"), "none left");
    let records: Vec<_> = bodies.lock().unwrap().iter().flat_map(|body| lines(body)).collect();
    let good = records.iter().find(|record| record["value"] == "good").unwrap();
    assert_eq!(
        (&good["topic"], &good["offset"], &good["key"]),
        (&json!("orders"), &json!(0), &json!("good"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_the_whole_is_that_of_each_without_an_outcome() {
    let stage = stage().await;
    let count = Mutex::new(0);
    let (server, _) = endpoint(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        match *count {
            1 => ("503 Service Unavailable".to_owned(), String::new()),
            2 => (JSON.to_owned(), "{ not json".to_owned()),
            _ => ("204 No Content".to_owned(), String::new()),
        }
    });
    let running = run(&stage, &keys(&server.url(), "ndjson")).await;
    send(&stage, &["one"]).await;
    let status = until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!((status.counts.attempts, status.counts.buried), (3, 0));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_cloud_events_keeps_json_as_it_is() {
    let stage = stage().await;
    let (server, bodies) = endpoint(|_| ("200 OK".to_owned(), String::new()));
    let running = run(&stage, &keys(&server.url(), "cloudevents")).await;
    let json_type = ("content-type", Some(&b"application/json"[..]));
    publish(&stage, outgoing(Some(b"k"), Some(b"{\"z\": 1.000, \"a\": 18446744073709551617}"), &[json_type]))
        .await;
    publish(&stage, outgoing(None, Some(b"{broken"), &[json_type])).await;
    publish(&stage, outgoing(Some(b"\xff"), Some(b"\xff\x00"), &[])).await;
    publish(&stage, outgoing(None, None, &[])).await;
    until_status(&running, "handled", |status| status.counts.handled == 4).await;
    running.stop().await.unwrap();
    let bodies = bodies.lock().unwrap();
    assert!(bodies.iter().any(|body| body.contains("\"data\":{\"z\": 1.000, \"a\": 18446744073709551617}}")));
    let events: Vec<Value> =
        bodies.iter().flat_map(|body| serde_json::from_str::<Vec<Value>>(body).unwrap()).collect();
    let of = |id: &str| events.iter().find(|event| event["id"] == id).unwrap();
    assert_eq!(of("orders/0/0")["specversion"], "1.0");
    assert_eq!(of("orders/0/0")["redrivekey"], "k");
    assert_eq!(of("orders/0/1")["data"], "{broken");
    assert_eq!(
        (&of("orders/0/2")["data_base64"], &of("orders/0/2")["redrivekeybase64"]),
        (&json!("/wA="), &json!("/w=="))
    );
    assert_eq!((&of("orders/0/3")["redrivetombstone"], of("orders/0/3").get("data")), (&json!(true), None));
}
