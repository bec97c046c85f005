//! Every answer of an endpoint, and what becomes of the record.

mod ground;

use std::collections::HashSet;
use std::time::Duration;

use ground::raw::{self, Raw};
use ground::{header, run, run_by_hand, send, sleep, stage, until, until_status};
use redrive::Running;
use redrive::testkit::Stage;
use redrive_testkit::python::{self, Python, Told};
use serde_json::json;

/// Short waits, so that used-up tries are not long to wait for.
const QUICK: &str = "retry.transient = \"list(20ms x2)\"\nretry.outage = \"exponential(50ms..50ms x1)\"\n\
                     retry.not-ready = \"list(50ms x1)\"\n";
const NOT_READY: &str = "retry.not-ready = \"list(50ms x1)\"\n";

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

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_the_subscription_knows_statuses_and_codes() {
    let stage = stage().await;
    let server = Raw::new(|_, mut stream| {
        while let Some(request) = raw::request(&mut stream) {
            let status = if request.ends_with("gone") { "404 Not Found" } else { "200 OK" };
            raw::write(&mut stream, &format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    let rules = "[[subscription.classify]]\nstatus = \"404\"\nclass = \"transient\"\n\
                 [[subscription.classify]]\ncode = \"record-too-large\"\nclass = \"not-ready\"\n";
    let running = run(&stage, &keys(&server.url(), &format!("handler.http.max-body = 4\n{rules}"))).await;
    send(&stage, &["gone", "long value"]).await;
    let letters = stage.letters("orders.g.dlq", 2).await.unwrap();
    running.stop().await.unwrap();
    let mut told: Vec<_> = letters
        .iter()
        .map(|letter| (header(letter, "redrive-class"), header(letter, "redrive-error-type")))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [("not-ready", "http.record-too-large"), ("transient", "http.404")]);
    let long = letters.iter().find(|letter| letter.value.as_deref() == Some(b"long value")).unwrap();
    assert_eq!(
        header(long, "redrive-error-message"),
        "its value has 10 bytes, and 4 are sent at most: handler.http.max-body"
    );
}

/// Turns the clock of the stage until a failure is counted, which is told by that clock.
async fn until_failed(stage: &Stage, running: &Running) {
    let status = running.statuses()[0].clone();
    until("the failure", || {
        stage.clock().advance(Duration::from_millis(10));
        status.borrow().counts.failed.iter().sum::<u64>() == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured_to_the_second() {
    if !python::is_there() {
        return;
    }
    for (status, seconds, is_date) in [(503, 7, false), (500, 4, false), (425, 9, false), (503, 5, true)] {
        let stage = stage().await;
        let headers = if is_date { json!({}) } else { json!({ "retry-after": seconds.to_string() }) };
        let date = if is_date { seconds } else { 0 };
        let python =
            Python::new(&json!({ "one": [{ "status": status, "headers": headers, "date": date }, {}] }));
        let running = run_by_hand(&stage, &format!("handler.http.url = \"{}\"", python.url())).await;
        send(&stage, &["one"]).await;
        until("the first try", || python.of("one").len() == 1).await;
        // It failed between these two moments of a clock that nobody but this test turns.
        let (clock, wait) = (stage.clock(), Duration::from_secs(seconds));
        let before = clock.now().steady;
        until_failed(&stage, &running).await;
        let after = clock.now().steady;
        clock.advance((before + wait - Duration::from_millis(500)).saturating_sub(after));
        sleep(500).await;
        assert_eq!(python.of("one").len(), 1, "{status} {seconds}: it was early");
        clock.advance(after + wait - clock.now().steady);
        until(&format!("{status} {seconds}: the second try"), || python.of("one").len() == 2).await;
        // It ends although nobody turns its clock any more.
        let ending = tokio::spawn(running.stop());
        until(&format!("{status} {seconds}: the end"), || ending.is_finished()).await;
        ending.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_restarts_costs_no_letter() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let mut python = Python::new(&json!({ "*": [{ "delay": 0.005 }] }));
    let port = python.port.to_string();
    // A record that meets each restart is taken for its own outage: that must not use up its tries here.
    let patient = keys(&python.url(), "concurrency = 8").replacen("list(50ms x1)", "list(50ms x100)", 1);
    let running = run(&stage, &patient).await;
    let asked = |told| match told {
        Told::Asked(call) => Some(call.text()),
        Told::Answered { .. } => None,
    };
    let mut seen = HashSet::new();
    for round in 0..3 {
        let values: Vec<_> = (0..100).map(|number| format!("{round}-{number}")).collect();
        send(&stage, &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
        until("some of them were handled", || python.calls().len() > 10).await;
        seen.extend(python.ended().into_iter().filter_map(asked));
        sleep(300).await;
        python = Python::at(&port, &json!({ "*": [{ "delay": 0.005 }] }));
    }
    let status = until_status(&running, "all handled", |status| status.counts.handled == 300).await;
    running.stop().await.unwrap();
    seen.extend(python.ended().into_iter().filter_map(asked));
    assert_eq!((status.counts.buried, seen.len()), (0, 300));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_answers_are_handled_recovered_on_a_retry_or_buried() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    // What is given up would take far longer, and what is not far less: a machine that stalls changes nothing.
    let python = Python::new(&json!({ "1": [{ "delay": 30 }, { "delay": 5 }], "never": [{ "delay": 30 }] }));
    let keys = format!(
        "handler.http.url = \"{}\"\ntimeout = \"4s\"\nretry-timeout = \"10s\"\n\
         retry.transient = \"list(200ms x1)\"\n\
         [[subscription.classify]]\ntype = \"redrive::Timeout\"\nclass = \"transient\"\n",
        python.url()
    );
    let running = run(&stage, &keys).await;
    send(&stage, &["0", "1", "never"]).await;
    let status =
        until_status(&running, "done", |status| status.counts.handled == 2 && status.counts.buried == 1)
            .await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    assert_eq!(status.counts.attempts, 1 + 2 + 2);
    assert_eq!(letters[0].value.as_deref(), Some(&b"never"[..]));
    assert_eq!(header(&letters[0], "redrive-error-message"), "no answer within 10s");
    assert_eq!((python.of("0").len(), python.of("1").len(), python.of("never").len()), (1, 2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_predecessor_was_set_aside_waits_behind_it() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let follows = json!({ "status": 409, "headers": { "redrive-follows": "orders/0/0" } });
    let python = Python::new(&json!({
        "leader": [{ "status": 425 }, { "status": 425 }, {}],
        "follower": [follows, {}],
    }));
    let running =
        run(&stage, &keys(&python.url(), "retry.not-ready = \"list(3s x5)\"").replacen(NOT_READY, "", 1))
            .await;
    send(&stage, &["leader"]).await;
    until_status(&running, "the leader is set aside", |status| status.counts.shelved == 1).await;
    send(&stage, &["follower"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 2).await;
    running.stop().await.unwrap();
    assert_eq!((python.of("leader").len(), python.of("follower").len()), (3, 2));
    assert!(python.of("follower")[1].at >= python.of("leader")[2].at);
}
