//! Killed and moved at random while a third of the records fail, most of them to wait on the shelf.
//!
//! `REDRIVE_PROOF_RECORDS` makes more or less of it.

use std::collections::BTreeSet;

use redrive_testkit::guarantees::Spot;

use crate::calls::Calls;
use crate::crashes::Chance;
use crate::exactly_once::seen_once;
use crate::on_both;
use crate::place::{Place, Sent};
use crate::subject::{Command, Subject};

const PARTITIONS: i32 = 6;
const STEPS: usize = 12;

on_both!(
    killed_and_moved_at_random_nothing_is_lost_or_early_or_out_of_order,
    killed_and_moved_at_random_exactly_once_shows_everything_once,
);

async fn killed_and_moved_at_random_nothing_is_lost_or_early_or_out_of_order(place: Place) {
    place.topics(PARTITIONS).await;
    let worker = || worker(&place);
    let sent = through(&place, records(50_000), worker).await;
    judge(&place, &sent).await;
}

async fn killed_and_moved_at_random_exactly_once_shows_everything_once(place: Place) {
    place.topics(PARTITIONS).await;
    let output = format!("{}.output", place.topic);
    place.make(&output, 1, &[]).await;
    let worker = || worker(&place).flag("--exactly-once").with("--output", &output);
    let sent = through(&place, records(20_000), worker).await;
    judge(&place, &sent).await;
    let good: Vec<_> =
        sent.iter().filter(|(_, value)| !is_bad(value)).map(|(sent, _)| sent.clone()).collect();
    seen_once(&place, &output, &good).await;
    let letters = place.letters(PARTITIONS).await;
    let buried: BTreeSet<Spot> = letters.iter().map(crate::calls::origin).collect();
    assert_eq!(buried.len(), letters.len(), "one letter of each");
}

fn records(usual: usize) -> usize {
    let wanted = std::env::var("REDRIVE_PROOF_RECORDS").ok();
    wanted.map_or(usual, |wanted| wanted.parse().expect("a number of records"))
}

fn worker(place: &Place) -> Command<'_> {
    let command = place.worker().with("--concurrency", "64").with("--surge-guard", "off");
    command.with("--retry", "not-ready=list(50ms x100)")
}

/// Sends so many records while two workers are killed and come back, and a third comes and goes; ends when
/// all is done and nobody runs.
async fn through<'a>(
    place: &'a Place,
    records: usize,
    worker: impl Fn() -> Command<'a>,
) -> Vec<(Sent, String)> {
    // Those with a name of their own take their partitions back at once.
    let named = |name: &str| worker().property("group.instance.id", name).start();
    let names = ["one", "two"];
    let mut stay: Vec<Subject> = names.iter().map(|name| named(name)).collect();
    let mut guest: Option<Subject> = None;
    let (mut chance, mut sent) = (Chance::new(), Vec::new());
    let values: Vec<_> = (0..records as u32).map(value).collect();
    let mut keys =
        values.iter().enumerate().map(|(n, value)| (format!("key-{}", n % (records / 25)), value.clone()));
    for step in 0..STEPS {
        let more: Vec<_> = keys.by_ref().take(records.div_ceil(STEPS)).collect();
        let values: Vec<_> = more.iter().map(|(_, value)| value.clone()).collect();
        sent.extend(place.send(more).await.into_iter().zip(values));
        let enough = place.calls().starts() + chance.below(records as u64 / 8) as usize;
        place.until_progress(&format!("step {step}"), enough, sent.len()).await;
        match (chance.below(4), guest.take()) {
            (0 | 1, left) => {
                let which = chance.below(2) as usize;
                stay.remove(which).kill();
                stay.insert(which, named(names[which]));
                guest = left;
            }
            (_, None) => guest = Some(worker().start()),
            (2, Some(guest)) => {
                // Before that it has no ear for a signal.
                let joined =
                    |calls: &Calls| (!calls.events(Some(guest.id()), &["assigned"]).is_empty()).then_some(());
                place.until_calls("the guest has joined", joined).await;
                guest.stop_well().await;
            }
            (_, Some(guest)) => guest.kill(),
        }
    }
    place.until_done(sent.iter().filter(|(_, value)| !is_bad(value)).count()).await;
    let all: Vec<_> = sent.iter().map(|(sent, _)| sent.clone()).collect();
    place.until_complete(&all, PARTITIONS).await;
    for worker in stay.into_iter().chain(guest) {
        worker.stop_well().await;
    }
    sent
}

async fn judge(place: &Place, sent: &[(Sent, String)]) {
    let (calls, letters) = (place.calls(), place.letters(PARTITIONS).await);
    let all: Vec<_> = sent.iter().map(|(sent, _)| sent.clone()).collect();
    calls.judge_all(&all, &letters);
    let bad = sent.iter().filter(|(_, value)| is_bad(value)).map(|(sent, _)| (sent.partition, sent.offset));
    let buried: BTreeSet<Spot> = letters.iter().map(crate::calls::origin).collect();
    assert_eq!(buried, bad.collect(), "each of the bad records, and no other, is a letter");
    println!(
        "{} records, {} calls, {} of them after a wait, {} records repeated",
        sent.len(),
        calls.starts(),
        calls.judge_times(),
        calls.repeats().len(),
    );
}

fn is_bad(value: &str) -> bool {
    value.starts_with("permanent") || value.starts_with("poison")
}

/// Three of ten fail: most are not ready once or more, for 10 ms to 4 s, some in place, some for good.
fn value(n: u32) -> String {
    let chance = n.wrapping_mul(2_654_435_761) >> 12;
    let wait = match chance / 100 % 10 {
        0 => 2_000 + chance % 2_000,
        1..5 => 200 + chance % 600,
        _ => 10 + chance % 100,
    };
    match chance % 100 {
        0..3 => "permanent".to_owned(),
        3..7 => "transient:2".to_owned(),
        7..9 => format!("poison:1:{wait}"),
        9..26 => format!("later:1:{wait}"),
        26..30 => format!("later:3:{wait}"),
        30..60 => "slow:1".to_owned(),
        _ => "ok".to_owned(),
    }
}
