//! Exactly once: what a handler publishes is seen once by whoever reads what is committed.

use std::time::Duration;

use redrive::Clock;
use redrive_testkit::guarantees::Once;

use crate::crashes::{Chance, send_many};
use crate::on_both;
use crate::place::{PATIENCE, Place, Sent};
use crate::subject::Subject;

on_both!(
    killed_again_and_again_its_output_is_seen_once,
    one_that_slept_through_its_session_adds_nothing_to_what_its_successor_wrote,
);

async fn killed_again_and_again_its_output_is_seen_once(place: Place) {
    const ROUNDS: u64 = 6;
    let output = output(&place).await;
    let sent = send_many(&place, 3_000, 20, "slow:1").await;
    let mut chance = Chance::new();
    for round in 0..ROUNDS {
        let before = place.calls().starts();
        let worker = worker(&place, &output, Some("one"));
        let enough = before + chance.below(800) as usize;
        place.until_progress(&format!("round {round}"), enough, sent.len()).await;
        worker.kill();
    }
    let worker = worker(&place, &output, Some("one"));
    place.judge(&sent, 3).await;
    worker.stop_well().await;
    seen_once(&place, &output, &sent).await;
}

async fn one_that_slept_through_its_session_adds_nothing_to_what_its_successor_wrote(place: Place) {
    let output = output(&place).await;
    let sent = send_many(&place, 3_000, 20, "slow:1").await;
    let sleeper = worker(&place, &output, None);
    place.until_calls("at work", |calls| (calls.starts() > 200).then_some(())).await;
    sleeper.freeze();
    let successor = worker(&place, &output, None);
    place.until_complete(&sent, 3).await;
    sleeper.thaw();
    // It must find out that it is no longer a member, and then join again.
    let id = sleeper.id();
    let lost = |calls: &crate::calls::Calls| (!calls.events(Some(id), &["lost"]).is_empty()).then_some(());
    place.until_calls("it knows what it lost", lost).await;
    let more = send_many(&place, 300, 20, "slow:1").await;
    let sent = [sent, more].concat();
    place.judge(&sent, 3).await;
    // Whatever it still had on its way has arrived by now.
    Clock::system().sleep(Duration::from_secs(1)).await;
    seen_once(&place, &output, &sent).await;
    sleeper.stop_well().await;
    successor.stop_well().await;
}

pub(crate) async fn output(place: &Place) -> String {
    place.topics(3).await;
    let output = format!("{}.output", place.topic);
    place.make(&output, 1, &[]).await;
    output
}

pub(crate) fn worker(place: &Place, output: &str, name: Option<&str>) -> Subject {
    let command = place.worker().flag("--exactly-once").with("--output", output);
    match name {
        Some(name) => command.property("group.instance.id", name).start(),
        None => command.start(),
    }
}

/// The transaction of one that was killed is in the way of readers until the broker aborts it.
pub(crate) async fn seen_once(place: &Place, output: &str, sent: &[Sent]) {
    let clock = Clock::system();
    loop {
        let mut once = Once::default();
        sent.iter().for_each(|one| once.expect(format!("{}/{}/{}", place.topic, one.partition, one.offset)));
        for record in place.stored(output, 1).await {
            once.seen(record.value.as_deref().unwrap_or("nothing"));
        }
        if once.is_complete() || clock.now().steady > PATIENCE {
            return once.check();
        }
        clock.sleep(Duration::from_millis(200)).await;
    }
}
