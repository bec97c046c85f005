//! Every answer of an endpoint, and what becomes of the record.

mod ground;

use ground::python::{self, Python};
use ground::{header, run, send, stage, until, until_status};
use serde_json::json;

/// Short waits, so that used-up tries are not long to wait for.
const QUICK: &str = "retry.transient = \"list(20ms x2)\"\nretry.outage = \"exponential(50ms..50ms x1)\"\n\
                     retry.not-ready = \"list(50ms x1)\"\n";

fn keys(url: &str, more: &str) -> String {
    format!("handler.http.url = \"{url}\"\n{QUICK}{more}")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_status_leads_where_the_table_says() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let flaky = |status: u16| json!([{ "status": status }, {}]);
    let python = Python::new(&json!({
        "ok": [{ "status": 204 }],
        "not-ready": flaky(425), "timeout": flaky(408), "error": flaky(500), "busy": flaky(429),
        "gateway": flaky(502), "down": flaky(503), "late": flaky(504), "odd": flaky(507),
        "bad": [{ "status": 400, "body": "no such customer" }],
        "cursed": [{ "status": 500, "body": "again" }],
        "said": [{ "status": 500, "headers": { "redrive-class": "permanent" } }],
        "problem": [{ "status": 422, "body": "{\"type\": \"urn:no-stock\", \"title\": \"No stock\"}",
                      "headers": { "content-type": "application/problem+json" } }],
        "moved": [{ "status": 308, "headers": { "location": "http://127.0.0.1:1/" } }],
    }));
    let recovers = ["ok", "not-ready", "timeout", "error", "busy", "gateway", "down", "late", "odd"];
    let buried = ["bad", "cursed", "said", "problem", "moved"];
    let running = run(&stage, &keys(&python.url(), "surge-guard = \"off\"")).await;
    send(&stage, &recovers).await;
    send(&stage, &buried).await;
    until_status(&running, "all done", |status| {
        status.counts.handled == recovers.len() as u64 && status.counts.buried == buried.len() as u64
    })
    .await;
    let letters = stage.letters("orders.g.dlq", buried.len()).await.unwrap();
    running.stop().await.unwrap();
    let told = |value: &str| {
        let letter = letters.iter().find(|letter| letter.value.as_deref() == Some(value.as_bytes())).unwrap();
        let names = ["redrive-class", "redrive-error-type", "redrive-error-message", "redrive-attempt"];
        names.map(|name| header(letter, name).to_owned())
    };
    assert_eq!(told("bad"), ["permanent", "http.400", "400 Bad Request: no such customer", "1"]);
    assert_eq!(told("cursed"), ["transient", "http.500", "500 Internal Server Error: again", "3"]);
    assert_eq!(told("said")[0], "permanent");
    assert_eq!(told("problem"), ["permanent", "urn:no-stock", "422 Unprocessable Entity: No stock", "1"]);
    assert_eq!(told("moved")[1], "http.308");
    for value in &recovers[1..] {
        let attempts: Vec<_> =
            python.of(value).iter().map(|call| call.header("redrive-attempt").unwrap().to_owned()).collect();
        assert_eq!(attempts, ["1", "2"], "{value}");
        assert_eq!(python.of(value)[0].header("ce-id"), python.of(value)[1].header("ce-id"));
    }
    until("no more calls", || python.of("ok").len() == 1).await;
}
