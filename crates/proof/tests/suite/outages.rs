//! What the handler depends on is away, or the handler itself is broken.

use std::time::Duration;

use redrive::Clock;

use crate::crashes::send_many;
use crate::on_both;
use crate::place::Place;

on_both!(
    an_outage_stops_the_flow_which_goes_on_in_order_without_letters,
    a_bad_deployment_leaves_at_most_a_hundred_letters_and_the_flow_goes_on_after_the_cure,
);

async fn an_outage_stops_the_flow_which_goes_on_in_order_without_letters(place: Place) {
    const WATCHED: Duration = Duration::from_secs(2);
    place.topics(3).await;
    let sent = send_many(&place, 1_000, 20, "ok").await;
    let up = place.file("up");
    let worker = place.worker().with("--outage-until", &up).start();
    let blocked = ["WARN", "an outage stops the subscription", "remedy="];
    place.until_calls("blocked", |calls| (!calls.events(None, &blocked).is_empty()).then_some(())).await;
    let before = place.calls().starts();
    Clock::system().sleep(WATCHED).await;
    // Pauses grow from 200 ms; what was on its way when the gate closed may still come in.
    let probes = place.calls().starts() - before;
    assert!(probes <= 20, "{probes} calls in {WATCHED:?} of an outage");
    place.until_calls("a probe", |calls| (calls.starts() > before).then_some(())).await;
    std::fs::write(&up, "").expect("a file");
    let verdict = place.judge(&sent, 3).await;
    assert_eq!(verdict.letters, []);
    assert_eq!(verdict.calls.repeats(), []);
    worker.stop_well().await;
}

async fn a_bad_deployment_leaves_at_most_a_hundred_letters_and_the_flow_goes_on_after_the_cure(place: Place) {
    place.topics(3).await;
    let sent = send_many(&place, 10_000, 2_000, "ok").await;
    let cured = place.file("cured");
    let worker = place.worker().with("--broken-until", &cured).with("--concurrency", "32").start();
    let blocked = ["WARN", "most keys fail", "remedy="];
    place.until_calls("blocked", |calls| (!calls.events(None, &blocked).is_empty()).then_some(())).await;
    let before = place.calls().starts();
    place.until_calls("a probe", |calls| (calls.starts() > before + 2).then_some(())).await;
    std::fs::write(&cured, "").expect("a file");
    let verdict = place.judge(&sent, 3).await;
    let letters = verdict.letters.len();
    assert!((1..=100).contains(&letters), "{letters} letters of 10,000 records");
    worker.stop_well().await;
}
