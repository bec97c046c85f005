//! What the group committed, deleted or set by an operator while it was away: the shelf knows where it was.

use redrive_testkit::delete_group;

use crate::on_both;
use crate::place::{Place, Sent, until};
use crate::subject::Subject;

on_both!(
    a_group_whose_offsets_are_gone_goes_on_where_it_was,
    a_reset_to_an_earlier_offset_is_obeyed_and_doubles_nothing_that_waits,
    a_reset_to_a_later_offset_is_obeyed_and_keeps_what_waits,
);

async fn a_group_whose_offsets_are_gone_goes_on_where_it_was(place: Place) {
    let (sent, worker) = some_wait(&place).await;
    worker.stop_well().await;
    // Whoever left counts as a member until the broker has heard of it.
    until("nobody is in the group", async || {
        let is_deleted = delete_group(&place.cluster, &place.group).await;
        (is_deleted && place.committed(1).await == [None]).then_some(())
    })
    .await;
    let while_away = place.send([("a", "ok"), ("b", "ok")]).await;
    let worker = worker_of(&place);
    let all = [sent, while_away].concat();
    place.until_done(all.len()).await;
    place.until_complete(&all, 1).await;
    worker.stop_well().await;
    let calls = place.calls();
    calls.judge_all(&all, &place.letters(1).await);
    assert_eq!(calls.repeats(), [], "nothing came again");
    assert_eq!(calls.starts(), all.len() + WAITING.len(), "each once, and once more what waited");
}

async fn a_reset_to_an_earlier_offset_is_obeyed_and_doubles_nothing_that_waits(place: Place) {
    let (sent, worker) = some_wait(&place).await;
    worker.stop_well().await;
    place.reset(0, 2).await;
    let worker = worker_of(&place);
    // All but the two before the reset, twice.
    place.until_done(sent.len()).await;
    let is_again = |one: &Sent| one.offset >= 2 && !WAITING.contains(&one.offset);
    let again: Vec<_> = sent.iter().filter(|one| is_again(one)).map(|one| (0, one.offset)).collect();
    place.until_calls("all came again", |calls| (calls.repeats() == again).then_some(())).await;
    place.until_complete(&sent, 1).await;
    worker.stop_well().await;
    waited_once(&place);
    // The reset was taken note of: it does not come back.
    let starts = place.calls().starts();
    let worker = worker_of(&place);
    let after = place.send([("z", "ok")]).await;
    place.until_done(sent.len() + 1).await;
    place.until_complete(&after, 1).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), starts + 1);
}

async fn a_reset_to_a_later_offset_is_obeyed_and_keeps_what_waits(place: Place) {
    let (sent, worker) = some_wait(&place).await;
    worker.stop_well().await;
    let skipped = place.send((0..10).map(|n| (format!("new-{n}"), "ok"))).await;
    let wanted = place.send((0..10).map(|n| (format!("new-{n}"), "ok"))).await;
    place.reset(0, wanted[0].offset).await;
    let worker = worker_of(&place);
    place.until_done(sent.len() + wanted.len()).await;
    place.until_complete(&wanted, 1).await;
    worker.stop_well().await;
    waited_once(&place);
    let calls = place.calls();
    assert!(skipped.iter().all(|one| calls.starts_of((0, one.offset)) == 0), "what was skipped is");
    assert_eq!(calls.repeats(), []);
}

/// Offsets of records that wait.
const WAITING: [i64; 3] = [1, 5, 11];

/// Twenty records, three of which wait for a while; the others are done.
async fn some_wait(place: &Place) -> (Vec<Sent>, Subject) {
    place.topics(1).await;
    let value = |n: i64| if WAITING.contains(&n) { "later:1:15000" } else { "ok" };
    let sent = place.send((0..20).map(|n| (format!("key-{n}"), value(n)))).await;
    let worker = worker_of(place);
    place.until_done(sent.len() - WAITING.len()).await;
    place.until_complete(&sent, 1).await;
    (sent, worker)
}

fn worker_of(place: &Place) -> Subject {
    place.worker().with("--retry", "not-ready=list(50ms x100)").start()
}

fn waited_once(place: &Place) {
    let calls = place.calls();
    for offset in WAITING {
        let attempts: Vec<_> = calls.attempts((0, offset)).into_iter().map(|(attempt, _)| attempt).collect();
        assert_eq!(attempts, [1, 2], "offset {offset} waited through it");
    }
    calls.judge_times();
}
