//! What waits survives whoever made it wait, with its due time and the count of its attempts.

use crate::on_both;
use crate::place::{Place, Sent};
use crate::subject::Subject;

on_both!(waits_of_any_length_survive_restarts_and_no_short_one_stands_behind_a_long_one);

/// The longest first, so that they stand first in the log.
const WAITS: [u64; 8] = [20_000, 14_000, 9_000, 5_000, 2_000, 600, 80, 3];

async fn waits_of_any_length_survive_restarts_and_no_short_one_stands_behind_a_long_one(place: Place) {
    place.topics(1).await;
    let sent = place.send(WAITS.map(|wait| (format!("key-{wait}"), format!("later:1:{wait}")))).await;
    let twice = place.send([("twice", "later:2:3000")]).await;
    let all = [sent.clone(), twice.clone()].concat();
    // One is killed as soon as all wait, one is stopped amid the waits, one sees the end of them.
    let first = worker(&place, "one");
    place.until_calls("all wait", |calls| (calls.later() >= all.len()).then_some(())).await;
    place.until_complete(&all, 1).await;
    let killed = first.id();
    first.kill();
    let second = worker(&place, "one");
    let again = |calls: &crate::calls::Calls| (calls.attempts(spot(&twice[0])).len() > 1).then_some(());
    place.until_calls("the second attempt", again).await;
    second.stop_well().await;
    let third = worker(&place, "one");
    place.until_done(all.len()).await;
    place.until_complete(&all, 1).await;
    third.stop_well().await;
    let calls = place.calls();
    calls.judge_all(&all, &place.letters(1).await);
    // Each attempt once, save those that the killed one began: what it had done since its last checkpoint is
    // made again, once.
    for one in &all {
        for (attempt, processes) in calls.processes(spot(one)) {
            let again = processes.len() == 2 && processes[0] == killed;
            assert!(processes.len() == 1 || again, "{:?}, attempt {attempt}: {processes:?}", spot(one));
        }
    }
    let attempts = |one: &Sent| calls.processes(spot(one)).into_keys().collect::<Vec<_>>();
    assert!(sent.iter().all(|one| attempts(one) == [1, 2]), "the count goes on");
    assert_eq!(attempts(&twice[0]), [1, 2, 3], "the count goes on");
    let mut order: Vec<_> = Vec::new();
    for spot in calls.order().into_iter().filter(|(_, offset)| *offset < WAITS.len() as i64) {
        if !order.contains(&spot) {
            order.push(spot);
        }
    }
    let mut by_due: Vec<_> = sent.iter().map(spot).collect();
    by_due.reverse();
    assert_eq!(order, by_due, "the shortest first");
}

fn spot(one: &Sent) -> (i32, i64) {
    (one.partition, one.offset)
}

fn worker(place: &Place, name: &str) -> Subject {
    let command = place.worker().property("group.instance.id", name);
    command.with("--retry", "not-ready=list(50ms x100)").start()
}
