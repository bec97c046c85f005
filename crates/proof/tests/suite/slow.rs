//! A handler that takes longer than a consumer may take between two polls.

use crate::crashes::send_many;
use crate::on_both;
use crate::place::Place;

on_both!(a_handler_slower_than_the_poll_interval_keeps_its_partitions);

async fn a_handler_slower_than_the_poll_interval_keeps_its_partitions(place: Place) {
    place.topics(2).await;
    let mut sent = place.send([("slow", "slow:9000")]).await;
    let worker = place.worker().property("max.poll.interval.ms", "6000").start();
    place.until_calls("the slow one begins", |calls| (calls.starts() > 0).then_some(())).await;
    sent.extend(send_many(&place, 200, 10, "ok").await);
    sent.extend(place.send([("slow", "ok")]).await);
    let verdict = place.judge(&sent, 2).await;
    let assignments = verdict.calls.events(None, &["begun"]);
    assert_eq!(assignments.len(), 2, "each partition begins once: {assignments:#?}");
    assert!(verdict.calls.events(None, &["lost"]).is_empty() && verdict.calls.repeats().is_empty());
    worker.stop_well().await;
}
