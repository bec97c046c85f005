//! Three processes of one file: one is killed, one sleeps through its session and wakes up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::Clock;
use redrive_testkit::python::Python;
use serde_json::json;

use crate::on_both;
use crate::place::{Place, Sent};
use crate::process::{Process, until};
use crate::story::judged;

on_both!(of_three_one_is_killed_and_one_sleeps_and_nothing_is_lost_or_out_of_order);

const KEYS: usize = 30;

async fn of_three_one_is_killed_and_one_sleeps_and_nothing_is_lost_or_out_of_order(place: Place) {
    let python = Python::new(&json!({
        "bad": [{ "status": 422 }], "flaky": [{ "status": 500 }, {}], "early": [{ "status": 425 }, {}],
        "good": [{ "delay": 0.1 }],
    }));
    let more =
        "retry.transient = \"list(30ms x2)\"\nretry.not-ready = \"list(200ms x20)\"\nsurge-guard = \"off\"";
    let first = Process::start(place.folder(), &place.config(&[], &python.url(), more)).await;
    first.until_assigned(&place.topic).await;
    let (second, third) = (Process::start_file(&first.file).await, Process::start_file(&first.file).await);
    for process in [&second, &third, &first] {
        process.until_assigned(&place.topic).await;
    }
    let over = AtomicBool::new(false);
    let story = async {
        let begun = python.calls().len();
        until("they are at work", || python.calls().len() > begun + 100).await;
        drop(second);
        third.signal("STOP");
        // The first has it all once their sessions are over.
        until("one has all", || of(&first, &place) == 3).await;
        let before = python.calls().len();
        until("it is at work", || python.calls().len() > before + 100).await;
        third.signal("CONT");
        until("it knows what it lost", || third.log().contains("partitions were lost")).await;
        until("it is back", || of(&third, &place) > 0).await;
        let before = python.calls().len();
        until("both are at work", || python.calls().len() > before + 100).await;
        over.store(true, Ordering::SeqCst);
        third
    };
    let (sent, third) = tokio::join!(flow(&place, &over), story);
    let story = judged(&place, &sent, || python.told()).await;
    for one in &sent {
        assert_eq!(story.letters.contains_key(&one.spot), one.value.starts_with("bad"), "{one:?}");
    }
    first.stop().await;
    third.stop().await;
}

/// How many partitions a process has.
fn of(process: &Process, place: &Place) -> usize {
    process.subscription(&place.topic)["partitions"].as_array().unwrap().len()
}

/// Records, as long as it is not over.
async fn flow(place: &Place, over: &AtomicBool) -> Vec<Sent> {
    let (clock, mut sent) = (Clock::system(), Vec::new());
    while !over.load(Ordering::SeqCst) {
        let numbers = sent.len()..sent.len() + 10;
        sent.extend(place.send(numbers.map(|n| (format!("key-{}", n % KEYS), value(n)))).await);
        clock.sleep(Duration::from_millis(100)).await;
    }
    sent
}

fn value(number: usize) -> String {
    let name = match number % 40 {
        7 => "bad",
        13 => "flaky",
        22 => "early",
        _ => "good",
    };
    format!("{name}:{number}")
}
