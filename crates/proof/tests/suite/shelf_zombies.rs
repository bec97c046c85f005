//! A worker that sleeps through its session and wakes up as a stranger, with a shelf that is another's now.

use std::time::Duration;

use redrive::Clock;

use crate::exactly_once::{output, seen_once};
use crate::on_both;
use crate::place::{Place, Sent};
use crate::subject::{Command, Subject};

on_both!(
    one_that_slept_costs_repeats_and_nothing_else,
    one_that_slept_shows_nothing_twice_of_what_waited_under_exactly_once,
);

async fn one_that_slept_costs_repeats_and_nothing_else(place: Place) {
    place.topics(3).await;
    let sent = sleep_through(&place, || worker(&place)).await;
    let letters = place.letters(3).await;
    place.calls().judge(&sent, &letters);
    place.calls().judge_times();
}

async fn one_that_slept_shows_nothing_twice_of_what_waited_under_exactly_once(place: Place) {
    let output = output(&place).await;
    let sent =
        sleep_through(&place, || worker(&place).flag("--exactly-once").with("--output", &output)).await;
    place.calls().judge(&sent, &place.letters(3).await);
    place.calls().judge_times();
    // Whatever it still had on its way has arrived by now.
    Clock::system().sleep(Duration::from_secs(1)).await;
    seen_once(&place, &output, &sent).await;
}

fn worker(place: &Place) -> Command<'_> {
    let command = place.worker().with("--surge-guard", "off").with("--concurrency", "32");
    command.with("--retry", "not-ready=list(50ms x100)")
}

/// Freezes one amid its work, with records that wait; another does the rest, and the first wakes up.
async fn sleep_through<'a>(place: &'a Place, worker: impl Fn() -> Command<'a>) -> Vec<Sent> {
    let mut sent = some_later(place, 0..2_000).await;
    let sleeper: Subject = worker().start();
    place.until_calls("some wait", |calls| (calls.later() > 150).then_some(())).await;
    sleeper.freeze();
    let successor = worker().start();
    place.until_done(sent.len()).await;
    place.until_complete(&sent, 3).await;
    sleeper.thaw();
    // It must find out that it is no longer a member, and then join again.
    let id = sleeper.id();
    let lost = |calls: &crate::calls::Calls| (!calls.events(Some(id), &["lost"]).is_empty()).then_some(());
    place.until_calls("it knows what it lost", lost).await;
    sent.extend(some_later(place, 2_000..2_400).await);
    place.until_done(sent.len()).await;
    place.until_complete(&sent, 3).await;
    sleeper.stop_well().await;
    successor.stop_well().await;
    sent
}

async fn some_later(place: &Place, numbers: std::ops::Range<u32>) -> Vec<Sent> {
    let value = |n: u32| match n % 6 {
        0 => format!("later:1:{}", 20 + n % 400),
        3 => format!("later:2:{}", 5 + n % 150),
        _ => "slow:1".to_owned(),
    };
    place.send(numbers.map(|n| (format!("key-{}", n % 200), value(n)))).await
}
