//! A shelf that is missing, cannot be written, read or cut: told, and all goes on by itself once it is mended.

use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};
use redrive_testkit::delete_topic;

use crate::calls::Calls;
use crate::place::{Place, Sent, until};
use crate::subject::{Command, SUBJECT, Subject};
use crate::{on_both, on_embedded};

on_both!(
    a_shelf_that_is_missing_holds_its_partition_until_it_is_made,
    the_log_of_a_shelf_is_cut_as_it_goes_and_nothing_that_waits_goes_with_it,
);
on_embedded!(
    a_shelf_that_may_not_be_written_holds_its_partition_until_it_may,
    a_shelf_that_may_not_be_written_in_transactions_holds_its_partition_until_it_may,
    a_shelf_that_has_no_leader_for_a_while_costs_nothing,
    a_shelf_that_may_not_be_cut_grows_and_says_so,
);

async fn a_shelf_that_is_missing_holds_its_partition_until_it_is_made(place: Place) {
    place.topics(2).await;
    let mut sent = [place.send_to(0, &["ok"; 5]).await, place.send_to(1, &["ok"; 5]).await].concat();
    let worker = worker(&place);
    place.until_complete(&sent, 2).await;
    // Nothing waits, so nothing is lost with it.
    delete_topic(&place.cluster, &place.shelf()).await;
    sent.extend(place.send_to(0, &["later:1:50", "ok", "ok"]).await);
    told(&place, "partition 0 is held", "redrive topics apply").await;
    place.make(&place.shelf(), 2, &[("message.timestamp.type", "LogAppendTime")]).await;
    sent.extend(place.send_to(1, &["later:1:50", "ok"]).await);
    place.until_done(sent.len()).await;
    place.until_complete(&sent, 2).await;
    worker.stop_well().await;
    place.calls().judge(&sent, &place.letters(2).await);
}

async fn a_shelf_that_may_not_be_written_holds_its_partition_until_it_may(place: Place) {
    place.topics(2).await;
    let worker = worker(&place);
    refuse_for_a_while(place, worker).await;
}

async fn a_shelf_that_may_not_be_written_in_transactions_holds_its_partition_until_it_may(place: Place) {
    place.topics(2).await;
    let worker = command(&place).flag("--exactly-once").start();
    refuse_for_a_while(place, worker).await;
}

async fn refuse_for_a_while(place: Place, worker: Subject) {
    let mut sent = some_wait(&place).await;
    let faults = place.broker().await.faults();
    let refused = Effect::Fail(ResponseError::TopicAuthorizationFailed);
    faults.order(on_shelf(&place, ApiKey::Produce, refused));
    sent.extend(place.send_to(0, &["later:1:50", "ok", "ok"]).await);
    told(&place, "partition 0 is held", "allow this user to write").await;
    faults.clear();
    goes_on(&place, sent, worker).await;
}

async fn a_shelf_that_has_no_leader_for_a_while_costs_nothing(place: Place) {
    place.topics(2).await;
    let worker = worker(&place);
    let mut sent = some_wait(&place).await;
    let faults = place.broker().await.faults();
    let moved = Effect::Fail(ResponseError::NotLeaderOrFollower);
    faults.order(on_shelf(&place, ApiKey::Produce, moved));
    sent.extend(place.send_to(0, &["later:1:50", "ok", "ok"]).await);
    told(&place, "partition 0 is held", "the brokers can be reached").await;
    // Nor can it be read, and the source neither.
    faults.order(Fault::next(ApiKey::Fetch, moved).times(20).from_client(SUBJECT));
    place.until_calls("fetches fail", |_| (faults.waiting() == 1).then_some(())).await;
    faults.clear();
    goes_on(&place, sent, worker).await;
}

async fn a_shelf_that_may_not_be_cut_grows_and_says_so(place: Place) {
    place.topics(1).await;
    let faults = place.broker().await.faults();
    let refused = Effect::Fail(ResponseError::TopicAuthorizationFailed);
    faults.order(on_shelf(&place, ApiKey::DeleteRecords, refused));
    let worker = worker(&place);
    let mut sent = much(&place, 700).await;
    place.until_done(sent.len()).await;
    told(&place, "grows, as it cannot be cut", "redrive acls").await;
    assert_eq!(place.shelf_begins(0).await, 0);
    faults.clear();
    // It is tried again when as much again was written.
    sent.extend(much(&place, 200).await);
    place.until_done(sent.len()).await;
    ready_again(&place, "grows, as it cannot be cut").await;
    until("it is cut", async || (place.shelf_begins(0).await > 0).then_some(())).await;
    goes_on(&place, sent, worker).await;
}

async fn the_log_of_a_shelf_is_cut_as_it_goes_and_nothing_that_waits_goes_with_it(place: Place) {
    place.topics(1).await;
    let first = worker(&place);
    // What waits longer than all the others is carried along.
    let mut sent = place.send([("long", "later:1:12000"), ("long", "ok")]).await;
    let mut begins = 0;
    while begins < 1_000 {
        sent.extend(much(&place, 300).await);
        place.until_done(sent.len() - 2).await;
        begins = place.shelf_begins(0).await;
        assert!(sent.len() < 10_000, "it is never cut");
    }
    first.kill();
    goes_on(&place, sent, worker(&place)).await;
    let calls = place.calls();
    let attempts: Vec<_> = calls.attempts((0, 0)).into_iter().map(|(attempt, _)| attempt).collect();
    assert_eq!(attempts, [1, 2], "it waited through all of it");
}

/// So many large records that wait for a moment.
async fn much(place: &Place, records: u32) -> Vec<Sent> {
    let value = format!("later:1:5 {}", "x".repeat(20_000));
    place.send((0..records).map(|n| (format!("key-{n}"), value.clone()))).await
}

/// Records that wait before anything goes wrong.
async fn some_wait(place: &Place) -> Vec<Sent> {
    let values = ["ok", "later:2:2000", "ok", "later:1:700"];
    let sent = [place.send_to(0, &values).await, place.send_to(1, &values).await].concat();
    place.until_complete(&sent, 2).await;
    sent
}

/// All is done after all, in its time and order, and by a worker that was not restarted.
async fn goes_on(place: &Place, mut sent: Vec<Sent>, worker: Subject) {
    sent.extend(place.send_to(0, &["later:1:20", "ok"]).await);
    let partitions = sent.iter().map(|one| one.partition).max().unwrap_or(0) + 1;
    place.until_done(sent.len()).await;
    place.until_complete(&sent, partitions).await;
    worker.stop_well().await;
    place.calls().judge_all(&sent, &place.letters(partitions).await);
}

fn on_shelf(place: &Place, api: ApiKey, effect: Effect) -> Fault {
    Fault::next(api, effect).times(u32::MAX).mentioning(place.shelf()).from_client(SUBJECT)
}

fn worker(place: &Place) -> Subject {
    command(place).start()
}

fn command(place: &Place) -> Command<'_> {
    let command = place.worker().with("--surge-guard", "off").with("--concurrency", "64");
    let command = command.property("group.instance.id", "one");
    command.with("--retry", "not-ready=list(50ms x100)")
}

async fn told(place: &Place, what: &str, remedy: &str) {
    let words = ["WARN", what, "remedy=", remedy];
    let look = |calls: &Calls| (!calls.events(None, &words).is_empty()).then_some(());
    place.until_calls(what, look).await;
}

async fn ready_again(place: &Place, what: &str) {
    let words = ["ready again", what];
    let look = |calls: &Calls| (!calls.events(None, &words).is_empty()).then_some(());
    place.until_calls("ready again", look).await;
}
