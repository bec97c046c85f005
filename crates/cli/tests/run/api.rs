//! Letters, replays and waiting records over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use redrive::{Cluster, Outgoing, Publisher, Publishing};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::process::{Process, until};
use crate::stage::{Stage, subscription};

const LETTERS: &str = "orders.billing.dlq";
const BYTES: &[u8] = &[0, 255, 13, 10, 13, 10, 0xc3, 0x28, b'"', 0];

/// A process whose handler answers with a status that can be changed.
async fn started(stage: &Stage, more: &str) -> (Process, Endpoint, Arc<AtomicU16>) {
    stage.topic("orders", 1).await;
    let status = Arc::new(AtomicU16::new(422));
    let endpoint = Endpoint::new({
        let status = status.clone();
        move |_| status.load(Ordering::SeqCst)
    });
    let config = format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_ready().await;
    (process, endpoint, status)
}

/// A letter of some other program, with bytes that are no text.
async fn foreign(cluster: &Cluster) {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let letter = Outgoing::to(LETTERS.parse().unwrap()).partition(0).key("odd").value(BYTES.to_vec());
    publisher.publish(letter).await.unwrap();
}

/// Whether the document has every member of an answer in the schema of this name.
fn is_told(process: &Process, name: &str, answer: &Value) {
    let (_, document) = process.json("/api/v1/openapi.json");
    let told = &document["components"]["schemas"][name]["properties"];
    for member in answer.as_object().unwrap().keys() {
        assert!(told[member].is_object(), "{name} has no {member}: {told}");
    }
}

fn listed(process: &Process, query: &str) -> Vec<Value> {
    let (status, body) = process.json(&format!("/api/v1/letters{query}"));
    if status == 503 {
        return Vec::new();
    }
    assert_eq!(status, 200, "{body}");
    body["letters"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_listed_page_by_page_shown_counted_and_their_payloads_are_as_they_were() {
    let stage = Stage::new().await;
    let (process, _endpoint, _) = started(&stage, "surge-guard = \"off\"").await;
    stage.send_many("orders", 0..25, 25).await;
    until("all are letters", || listed(&process, "?topic=orders").len() == 25).await;
    foreign(&stage.cluster).await;
    until("the foreign one, too", || listed(&process, "").len() == 26).await;

    let (mut next, mut seen) = (String::new(), Vec::new());
    loop {
        let (status, page) = process.json(&format!("/api/v1/letters?topic=orders&limit=10{next}"));
        assert_eq!(status, 200, "{page}");
        let ids =
            page["letters"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    let (count, different) = (seen.len(), seen.iter().collect::<std::collections::BTreeSet<_>>().len());
    assert_eq!((count, different), (25, 25), "each once");

    let one = &listed(&process, "?key=key-7")[0];
    let path = format!("/api/v1/letters/{}", one["id"].as_str().unwrap());
    let (status, shown) = process.json(&path);
    assert_eq!((status, &shown["payload"], &shown["state"]), (200, &"7".into(), &"open".into()), "{shown}");
    assert!(shown["same_error"].as_array().unwrap().len() >= 10, "{shown}");
    is_told(&process, "letter", one);
    is_told(&process, "letter_in_full", &shown);
    is_told(&process, "letters", &process.json("/api/v1/letters").1);
    let odd = &listed(&process, "?key=odd")[0];
    let path = format!("/api/v1/letters/{}/payload", odd["id"].as_str().unwrap());
    let (status, head, body) = process.ask("GET", &path, "", "");
    assert_eq!((status, body.as_slice()), (200, BYTES), "{head}");
    assert!(head.contains("content-type: application/octet-stream"), "{head}");
    assert!(head.contains("content-disposition: attachment; filename=\"orders.billing.dlq-0-"), "{head}");

    let (_, groups) = process.json("/api/v1/groups?topic=orders");
    assert_eq!(groups["groups"][0]["open"], 25, "{groups}");
    is_told(&process, "group", &groups["groups"][0]);
    is_told(&process, "groups", &groups);
    let id = groups["groups"][0]["id"].as_str().unwrap();
    let said = process.post(&format!("/api/v1/groups/{id}"), &json!({ "state": "muted", "reason": "known" }));
    assert_eq!((said.0, &said.1["state"]), (200, &"muted".into()), "{said:?}");
    let (_, stats) = process.json("/api/v1/stats?by=topic");
    assert!(stats["stats"].as_array().unwrap().iter().any(|bar| bar["letters"] == 25), "{stats}");

    let resolve = |dry_run: bool| {
        let query = json!({ "topic": "orders", "key": ["key-1", "key-2"] });
        process.post("/api/v1/letters/resolve", &json!({ "query": query, "reason": "x", "dry_run": dry_run }))
    };
    assert_eq!(resolve(true), (200, json!({ "would_resolve": 2 })));
    let (status, done) = resolve(false);
    assert_eq!((status, &done["resolved"]), (200, &2.into()), "{done}");
    is_told(&process, "resolved", &done);
    assert_eq!(listed(&process, "?topic=orders&limit=100").len(), 23);
    assert_eq!(listed(&process, "?state=resolved").len(), 2);
    assert_eq!(resolve(false).0, 404, "none of them is open");

    let admin = redrive_kafka::Admin::new(stage.cluster.settings()).unwrap();
    admin.delete_records(&format!("{LETTERS}/0/20").parse().unwrap()).await.unwrap();
    until("what is gone from Kafka has left", || listed(&process, "?state=all").len() == 6).await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_begun_over_http_and_its_outcome_is_seen() {
    let stage = Stage::new().await;
    let (process, _endpoint, answer) = started(&stage, "surge-guard = \"off\"").await;
    stage.send_many("orders", 0..30, 30).await;
    until("all are letters", || listed(&process, "").len() == 30).await;
    let planned = process.post("/api/v1/replays", &json!({ "all": true, "dry_run": true }));
    assert_eq!((planned.0, &planned.1["would_send"]), (200, &30.into()), "{planned:?}");
    let (_, none) = process.json("/api/v1/replays");
    assert_eq!(none, json!({ "replays": [] }));

    answer.store(200, Ordering::SeqCst);
    let wanted = json!({ "query": { "topic": "orders" }, "rate": "500/s", "canary": 5, "reason": "fixed" });
    let (status, begun) = process.post("/api/v1/replays", &wanted);
    assert_eq!((status, &begun["letters"]), (202, &30.into()), "{begun}");
    is_told(&process, "plan", &begun);
    let id = begun["id"].as_str().unwrap().to_owned();
    let job = || process.json(&format!("/api/v1/replays/{id}")).1;
    until("all are handled", || job()["handled"] == 30).await;
    until("it has ended", || job()["state"] == "finished" && job()["runs_here"] == false).await;
    until("none is open", || listed(&process, "").is_empty()).await;
    is_told(&process, "replay", &job());
    let replayed = listed(&process, "?state=replayed");
    assert!(replayed.len() == 30 && replayed.iter().all(|one| one["job"] == id), "{replayed:?}");
    let (status, said) = process.post(&format!("/api/v1/replays/{id}/pause"), &json!({}));
    assert_eq!(status, 409, "{said}");
    assert_eq!(process.post("/api/v1/replays", &wanted).0, 404, "none is open");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_paused_resumed_and_cancelled_over_http() {
    let stage = Stage::new().await;
    let (process, _endpoint, answer) = started(&stage, "surge-guard = \"off\"").await;
    stage.send_many("orders", 0..60, 60).await;
    until("all are letters", || listed(&process, "").len() == 60).await;
    answer.store(200, Ordering::SeqCst);
    let wanted = json!({ "all": true, "rate": "60/m", "reason": "slowly" });
    let (status, begun) = process.post("/api/v1/replays", &wanted);
    assert_eq!(status, 202, "{begun}");
    let id = begun["id"].as_str().unwrap().to_owned();
    let change = |what: &str| {
        let (status, job) = process.post(&format!("/api/v1/replays/{id}/{what}"), &json!({ "reason": what }));
        assert_eq!(status, 200, "{job}");
        job["state"].as_str().unwrap().to_owned()
    };
    let held = process.post("/api/v1/replays", &wanted);
    let told = held.1["detail"].as_str().unwrap();
    assert!(
        held.0 == 409 && told.contains(&format!("job {id} of ")) && told.contains("it is running"),
        "{held:?}"
    );
    assert_eq!(change("pause"), "paused");
    assert_eq!(change("resume"), "running");
    assert_eq!(change("cancel"), "cancelled");
    let (_, job) = process.json(&format!("/api/v1/replays/{id}"));
    let sent = job["sent"].as_u64().unwrap();
    assert!(sent < 60, "{job}");
    until("the others are open again", || listed(&process, "").len() as u64 == 60 - sent).await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_listed_and_ordered_about() {
    let stage = Stage::new().await;
    let (process, _endpoint, answer) =
        started(&stage, "retry.not-ready = \"list(1h x3)\"\nsurge-guard = \"off\"").await;
    answer.store(425, Ordering::SeqCst);
    stage.send_many("orders", 0..3, 3).await;
    let waiting = || process.json("/api/v1/delayed?topic=orders").1["records"].as_array().unwrap().clone();
    until("all wait", || waiting().len() == 3).await;
    is_told(&process, "waiting", &waiting()[0]);
    let order = |number: usize, what: &str, body: &Value| {
        process.post(&format!("/api/v1/delayed/orders/0/{number}/{what}?group=billing"), body)
    };
    let later = order(0, "reschedule", &json!({ "due": "3h" }));
    assert_eq!((later.0, &later.1["outcome"]), (200, &"due".into()), "{later:?}");
    is_told(&process, "ordered", &later.1);
    let bad = order(0, "reschedule", &json!({}));
    assert!(bad.0 == 400 && bad.1["detail"].as_str().unwrap().contains("`due` is missing"), "{bad:?}");
    let gone = order(1, "cancel", &json!({ "reason": "withdrawn" }));
    assert_eq!((gone.0, &gone.1["outcome"]), (200, &"cancelled".into()), "{gone:?}");
    answer.store(200, Ordering::SeqCst);
    let now = order(2, "release", &json!({}));
    assert_eq!(now.0, 200, "{now:?}");
    until("one is left", || waiting().len() == 1).await;
    until("one is a letter", || listed(&process, "?reason=cancelled").len() == 1).await;
    let never = order(99, "release", &json!({}));
    assert_eq!(never.0, 409, "{never:?}");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_question_is_answered_with_what_is_wrong_and_what_mends_it() {
    let stage = Stage::new().await;
    let (process, _endpoint, _) = started(&stage, "surge-guard = \"off\"").await;
    until("the index is there", || process.json("/api/v1/letters").0 == 200).await;
    for (path, status, fragment) in [
        ("/api/v1/letters?colour=red", 400, "`colour` is not known here; there are limit"),
        ("/api/v1/letters?limit=1001", 400, "at most 1000"),
        ("/api/v1/letters?cursor=x", 400, "not a cursor"),
        ("/api/v1/letters?since=tomorrow", 400, "`since`: write a time"),
        ("/api/v1/letters?key_pattern=(", 400, "cannot read the pattern"),
        ("/api/v1/letters/orders/x/1", 400, "names no record"),
        ("/api/v1/letters/nowhere/0/1", 404, "there is no letter nowhere/0/1"),
        ("/api/v1/groups?header=a", 400, "letters are not counted by `header`"),
        ("/api/v1/letters?limit=0", 400, "`limit` has to be a whole number from 1"),
        ("/api/v1/letters?attempts=5..3", 400, "`attempts`: it ends before it begins"),
        ("/api/v1/letters?error=--", 400, "`error`: there is no word"),
        ("/api/v1/stats?by=colour", 400, "hour, day, error"),
        ("/api/v1/replays/zzz", 404, "there is no job zzz"),
        ("/api/v1/delayed?group=nobody", 404, "name both topic and group"),
        ("/api/v1/nothing", 404, "openapi.json"),
    ] {
        let (found, head, body) = process.ask("GET", path, "", "");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((found, &body["status"]), (status, &status.into()), "{path}: {body}");
        assert!(head.contains("application/problem+json"), "{path}: {head}");
        assert!(body["detail"].as_str().unwrap().contains(fragment), "{path}: {body}");
    }
    for (path, body, status, fragment) in [
        ("/api/v1/replays", json!({}), 400, "which letters?"),
        ("/api/v1/replays", json!({ "all": true }), 400, "`reason`"),
        ("/api/v1/replays", json!({ "all": true, "rate": "fast" }), 400, "is not a rate"),
        ("/api/v1/replays", json!({ "all": true, "rate": "50" }), 400, "write 50/s"),
        ("/api/v1/replays", json!({ "all": true, "max_failed": "200%" }), 400, "from 0% to 100%; write 10%"),
        ("/api/v1/replays", json!({ "all": true, "canary_wait": "long" }), 400, "write 30s, 5m or 1h"),
        ("/api/v1/replays", json!({ "query": { "header": "a=b" }, "reason": "x" }), 404, "no letter matches"),
        ("/api/v1/replays", json!({ "query": { "colour": "red" } }), 400, "`colour`"),
        ("/api/v1/replays", json!({ "all": true, "quickly": 1, "reason": "x" }), 400, "`quickly`"),
        ("/api/v1/letters/resolve", json!({ "all": true, "reason": "x" }), 404, "no letter matches"),
        ("/api/v1/groups/f1-nothing", json!({ "state": "muted" }), 400, "f1-nothing"),
    ] {
        let (found, told) = process.post(path, &body);
        assert_eq!((found, &told["status"]), (status, &status.into()), "{path} {body}: {told}");
        assert!(told["detail"].as_str().unwrap().contains(fragment), "{path} {body}: {told}");
    }
    let wanted = r#"{"all": true, "dry_run": true}"#;
    let json = "content-type: application/json\r\n";
    let asked = |headers: &str| process.ask("POST", "/api/v1/replays", headers, wanted).0;
    assert_eq!(asked(""), 415);
    assert_eq!(asked("content-type: text/plain\r\n"), 415);
    assert_eq!(asked(&format!("{json}origin: http://evil.example\r\n")), 403);
    assert_eq!(asked(&format!("{json}sec-fetch-site: cross-site\r\n")), 403);
    assert_eq!(asked(&format!("{json}origin: http://{}\r\n", process.address)), 404, "no letter matches");
    assert_eq!(process.ask("DELETE", "/api/v1/letters", "", "").0, 405);
    let (status, document) = process.json("/api/v1/openapi.json");
    assert_eq!((status, &document["openapi"]), (200, &"3.1.0".into()));
    let letters = "/paths/~1api~1v1~1letters/get/responses/200/content/application~1json/schema/$ref";
    assert_eq!(document.pointer(letters), Some(&"#/components/schemas/letters".into()));
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_on_by_itself_when_the_process_that_ran_it_was_killed_and_starts_again() {
    let stage = Stage::new().await;
    let (process, endpoint, answer) = started(&stage, "surge-guard = \"off\"").await;
    stage.send_many("orders", 0..60, 60).await;
    until("all are letters", || listed(&process, "?limit=1000").len() == 60).await;
    answer.store(200, Ordering::SeqCst);
    let wanted = json!({ "all": true, "rate": "5/s", "reason": "fixed" });
    let (status, begun) = process.post("/api/v1/replays", &wanted);
    assert_eq!(status, 202, "{begun}");
    let path = format!("/api/v1/replays/{}", begun["id"].as_str().unwrap());
    until("some are sent", || process.json(&path).1["sent"].as_u64().unwrap() >= 5).await;
    let file = process.file.clone();
    process.signal("KILL");
    drop(process);

    let process = Process::start_file(&file).await;
    let job = || process.json(&path).1;
    until("it runs here", || job()["runs_here"] == true).await;
    let sent = job()["sent"].as_u64().unwrap();
    assert!((5..60).contains(&sent), "where it was: {}", job());
    until("all are sent", || job()["state"] == "finished").await;
    // What the killed process had handled and not told yet, it never tells.
    until("the others are handled", || job()["handled"].as_u64().unwrap() >= 60 - sent).await;
    assert_eq!((job()["sent"].as_u64(), job()["skipped"].as_u64()), (Some(60), Some(0)), "{}", job());
    let records = stage.read("redrive.journal").await;
    assert!(records.contains("replay resume") && records.contains("is gone"), "{records}");
    drop(endpoint);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_letters_that_their_topic_is_about_to_delete_are_in_the_metrics() {
    let stage = Stage::new().await;
    let admin = redrive_kafka::Admin::new(stage.cluster.settings()).unwrap();
    let settings = [("retention.ms".to_owned(), "3600000".to_owned())].into();
    admin.create(&LETTERS.parse().unwrap(), 1, 1, &settings).await.unwrap();
    for _ in 0..3 {
        foreign(&stage.cluster).await;
    }
    let (process, _endpoint, _) = started(&stage, "").await;
    until("they are told", || process.metric("redrive_letters_at_risk", LETTERS) == 3.0).await;
    process.said("open letters will be deleted").await;
    process.stop().await;
}
