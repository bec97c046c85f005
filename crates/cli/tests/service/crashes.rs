//! The endpoint restarts, and the program is killed, again and again.

use std::collections::HashSet;

use redrive_testkit::python::{Python, Told};
use serde_json::json;

use crate::on_both;
use crate::place::Place;
use crate::process::{Process, until};
use crate::story::judged;

on_both!(an_endpoint_that_restarts_costs_no_letter, killed_again_and_again_it_loses_nothing);

const RECORDS: usize = 400;
const KEYS: usize = 20;

/// Each has a value of its own, that the script knows by its beginning.
fn value(number: usize) -> String {
    let name = match number % 20 {
        3 => "bad",
        7 | 8 => "flaky",
        11 => "early",
        16 => "hopeless",
        _ => "good",
    };
    format!("{name}:{number}")
}

async fn an_endpoint_that_restarts_costs_no_letter(place: Place) {
    let script = json!({ "*": [{ "delay": 0.02 }] });
    let python = Python::new(&script);
    let port = python.port;
    let more = "concurrency = 8\nretry.outage = \"exponential(50ms..200ms x2)\"";
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), more)).await;
    process.until_ready().await;
    let sent = place.send((0..RECORDS).map(|n| (format!("key-{}", n % KEYS), format!("{n}")))).await;
    let (mut told, mut python) = (Vec::new(), Some(python));
    for round in 1..=3 {
        let running = python.take().unwrap();
        until("some more", || running.calls().len() > RECORDS / 5).await;
        // Amid its answers; what it has told is all that it has done.
        told.extend(running.ended());
        until("the outage is noticed", || process.log().matches("blocked").count() >= round).await;
        python = Some(Python::at(&port.to_string(), &script));
    }
    let python = python.unwrap();
    let all = || told.iter().cloned().chain(python.told()).collect();
    let story = judged(&place, &sent, all).await;
    assert_eq!(story.letters.len(), 0);
    process.until_ready().await;
    process.stop().await;
}

async fn killed_again_and_again_it_loses_nothing(place: Place) {
    let python = Python::new(&json!({
        "bad": [{ "status": 422 }], "hopeless": [{ "status": 500 }], "flaky": [{ "status": 500 }, {}],
        "early": [{ "status": 425 }, { "status": 425 }, {}], "good": [{ "delay": 0.01 }],
    }));
    let more = "concurrency = 8\nretry.transient = \"list(30ms x2)\"\nretry.not-ready = \"list(300ms x20)\"\n\
                surge-guard = \"off\"";
    // With a name of its own in the group it takes its partitions back at once, not after a session.
    let config = place.config(&[("group.instance.id", "one")], &python.url(), more);
    let sent = place.send((0..RECORDS).map(|n| (format!("key-{}", n % KEYS), value(n)))).await;
    // A tenth of them is never handled.
    let little_is_left = || {
        let handled = python.told().into_iter().filter_map(|told| match told {
            Told::Answered { id, status: 200 } => Some(id),
            Told::Answered { .. } | Told::Asked(_) => None,
        });
        handled.collect::<HashSet<_>>().len() > RECORDS * 8 / 10
    };
    for _ in 0..6 {
        let before = python.calls().len();
        let process = Process::start(place.folder(), &config).await;
        until("some more", || python.calls().len() > before + RECORDS / 10 || little_is_left()).await;
        drop(process);
    }
    let process = Process::start(place.folder(), &config).await;
    let story = judged(&place, &sent, || python.told()).await;
    process.until_ready().await;
    process.stop().await;
    for one in &sent {
        let is_buried = one.value.starts_with("bad") || one.value.starts_with("hopeless");
        assert_eq!(story.letters.contains_key(&one.spot), is_buried, "{one:?}");
        assert_eq!(story.handled.contains(&one.spot), !is_buried, "{one:?}");
    }
}
