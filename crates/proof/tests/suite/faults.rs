//! A broker that fails while the worker writes letters, commits and fetches, or that dies.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};

use redrive_testkit::Stored;

use crate::place::{Place, Sent};
use crate::subject::SUBJECT;
use crate::{exactly_once, on_embedded};

on_embedded!(
    letters_that_are_delayed_or_cut_off_are_written_once_in_the_end,
    letters_that_are_refused_for_good_are_written_in_the_end,
    commits_that_fail_are_made_again,
    fetches_that_fail_are_made_again,
    a_broker_that_dies_and_comes_back_costs_nothing,
    transactions_whose_end_nobody_hears_of_show_nothing_twice,
);

async fn letters_that_are_delayed_or_cut_off_are_written_once_in_the_end(place: Place) {
    let effects = [
        Effect::Delay(Duration::from_millis(800)),
        Effect::Fail(ResponseError::NotEnoughReplicas),
        Effect::Drop,
        Effect::Unanswered,
        Effect::Delay(Duration::from_millis(4_500)),
        Effect::Fail(ResponseError::NotLeaderOrFollower),
        Effect::Unanswered,
    ];
    let letters = letters_through(&place, &effects).await;
    let buried: BTreeSet<_> = letters.iter().map(crate::calls::origin).collect();
    assert_eq!(buried.len(), letters.len(), "one letter of each");
}

/// What the broker refuses for good makes librdkafka begin a new epoch, in which what it had sent before and
/// not heard of is sent again: a letter may then be there twice. None is missing, which is what is asked here.
async fn letters_that_are_refused_for_good_are_written_in_the_end(place: Place) {
    let effects = [
        Effect::Fail(ResponseError::UnknownServerError),
        Effect::Unanswered,
        Effect::Fail(ResponseError::TopicAuthorizationFailed),
    ];
    letters_through(&place, &effects).await;
}

/// The letters of a worker whose every second produce request meets one of these.
async fn letters_through(place: &Place, effects: &[Effect]) -> Vec<Stored> {
    place.topics(3).await;
    let (faults, dlq) = (place.broker().await.faults(), place.dlq());
    for (n, effect) in (1..).zip(effects) {
        let fault = Fault::next(ApiKey::Produce, *effect).nth(2 * n);
        faults.order(fault.mentioning(&dlq).from_client(SUBJECT));
    }
    let mut all = some_bad(place, 2_000, 10).await;
    let worker = place.worker().start();
    // More requests, until every fault has struck.
    while faults.waiting() > 0 {
        all.extend(some_bad(place, 100, 10).await);
        place.until_complete(&all, 3).await;
    }
    let verdict = place.judge(&all, 3).await;
    assert_eq!(verdict.calls.repeats(), []);
    worker.stop_well().await;
    verdict.letters
}

async fn commits_that_fail_are_made_again(place: Place) {
    place.topics(3).await;
    let faults = place.broker().await.faults();
    let effects = [
        Effect::Fail(ResponseError::CoordinatorLoadInProgress),
        Effect::Fail(ResponseError::CoordinatorNotAvailable),
        Effect::Fail(ResponseError::UnknownServerError),
        Effect::Drop,
        Effect::Unanswered,
    ];
    for effect in effects {
        faults.order(Fault::next(ApiKey::OffsetCommit, effect).from_client(SUBJECT));
    }
    let sent = some_bad(&place, 1_000, 50).await;
    let worker = place.worker().start();
    place.judge(&sent, 3).await;
    assert_eq!(faults.waiting(), 0, "every fault has struck");
    worker.stop_well().await;
    assert_eq!(place.calls().repeats(), []);
}

async fn fetches_that_fail_are_made_again(place: Place) {
    place.topics(3).await;
    let faults = place.broker().await.faults();
    let effects = [
        Effect::Fail(ResponseError::NotLeaderOrFollower),
        Effect::Fail(ResponseError::UnknownServerError),
        Effect::Drop,
        Effect::Delay(Duration::from_millis(500)),
        Effect::Fail(ResponseError::KafkaStorageError),
        Effect::Unanswered,
    ];
    for (n, effect) in (1..).zip(effects) {
        faults.order(Fault::next(ApiKey::Fetch, effect).nth(2 * n).from_client(SUBJECT));
    }
    let sent = some_bad(&place, 1_000, 50).await;
    let worker = place.worker().start();
    let verdict = place.judge(&sent, 3).await;
    assert_eq!(verdict.calls.repeats(), []);
    place.until_calls("every fault has struck", |_| (faults.waiting() == 0).then_some(())).await;
    let after = some_bad(&place, 100, 50).await;
    place.judge(&[sent, after].concat(), 3).await;
    worker.stop_well().await;
}

async fn a_broker_that_dies_and_comes_back_costs_nothing(place: Place) {
    place.topics(3).await;
    let mut sent = some_bad(&place, 1_500, 50).await;
    let worker = place.worker().start();
    for round in 1..=3 {
        let before = place.calls().starts();
        sent.extend(some_bad(&place, 300, 50).await);
        place.until_calls("at work", |calls| (calls.starts() > before + 50 * round).then_some(())).await;
        place.broker().await.restart().await.expect("the broker starts again");
    }
    place.judge(&sent, 3).await;
    worker.stop_well().await;
}

async fn transactions_whose_end_nobody_hears_of_show_nothing_twice(place: Place) {
    let output = exactly_once::output(&place).await;
    let faults = place.broker().await.faults();
    let strikes = [
        (ApiKey::EndTxn, Effect::Unanswered, 1),
        (ApiKey::TxnOffsetCommit, Effect::Fail(ResponseError::CoordinatorLoadInProgress), 1),
        (ApiKey::EndTxn, Effect::Drop, 1),
        (ApiKey::AddOffsetsToTxn, Effect::Unanswered, 1),
        (ApiKey::EndTxn, Effect::Fail(ResponseError::UnknownServerError), 1),
        (ApiKey::EndTxn, Effect::Fail(ResponseError::ProducerFenced), 1),
        (ApiKey::EndTxn, Effect::Delay(Duration::from_millis(500)), 1),
        (ApiKey::EndTxn, Effect::Unanswered, 3),
    ];
    for (n, (api, effect, times)) in (1..).zip(strikes) {
        faults.order(Fault::next(api, effect).nth(3 * n).times(times).from_client(SUBJECT));
    }
    let mut sent = crate::crashes::send_many(&place, 1_000, 20, "slow:5").await;
    let worker = exactly_once::worker(&place, &output, None);
    while faults.waiting() > 0 {
        sent.extend(crate::crashes::send_many(&place, 100, 20, "slow:5").await);
        place.until_complete(&sent, 3).await;
    }
    place.judge(&sent, 3).await;
    exactly_once::seen_once(&place, &output, &sent).await;
    worker.stop_well().await;
}

/// Records of 40 keys, every n-th of which cannot be handled.
async fn some_bad(place: &Place, records: u32, every: u32) -> Vec<Sent> {
    let value = |n: u32| if n % every == every / 2 { "permanent" } else { "slow:1" };
    place.send((0..records).map(|n| (format!("key-{}", n % 40), value(n)))).await
}
