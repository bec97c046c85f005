//! Erases letters, as a job: what is said of them, tombstones, what is deleted; where others lie before them, these
//! are written again behind all others first.
//!
//! A crash loses nothing. That a letter was written again, and where it is now, is in `redrive.state` in the same
//! transaction as the letter itself; nothing is deleted before all that is kept was. Whoever goes on begins behind
//! what was moved.

use std::collections::BTreeSet;

use redrive::{Clock, Settings};
use redrive_core::{Origin, Record, Topic};
use redrive_kafka::{Admin, Outgoing, Transacting, TransactionFailed, Transactions, Walk};
use tracing::{info, warn};

use super::Erasure;
use super::carry_out::{compacted, mark, read, tombstone};
use crate::jobs::{
    Ending, Followed, Job, JobId, Key, Kind, Moved, Since, State, TopicIds, forget_when_possible, packed,
};
use crate::replay::{Deleting, Error, Held, Wanted, freeze_deleting, take_over};

/// Offsets that are looked at, and bytes that are read at once: what goes in one transaction.
const OFFSETS: i64 = 5_000;
const BYTES: usize = 8 << 20;

/// How often a transaction is run again that the broker undid.
const TRIES: u32 = 5;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// The job.
    pub job: JobId,
    /// Letters that have a tombstone now.
    pub tombstones: u64,
    /// Letters that were written again, and are kept.
    pub moved: u64,
    /// Below these nothing was deleted yet, as another job has to do with letters there: this one is not over.
    pub left: Vec<(Origin, JobId)>,
}

/// Erases letters. `known` are the letters that are kept: nothing is deleted before these that was not written again.
/// None if a replay has just begun that is about to send some of them: then nothing is done.
pub async fn erase(
    settings: &Settings,
    clock: &Clock,
    wanted: &Wanted,
    erasure: &Erasure,
    known: &[Origin],
) -> Result<Option<Erased>, Error> {
    let followed = Followed::prepare(settings).await?;
    let letters = erasure.erased();
    if followed.state.held(&letters, None).values().any(|hold| !hold.sent) {
        return Ok(None);
    }
    let cuts = erasure.purge.cuts.iter().map(|cut| cut.below.clone()).collect();
    let rewrites = erasure.rewrites.iter().map(|rewrite| rewrite.below.clone()).collect();
    let deleting = Deleting { cuts, rewrites };
    let job = freeze_deleting((settings, clock), wanted, &letters, deleting, followed).await?;
    let order = job.job().map(|job| job.order);
    if job.followed.state.held(&letters, order).values().any(|hold| !hold.sent) {
        job.give_up(clock, &wanted.by).await?;
        return Ok(None);
    }
    Ok(Some(go_on(settings, clock, job, &wanted.by, known).await?))
}

/// Letters that were erased by jobs that were asked for in these words, and that Kafka has all the same: not those
/// that got a tombstone.
pub async fn still_there(settings: &Settings, query: &str) -> Result<Vec<Origin>, Error> {
    let erased = Followed::read(settings).await?.state.erased_by(query);
    let topics: BTreeSet<Topic> = erased.iter().map(|letter| letter.topic.clone()).collect();
    let topics: Vec<Topic> = topics.into_iter().collect();
    let found = Admin::new(settings)?.outline(&topics).await?;
    let is_there =
        |letter: &Origin| found.get(&letter.topic).is_some_and(|topic| letter.partition < topic.partitions);
    let erased: Vec<Origin> = erased.into_iter().filter(is_there).collect();
    let compacted = compacted(settings, &erased).await?;
    let (walk, mut there) = (Walk::new(settings)?, Vec::new());
    for run in erased.chunk_by(|one, other| one.topic == other.topic && one.partition == other.partition) {
        let is_marked = |record: &Record| compacted.contains(&record.at.topic) && tombstone(record).is_some();
        let records = read(&walk, run).await?.into_iter().filter(|record| !is_marked(record));
        there.extend(records.map(|record| record.at));
    }
    Ok(there)
}

/// The erasures that were begun and are not over.
#[must_use]
pub fn unfinished(state: &State) -> Vec<&Job> {
    let is_open = |job: &&Job| job.begun.kind == Kind::Erase && job.end.is_none();
    state.jobs().into_iter().filter(is_open).collect()
}

/// Goes on with an erasure, whoever began it.
pub async fn finish(
    settings: &Settings,
    clock: &Clock,
    id: &JobId,
    by: &str,
    known: &[Origin],
) -> Result<Erased, Error> {
    let job = take_over(settings, clock, id, None, false).await?;
    go_on(settings, clock, job, by, known).await
}

async fn go_on(
    settings: &Settings,
    clock: &Clock,
    mut job: Held,
    by: &str,
    known: &[Origin],
) -> Result<Erased, Error> {
    let Some(told) = job.job().cloned() else { return Err(Error::NoJob(job.id().to_string())) };
    let letters: Vec<Origin> = told.selection.iter().collect();
    let (upto, tombstones, _) = mark(settings, clock, &job, by, (&letters, told.mark.upto)).await?;
    let mut erased = Erased { job: told.id.clone(), tombstones, moved: 0, left: Vec::new() };
    let mut rewriting = Rewriting::new(settings, &told, &mut job).await?;
    for below in places(&told.begun.rewrites) {
        if rewriting.is_gone(&below).await? {
            continue;
        }
        if let Some(other) = rewriting.job.followed.state.busy_below(&below, told.order) {
            erased.left.push((below, other.id.clone()));
            continue;
        }
        erased.moved += rewriting.keep(&below, known).await?;
        rewriting.admin.delete_records(&below).await?;
    }
    for below in places(&told.begun.cuts) {
        if !rewriting.is_gone(&below).await? {
            rewriting.admin.delete_records(&below).await?;
        }
    }
    if erased.left.is_empty() {
        job.grip.end(clock, Ending::Finished, by, upto, Vec::new()).await?;
        forget_when_possible(settings, &job.followed.state, clock.now().wall).await;
    }
    Ok(erased)
}

fn places(texts: &[String]) -> Vec<Origin> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

struct Rewriting<'a> {
    told: &'a Job,
    job: &'a mut Held,
    admin: Admin,
    walk: Walk,
    /// The number of the next record that tells of letters that were moved.
    next: u32,
}

impl<'a> Rewriting<'a> {
    async fn new(settings: &Settings, told: &'a Job, job: &'a mut Held) -> Result<Self, Error> {
        let (admin, walk) = (Admin::new(settings)?, Walk::new(settings)?);
        if !told.begun.rewrites.is_empty() {
            // What a topic took once is to go in again, however large.
            let topics: BTreeSet<_> = places(&told.begun.rewrites).into_iter().map(|at| at.topic).collect();
            let topics: Vec<_> = topics.into_iter().collect();
            let sizes = admin.describe(&topics).await?.into_values().filter_map(|topic| {
                topic.settings.get("max.message.bytes").and_then(|setting| setting.value.parse().ok())
            });
            let transacting = Transacting { max_message_bytes: sizes.max(), ..Transacting::default() };
            let id = told.id.transactional_id();
            job.grip.transactions = Transactions::new(settings, &id, &transacting).await?;
        }
        let next = told.moved.last_key_value().map_or(0, |(last, _)| last + 1);
        Ok(Self { told, job, admin, walk, next })
    }

    /// Whether the topic is gone, or is another now: there is nothing to delete.
    async fn is_gone(&self, below: &Origin) -> Result<bool, Error> {
        let now = TopicIds::ask(&self.admin, std::slice::from_ref(&below.topic)).await?;
        Ok(now.since(&self.told.begun, &below.topic) != Since::Same)
    }

    /// Writes all that is kept below an offset again, behind everything else; how many letters that were.
    async fn keep(&mut self, below: &Origin, known: &[Origin]) -> Result<u64, Error> {
        let Origin { topic, partition, offset: end } = below;
        let state = &self.job.followed.state;
        let (erased, moves) = (state.erased_in(topic, *partition, &self.told.id), state.moves());
        let (begin, _) = self.bounds(below).await?;
        let mut kept: BTreeSet<i64> = BTreeSet::new();
        let mut at = begin;
        while at < *end {
            let offsets: Vec<i64> = (at..(at + OFFSETS).min(*end)).collect();
            let walked = self.walk.bring(Origin { offset: at, ..below.clone() }, offsets, BYTES).await?;
            let stays = |record: &Record| !erased.contains(&record.at.offset) && !moves.has_left(&record.at);
            let records: Vec<Record> = walked.records.into_iter().filter(stays).collect();
            kept.extend(records.iter().map(|record| record.at.offset));
            self.write_again(below, records).await?;
            at += i64::try_from(walked.asked.max(1)).unwrap_or(i64::MAX);
        }
        // What lies there and was not read would be lost.
        let (begin, _) = self.bounds(below).await?;
        let is_safe = |letter: &&Origin| {
            let at = letter.offset;
            at < begin || kept.contains(&at) || erased.contains(&at) || moves.has_left(letter)
        };
        let lost = known.iter().filter(|letter| is_before(letter, below)).filter(|one| !is_safe(one)).count();
        if lost > 0 {
            return Err(Error::NotKept { letters: lost, below: below.clone() });
        }
        info!(job = %self.told.id, %below, letters = kept.len(), "letters were written again behind the others");
        Ok(kept.len() as u64)
    }

    async fn bounds(&self, at: &Origin) -> Result<(i64, i64), Error> {
        let count = at.partition.saturating_add(1);
        let bounds = self.admin.bounds(&at.topic, count).await?;
        Ok(bounds.last().copied().unwrap_or_default())
    }

    /// Writes records again, and where each is now: in one transaction.
    async fn write_again(&mut self, below: &Origin, records: Vec<Record>) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let key = Key::Moved(self.told.id.clone(), self.next);
        self.next += 1;
        for tried in 1.. {
            let from: Vec<i64> = records.iter().map(|record| record.at.offset).collect();
            let (key, topic, partition) = (key.clone(), below.topic.clone(), below.partition);
            let tell = move |to: &[i64]| {
                let pairs: Vec<(i64, i64)> = from.into_iter().zip(to.iter().copied()).collect();
                Moved::of(&topic, partition, &pairs)
                    .write()
                    .map(|bytes| packed(&key, bytes))
                    .into_iter()
                    .collect()
            };
            let again = records.iter().map(same).collect();
            match self.job.grip.transactions.publish_and_tell(again, tell).await {
                Ok(()) => break,
                Err(TransactionFailed::Aborted(error)) if tried < TRIES => {
                    warn!(job = %self.told.id, %error, "a transaction was undone; it is run again");
                }
                Err(source) => return Err(Error::Write { job: self.told.id.clone(), source }),
            }
        }
        Ok(())
    }
}

fn is_before(letter: &Origin, below: &Origin) -> bool {
    letter.topic == below.topic && letter.partition == below.partition && letter.offset < below.offset
}

/// The record as it is, for the same partition.
fn same(record: &Record) -> Outgoing {
    Outgoing {
        topic: record.at.topic.clone(),
        partition: Some(record.at.partition),
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.clone(),
    }
}
