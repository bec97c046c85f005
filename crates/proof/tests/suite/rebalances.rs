//! Workers that come, leave and die while records flow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::Clock;

use crate::on_both;
use crate::place::{Place, Sent};

const PARTITIONS: i32 = 6;

on_both!(workers_that_come_and_leave_handle_nothing_twice, a_worker_that_dies_costs_repeats_and_nothing_else,);

async fn workers_that_come_and_leave_handle_nothing_twice(place: Place) {
    place.topics(PARTITIONS).await;
    let over = AtomicBool::new(false);
    let story = async {
        let worker = || place.worker().with("--retry", "not-ready=list(50ms x100)").start();
        let (first, second) = (worker(), worker());
        until_at_work(&place, &[first.id(), second.id()]).await;
        let third = worker();
        until_at_work(&place, &[first.id(), second.id(), third.id()]).await;
        first.stop_well().await;
        until_at_work(&place, &[second.id(), third.id()]).await;
        over.store(true, Ordering::SeqCst);
        (second, third)
    };
    // Nothing that is tried again in place: that is not done when the partition changes hands, and counts anew.
    let (sent, (second, third)) = tokio::join!(flow(&place, &over, "later:2:400"), story);
    place.until_done(sent.len() - (0..sent.len()).filter(|n| n % 50 == 7).count()).await;
    let verdict = place.judge(&sent, PARTITIONS).await;
    verdict.calls.judge_all(&sent, &verdict.letters);
    assert_eq!(verdict.calls.repeats(), [], "a clean change of hands repeats nothing");
    second.stop_well().await;
    third.stop_well().await;
}

async fn a_worker_that_dies_costs_repeats_and_nothing_else(place: Place) {
    place.topics(PARTITIONS).await;
    let over = AtomicBool::new(false);
    let story = async {
        let first = place.worker().start();
        until_at_work(&place, &[first.id()]).await;
        let second = place.worker().start();
        until_at_work(&place, &[first.id(), second.id()]).await;
        // Amid the rebalance that the third one causes.
        let third = place.worker().start();
        place
            .until_calls("the third joins", |calls| {
                (!calls.events(Some(third.id()), &["assigned"]).is_empty()).then_some(())
            })
            .await;
        second.kill();
        until_at_work(&place, &[first.id(), third.id()]).await;
        over.store(true, Ordering::SeqCst);
        (first, third)
    };
    let (sent, (first, third)) = tokio::join!(flow(&place, &over, "transient:2"), story);
    place.judge(&sent, PARTITIONS).await;
    first.stop_well().await;
    third.stop_well().await;
}

/// Records, as long as it is not over: some that fail for good, some that are as told.
async fn flow(place: &Place, over: &AtomicBool, some: &str) -> Vec<Sent> {
    let (clock, mut sent, mut n) = (Clock::system(), Vec::new(), 0_u32);
    while !over.load(Ordering::SeqCst) {
        let records = (n..n + 20).map(|n| {
            let value = match n % 50 {
                7 => "permanent",
                13 => some,
                _ => "slow:5",
            };
            (format!("key-{}", n % 60), value)
        });
        sent.extend(place.send(records).await);
        n += 20;
        clock.sleep(Duration::from_millis(50)).await;
    }
    sent
}

/// Waits until each of these has handled more records than it has by now.
async fn until_at_work(place: &Place, workers: &[u32]) {
    let calls = place.calls();
    let before: Vec<_> = workers.iter().map(|worker| calls.starts_in(*worker)).collect();
    place
        .until_calls("all are at work", |calls| {
            workers
                .iter()
                .zip(&before)
                .all(|(worker, before)| calls.starts_in(*worker) > before + 10)
                .then_some(())
        })
        .await;
}
