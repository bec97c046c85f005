//! Says of letters that they are dealt with, as a job: on compacted letter topics with a tombstone each, so that
//! Kafka lets them go.

use std::collections::BTreeSet;

use redrive::{Clock, Settings};
use redrive_core::headers::Name;
use redrive_core::{Origin, Record, Topic};
use redrive_kafka::{Admin, Outgoing, Walk};

use super::Cut;
use crate::jobs::{Ending, Followed, JobId, Key, Mark, forget_when_possible, outgoing};
use crate::replay::{Error, Held, Wanted, freeze};

/// Letters in one transaction.
const LETTERS: usize = 5_000;
/// Bytes that are read at once to find keys.
const BYTES: usize = 4 << 20;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The job.
    pub job: JobId,
    /// Letters that are dealt with.
    pub letters: u64,
    /// Those of them that have a tombstone now: Kafka removes them when it compacts the topic.
    pub tombstones: u64,
    /// Those of them in compacted topics that have none: they are not filed under their origins, and it would remove
    /// others with them.
    pub without: u64,
    /// Those that a replay is about to send, which were left alone.
    pub held: u64,
}

/// Deals with these letters, by where they lie. None if a replay is about to send all of them.
pub async fn carry_out(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    letters: &[Origin],
) -> Result<Option<Done>, Error> {
    let followed = Followed::prepare(settings).await?;
    let held = followed.state.held(letters, None);
    let is_free = |letter: &&Origin| held.get(*letter).is_none_or(|hold| hold.sent);
    let mut free: Vec<Origin> = letters.iter().filter(is_free).cloned().collect();
    free.sort_unstable();
    free.dedup();
    if free.is_empty() {
        return Ok(None);
    }
    let job = freeze(settings, clock, wanted, &free, followed).await?;
    let (upto, tombstones, without) = mark(settings, clock, &job, &wanted.by, (&free, 0)).await?;
    job.grip.end(clock, Ending::Finished, &wanted.by, upto, Vec::new()).await?;
    forget_when_possible(settings, &job.followed.state, clock.now().wall).await;
    let held = letters.len() as u64 - upto.min(letters.len() as u64);
    Ok(Some(Done { job: job.id().clone(), letters: upto, tombstones, without, held }))
}

/// Says of the letters of a job from a number on that they are dealt with; how many are now, and how many got a
/// tombstone, or none though their topic is compacted.
pub(super) async fn mark(
    settings: &Settings,
    clock: &Clock,
    job: &Held,
    by: &str,
    (letters, from): (&[Origin], u64),
) -> Result<(u64, u64, u64), Error> {
    let compacted = compacted(settings, letters).await?;
    let (walk, mut upto, mut tombstones, mut without) = (Walk::new(settings)?, from, 0_u64, 0_u64);
    let rest = letters.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
    for batch in rest.chunks(LETTERS) {
        let mut records = Vec::new();
        for run in batch.chunk_by(|one, other| one.topic == other.topic && one.partition == other.partition) {
            if run.first().is_some_and(|first| compacted.contains(&first.topic)) {
                records.extend(read(&walk, run).await?.iter().filter_map(tombstone));
            }
        }
        tombstones += records.len() as u64;
        let in_compacted = batch.iter().filter(|letter| compacted.contains(&letter.topic)).count() as u64;
        without += in_compacted.saturating_sub(records.len() as u64);
        upto += batch.len() as u64;
        let mark = Mark { upto, at: clock.now().wall.millis(), by: by.to_owned(), ..Mark::default() };
        records.push(outgoing(&Key::Mark(job.id().clone()), &mark));
        job.grip.write(records).await?;
    }
    Ok((upto, tombstones, without))
}

/// Deletes what a cut says; where the partition begins then.
pub async fn delete_below(settings: &Settings, cut: &Cut) -> Result<i64, Error> {
    Ok(Admin::new(settings)?.delete_records(&cut.below).await?)
}

/// Those of the letters' topics that are compacted.
pub async fn compacted(settings: &Settings, letters: &[Origin]) -> Result<BTreeSet<Topic>, Error> {
    let topics: BTreeSet<Topic> = letters.iter().map(|letter| letter.topic.clone()).collect();
    let topics: Vec<Topic> = topics.into_iter().collect();
    let found = Admin::new(settings)?.describe(&topics).await?;
    let compacted = found.into_iter().filter(|(_, state)| redrive::topics::is_compacted(state));
    Ok(compacted.map(|(topic, _)| topic).collect())
}

/// How many of these letters a replay is about to send.
pub async fn about_to_be_sent(settings: &Settings, letters: &[Origin]) -> Result<u64, Error> {
    let held = Followed::read(settings).await?.state.held(letters, None);
    Ok(held.values().filter(|hold| !hold.sent).count() as u64)
}

pub(super) async fn read(walk: &Walk, run: &[Origin]) -> Result<Vec<Record>, Error> {
    let (mut records, mut next) = (Vec::with_capacity(run.len()), 0);
    while let Some(first) = run.get(next) {
        let offsets = run[next..].iter().map(|letter| letter.offset).collect();
        let walked = walk.bring(first.clone(), offsets, BYTES).await?;
        // Only the keys are wanted.
        records.extend(walked.records.into_iter().map(|record| Record { value: None, ..record }));
        next += walked.asked.max(1);
    }
    Ok(records)
}

/// What removes a letter, if it is filed under its origin: by any other key, letters would go that are not meant.
pub(super) fn tombstone(letter: &Record) -> Option<Outgoing> {
    let key = letter.key.clone()?;
    let origin = letter.headers.last(Name::Origin.as_str())?;
    (key == *origin).then(|| Outgoing::to(letter.at.topic.clone()).partition(letter.at.partition).key(key))
}
