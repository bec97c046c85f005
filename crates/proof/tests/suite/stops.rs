//! SIGTERM while handlers run.

use std::time::Duration;

use crate::crashes::send_many;
use crate::on_both;
use crate::place::Place;

on_both!(
    stopped_amid_its_work_it_ends_what_runs_and_repeats_nothing,
    a_handler_that_outlasts_the_deadline_is_cut_off_and_its_record_comes_again,
);

async fn stopped_amid_its_work_it_ends_what_runs_and_repeats_nothing(place: Place) {
    place.topics(3).await;
    let sent = send_many(&place, 400, 100, "slow:300").await;
    for round in 1..=3 {
        let before = place.calls().starts();
        let worker = place.worker().with("--concurrency", "16").with("--drain-ms", "25000").start();
        place.until_calls("handlers run", |calls| (calls.starts() > before + 24 * round).then_some(())).await;
        let (status, took) = worker.stop().await;
        assert!(status.success() && took < Duration::from_secs(15), "{status} after {took:?}");
    }
    let worker = place.worker().with("--concurrency", "100").start();
    let verdict = place.judge(&sent, 3).await;
    assert_eq!(verdict.calls.repeats(), []);
    assert_eq!(verdict.calls.starts(), sent.len(), "what was started was ended");
    worker.stop_well().await;
}

async fn a_handler_that_outlasts_the_deadline_is_cut_off_and_its_record_comes_again(place: Place) {
    place.topics(1).await;
    let sent = place.send([("a", "slow:12000"), ("b", "ok")]).await;
    let worker = place.worker().with("--drain-ms", "500").start();
    place.until_calls("both began", |calls| (calls.starts() == 2).then_some(())).await;
    let (status, took) = worker.stop().await;
    assert!(status.success() && took < Duration::from_secs(10), "{status} after {took:?}");
    let worker = place.worker().start();
    let verdict = place.judge(&sent, 1).await;
    assert_eq!(verdict.calls.starts_of((0, 0)), 2);
    worker.stop_well().await;
}
