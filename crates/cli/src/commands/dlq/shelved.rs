//! What waits on shelves under a key, and is to become letters that are erased.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use redrive::delayed::{Answer, Deed, Verdict, View, Wait, Wish};
use redrive::{Clock, Settings};
use redrive_core::{Origin, Topic};
use redrive_kafka::Admin;
use redrive_letters::journal;
use redrive_letters::replay::Candidate;

use super::place::Place;
use crate::exit::Exit;
use crate::{cluster, human, screen};

/// How long to wait for workers.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// How often it is looked whether they have made letters of what they cancelled.
const AGAIN: Duration = Duration::from_millis(100);

/// As many records are named.
const NAMED: usize = 5;

/// Where records that wait were consumed, by shelf.
pub(super) type Waiting = BTreeMap<Topic, Vec<Origin>>;

/// What waits under these keys.
pub(super) async fn waiting(settings: &Settings, place: &Place, keys: &[Vec<u8>]) -> Result<Waiting, Exit> {
    let failed = |error: redrive_kafka::Error| cluster::failed(&error, &place.file.name());
    let topics = Admin::new(settings).map_err(failed)?.topics().await.map_err(failed)?;
    let mut waiting = BTreeMap::new();
    for shelf in topics.into_iter().filter(|topic| topic.as_str().ends_with(".shelf")) {
        // A shelf that cannot be read is told where its records are looked at.
        let Some(view) = view(settings, &shelf, keys).await else { continue };
        let records: Vec<Origin> = view.records().into_iter().map(|record| record.origin).collect();
        if !records.is_empty() {
            waiting.insert(shelf, records);
        }
    }
    Ok(waiting)
}

async fn view(settings: &Settings, shelf: &Topic, keys: &[Vec<u8>]) -> Option<View> {
    let keys = keys.to_vec();
    let keep = Arc::new(move |wait: &Wait| {
        wait.record.key.as_deref().is_some_and(|key| keys.iter().any(|one| one == key))
    });
    View::read(settings, shelf.clone(), &[], keep, |_| {}).await.ok()
}

/// How many records wait.
pub(super) fn count(waiting: &Waiting) -> u64 {
    waiting.values().map(|records| records.len() as u64).sum()
}

/// Says what would become of them.
pub(super) fn tell(waiting: &Waiting) {
    for (shelf, records) in waiting {
        let count = human::count(records.len() as u64, "record waits", "records wait");
        screen::say(&format!(
            "{count} on {shelf}: cancelled, they would become letters and be erased as such: {}",
            named(records)
        ));
    }
}

fn named(records: &[Origin]) -> String {
    let named: Vec<String> = records.iter().take(NAMED).map(ToString::to_string).collect();
    let more = records.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Has their workers make letters of them; whether nothing of the keys waits any more.
pub(super) async fn cancel(
    settings: &Settings,
    place: &Place,
    keys: &[Vec<u8>],
    waiting: &Waiting,
    reason: &str,
) -> Result<bool, Exit> {
    let (clock, by) = (Clock::system(), journal::writer());
    let mut cancelled = BTreeSet::new();
    for (shelf, records) in waiting {
        let answers = order(settings, shelf, keys, records, (&by, reason), &clock).await?;
        let are_cancelled =
            answers.iter().filter(|(_, answer)| matches!(answer, Answer::Said(Verdict::Cancelled)));
        cancelled.extend(are_cancelled.map(|(origin, _)| (shelf.clone(), origin.clone())));
        if answers.values().any(|answer| matches!(answer, Answer::Queued | Answer::Unanswered)) {
            screen::say(&format!(
                "no worker has answered for {shelf}: what waits there becomes letters when one does\nhelp: erase the key again when a worker has run"
            ));
        }
    }
    let left = left(settings, place, keys, &cancelled, &clock).await?;
    for (shelf, records) in &left {
        let count =
            human::count(records.len() as u64, "record of that key waits", "records of that key wait");
        screen::say(&format!("{count} on {shelf} until a worker handles or cancels it: {}", named(records)));
    }
    Ok(left.is_empty())
}

/// Orders that these records of a shelf are cancelled; the last answer of each. One that is with its handler just then
/// is ordered again when it waits again.
async fn order(
    settings: &Settings,
    shelf: &Topic,
    keys: &[Vec<u8>],
    records: &[Origin],
    from: (&str, &str),
    clock: &Clock,
) -> Result<BTreeMap<Origin, Answer>, Exit> {
    let deadline = clock.now().steady.saturating_add(WAIT);
    let (mut answers, mut records) = (BTreeMap::new(), records.to_vec());
    while let Some(mut view) = view(settings, shelf, keys).await {
        let wishes: Vec<Wish> =
            records.iter().map(|origin| Wish { origin: origin.clone(), deed: Deed::Cancel }).collect();
        let said = view.give(&wishes, from, WAIT, clock).await.map_err(|error| {
            screen::say(&format!("error: {}", screen::told(&error)));
            Exit::Failed
        })?;
        let is_late = |answer: &Answer| matches!(answer, Answer::Said(Verdict::TooLate));
        let late = records.iter().zip(&said).filter(|(_, answer)| is_late(answer));
        let late: Vec<Origin> = late.map(|(origin, _)| origin.clone()).collect();
        answers.extend(records.into_iter().zip(said));
        if late.is_empty() || clock.now().steady >= deadline {
            break;
        }
        records = late;
        clock.sleep(AGAIN).await;
    }
    Ok(answers)
}

/// What waits still when workers have made letters of what they cancelled: they do so after they have said it.
async fn left(
    settings: &Settings,
    place: &Place,
    keys: &[Vec<u8>],
    cancelled: &BTreeSet<(Topic, Origin)>,
    clock: &Clock,
) -> Result<Waiting, Exit> {
    let deadline = clock.now().steady.saturating_add(WAIT);
    loop {
        let left = waiting(settings, place, keys).await?;
        let is_coming = cancelled
            .iter()
            .any(|(shelf, origin)| left.get(shelf).is_some_and(|records| records.contains(origin)));
        if !is_coming || clock.now().steady >= deadline {
            return Ok(left);
        }
        clock.sleep(AGAIN).await;
    }
}

/// Whether those that no longer wait are among the letters that are read here, or were handled.
pub(super) fn are_letters(waiting: &Waiting, letters: &[Candidate]) -> bool {
    let known: BTreeSet<&Origin> = letters.iter().filter_map(|letter| letter.origin.as_ref()).collect();
    let missing: Vec<Origin> =
        waiting.values().flatten().filter(|origin| !known.contains(origin)).cloned().collect();
    if !missing.is_empty() {
        screen::say(&format!(
            "{} waited, and no letter of it is found here: it was handled meanwhile, still waits, or its letter is in a topic that is not read here (--letters TOPIC)",
            named(&missing)
        ));
    }
    missing.is_empty()
}
