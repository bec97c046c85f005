//! Every answer, and what becomes of the record: the table of docs/http.md.

use std::collections::BTreeSet;

use redrive_testkit::python::{Python, Told};
use serde_json::{Value, json};

use crate::on_both;
use crate::place::Place;
use crate::process::{Process, until};
use crate::story::{judged, spot};

on_both!(
    each_answer_has_the_fate_that_the_table_says,
    a_slow_endpoint_is_met_with_patience_that_ends,
    a_record_that_alone_always_meets_an_outage_ends_as_a_letter,
);

/// Short waits, so that tries that are used up are not long to wait for.
const QUICK: &str = "retry.transient = \"list(20ms x2)\"\nretry.outage = \"exponential(50ms..50ms x1)\"\n\
                     retry.not-ready = \"list(100ms x1)\"\nsurge-guard = \"off\"\n";

/// What becomes of a record whose endpoint always answers so.
enum Fate {
    Done,
    /// A letter, after so many calls.
    Letter {
        class: &'static str,
        kind: &'static str,
        reason: &'static str,
        calls: usize,
    },
}

fn permanent(kind: &'static str) -> Fate {
    Fate::Letter { class: "permanent", kind, reason: "permanent", calls: 1 }
}

/// Answers that never change.
fn lasting() -> Vec<(&'static str, Value, Fate)> {
    let status = |status: u16| json!({ "status": status });
    let exhausted = |class, kind, calls| Fate::Letter { class, kind, reason: "exhausted", calls };
    let says = |status: u16, class: &str| json!({ "status": status, "headers": { "redrive-class": class } });
    let problem = json!({ "status": 409, "headers": { "content-type": "application/problem+json" },
                          "body": "{\"type\": \"urn:no-stock\", \"title\": \"No stock\"}" });
    vec![
        ("200", status(200), Fate::Done),
        ("202", status(202), Fate::Done),
        ("204", status(204), Fate::Done),
        ("301", json!({ "status": 301, "headers": { "location": "/elsewhere" } }), permanent("http.301")),
        ("307", json!({ "status": 307, "headers": { "location": "/elsewhere" } }), permanent("http.307")),
        ("400", status(400), permanent("http.400")),
        ("401", status(401), permanent("http.401")),
        ("404", status(404), permanent("http.404")),
        ("410", status(410), permanent("http.410")),
        ("413", status(413), permanent("http.413")),
        ("422", status(422), permanent("http.422")),
        ("problem", problem, permanent("urn:no-stock")),
        ("said", says(500, "permanent"), permanent("http.500")),
        ("408", status(408), exhausted("transient", "http.408", 3)),
        ("500", status(500), exhausted("transient", "http.500", 3)),
        ("501", status(501), exhausted("transient", "http.501", 3)),
        ("507", status(507), exhausted("transient", "http.507", 3)),
        ("hopeful", says(404, "transient"), exhausted("transient", "http.404", 3)),
        ("425", status(425), exhausted("not-ready", "http.425", 2)),
        ("early", says(400, "not-ready"), exhausted("not-ready", "http.400", 2)),
    ]
}

async fn each_answer_has_the_fate_that_the_table_says(place: Place) {
    let lasting = lasting();
    // These recover: the first three are outages, which cost no letter however long they last.
    let passing = ["429", "502", "503", "504", "5xx", "425"].map(|name| format!("passing-{name}"));
    let mut script = serde_json::Map::new();
    for (name, answer, _) in &lasting {
        script.insert((*name).to_owned(), json!([answer]));
    }
    for name in &passing {
        let status = name.strip_prefix("passing-").unwrap().parse().unwrap_or(500);
        let times = if status == 425 { 1 } else { 2 };
        let mut answers = vec![json!({ "status": status }); times];
        answers.push(json!({}));
        script.insert(name.clone(), json!(answers));
    }
    let python = Python::new(&Value::Object(script));
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), QUICK)).await;
    process.until_ready().await;
    let names = lasting.iter().map(|(name, ..)| *name).chain(passing.iter().map(String::as_str));
    // Three of each, of one key: what follows has the same fate, in its turn.
    let each = names.flat_map(|name| (0..3).map(move |n| (name.to_owned(), format!("{name}:{n}"))));
    let sent = place.send(each).await;
    let story = judged(&place, &sent, || python.told()).await;
    process.stop().await;
    let done = Fate::Done;
    for one in &sent {
        let name = one.value.split(':').next().unwrap();
        let fate = lasting.iter().find(|(other, ..)| *other == name).map_or(&done, |(_, _, fate)| fate);
        let letters = story.letters.get(&one.spot).map_or(&[][..], Vec::as_slice);
        match fate {
            Fate::Done => assert!(letters.is_empty() && story.handled.contains(&one.spot), "{one:?}"),
            Fate::Letter { class, kind, reason, calls } => {
                let [letter] = letters else { panic!("{one:?} has {letters:?}") };
                let names = ["redrive-class", "redrive-error-type", "redrive-reason", "redrive-attempt"];
                let told = names.map(|name| letter.headers[name].as_str());
                assert_eq!(told, [*class, *kind, *reason, &calls.to_string()], "{one:?}");
                assert_eq!((&letter.value, &letter.key), (&Some(one.value.clone()), &Some(one.key.clone())));
                assert_eq!(story.calls[&one.spot], *calls, "{one:?}");
            }
        }
    }
}

/// An endpoint that takes 0, 1 and 5 s, which gets 900 ms at first and 1900 ms for a retry. A machine that stalls
/// meanwhile may change how often it is called, but not what becomes of the records: that holds in each of some rounds,
/// and the calls have to be as they should in one of them.
async fn a_slow_endpoint_is_met_with_patience_that_ends(place: Place) {
    const ROUNDS: u32 = 5;
    let python = Python::new(&json!({ "1": [{ "delay": 1 }], "5": [{ "delay": 5 }] }));
    let more = "timeout = \"900ms\"\nretry-timeout = \"1900ms\"\nretry.transient = \"list(100ms x3)\"\n\
                [[subscription.classify]]\ntype = \"redrive::Timeout\"\nclass = \"transient\"\n";
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), more)).await;
    process.until_ready().await;
    let (mut sent, mut slowest, mut calls) = (Vec::new(), BTreeSet::new(), Vec::new());
    for round in 1..=ROUNDS {
        let three = ["0", "1", "5"].map(|seconds| format!("{seconds}:{round}"));
        let three = place.send(three.map(|value| (value.clone(), value))).await;
        slowest.insert(three[2].spot);
        sent.extend(three.iter().cloned());
        // What it answers too late it answers nobody: only the letter counts.
        let in_time = |told: &Told| !matches!(told, Told::Answered { id, .. } if slowest.contains(&spot(id)));
        let story = judged(&place, &sent, || python.told().into_iter().filter(in_time).collect()).await;
        until("the others are handled", || {
            process.subscription(&place.topic)["totals"]["handled"] == 2 * round
        })
        .await;
        assert!(story.letters.keys().eq(&slowest), "{:?}", story.letters);
        for letter in story.letters.values().flatten() {
            let names = ["redrive-error-type", "redrive-reason", "redrive-attempt"];
            let told = names.map(|name| letter.headers[name].as_str());
            assert_eq!(told, ["redrive::Timeout", "exhausted", "4"]);
        }
        calls = three.iter().map(|one| story.calls[&one.spot]).collect();
        if calls == [1, 2, 4] {
            break;
        }
    }
    process.stop().await;
    assert_eq!(calls, [1, 2, 4], "handled, recovered on retry, buried after three retries");
}

/// An outage that only one record meets is the record's own.
async fn a_record_that_alone_always_meets_an_outage_ends_as_a_letter(place: Place) {
    let python = Python::new(&json!({ "cursed": [{ "status": 503 }] }));
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), QUICK)).await;
    process.until_ready().await;
    let values = (0..60).map(|n| if n == 20 { "cursed".to_owned() } else { format!("good:{n}") });
    let sent = place.send(values.enumerate().map(|(n, value)| (format!("key-{n}"), value))).await;
    let story = judged(&place, &sent, || python.told()).await;
    process.until_ready().await;
    process.stop().await;
    assert_eq!(story.letters.keys().collect::<Vec<_>>(), [&sent[20].spot]);
    let letter = &story.letters[&sent[20].spot][0];
    assert_eq!(
        (&letter.headers["redrive-error-type"][..], &letter.headers["redrive-reason"][..]),
        ("http.503", "exhausted")
    );
}
