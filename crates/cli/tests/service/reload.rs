//! SIGHUP under load: other rules, and nothing lost or out of order.

use std::fs;

use redrive_testkit::python::Python;
use serde_json::json;

use crate::on_both;
use crate::place::Place;
use crate::process::{Process, until};
use crate::story::judged;

on_both!(a_reload_under_load_loses_and_reorders_nothing);

const RECORDS: usize = 600;
const KEYS: usize = 20;

async fn a_reload_under_load_loses_and_reorders_nothing(place: Place) {
    let python = Python::new(&json!({ "flaky": [{ "status": 500 }, {}], "early": [{ "status": 425 }, {}] }));
    let config = |turn: usize| {
        let more = format!(
            "concurrency = {}\nretry.transient = \"list({turn}ms x3)\"\nretry.not-ready = \"list({turn}ms x3)\"\n\
             surge-guard = \"off\"",
            4 * turn
        );
        place.config(&[], &python.url(), &more)
    };
    let process = Process::start(place.folder(), &config(1)).await;
    process.until_ready().await;
    let reloading = async {
        for turn in 2..=6 {
            until("some more", || python.calls().len() > turn * RECORDS / 10).await;
            // One that is wrong changes nothing.
            let more = if turn == 4 { "no-such-key = 1\n" } else { "" };
            fs::write(&process.file, config(turn) + more).unwrap();
            process.signal("HUP");
            let told = if turn == 4 { "not reloaded" } else { " reloaded " };
            let count = match turn {
                4 => 1,
                2 | 3 => turn - 1,
                later => later - 2,
            };
            until(told, || process.log().matches(told).count() == count).await;
        }
    };
    let sending = async {
        let mut sent = Vec::new();
        for start in (0..RECORDS).step_by(10) {
            sent.extend(
                place.send((start..start + 10).map(|n| (format!("key-{}", n % KEYS), value(n)))).await,
            );
            until("it keeps up", || python.calls().len() + 100 > start).await;
        }
        sent
    };
    let (sent, ()) = tokio::join!(sending, reloading);
    let story = judged(&place, &sent, || python.told()).await;
    assert_eq!(story.letters.len(), 0);
    for one in &sent {
        let calls = if one.value.starts_with("good") { 1 } else { 2 };
        assert_eq!(story.calls[&one.spot], calls, "{one:?}");
    }
    process.stop().await;
}

fn value(number: usize) -> String {
    let name = match number % 10 {
        3 => "flaky",
        7 => "early",
        _ => "good",
    };
    format!("{name}:{number}")
}
