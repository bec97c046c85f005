//! The calendar of a worker's machine is set wrong by an hour: due times are the broker's.

use std::path::PathBuf;

use crate::on_both;
use crate::place::{Place, Sent};
use crate::subject::Subject;

const HOUR: i64 = 3_600_000;

on_both!(
    a_calendar_set_forward_by_an_hour_makes_nothing_early_or_late,
    a_calendar_set_back_by_an_hour_makes_nothing_early_or_late,
);

async fn a_calendar_set_forward_by_an_hour_makes_nothing_early_or_late(place: Place) {
    set_wrong(place, HOUR).await;
}

async fn a_calendar_set_back_by_an_hour_makes_nothing_early_or_late(place: Place) {
    set_wrong(place, -HOUR).await;
}

/// Set wrong amid the waits, wrong from the start of the next, and right again amid its waits.
async fn set_wrong(place: Place, by: i64) {
    place.topics(2).await;
    let calendar = place.file("calendar");
    let worker = worker(&place, &calendar);
    let mut sent = waits(&place).await;
    place.until_calls("all wait", |calls| (calls.later() >= sent.len()).then_some(())).await;
    std::fs::write(&calendar, by.to_string()).expect("the calendar is set");
    told(&place, worker.id()).await;
    sent.extend(waits(&place).await);
    place.until_calls("all wait", |calls| (calls.later() >= sent.len()).then_some(())).await;
    place.until_complete(&sent, 2).await;
    worker.stop_well().await;

    let next = self::worker(&place, &calendar);
    sent.extend(waits(&place).await);
    place.until_calls("all wait", |calls| (calls.later() >= sent.len()).then_some(())).await;
    told(&place, next.id()).await;
    std::fs::write(&calendar, "0").expect("the calendar is set");
    // Well within the hour: what must come is waited for, but not that long.
    place.until_done(sent.len()).await;
    place.until_complete(&sent, 2).await;
    next.stop_well().await;
    place.calls().judge_all(&sent, &place.letters(2).await);
    assert_eq!(place.calls().repeats(), []);
}

async fn waits(place: &Place) -> Vec<Sent> {
    place.send((0..40).map(|n| (format!("key-{n}"), format!("later:1:{}", 100 * n)))).await
}

fn worker(place: &Place, calendar: &PathBuf) -> Subject {
    let command = place.worker().with("--calendar", calendar).with("--surge-guard", "off");
    command.with("--concurrency", "64").with("--retry", "not-ready=list(50ms x100)").start()
}

async fn told(place: &Place, worker: u32) {
    let words = ["WARN", "the clock here and the broker's are", "apart"];
    let look = |calls: &crate::calls::Calls| (!calls.events(Some(worker), &words).is_empty()).then_some(());
    place.until_calls("it is told", look).await;
}
