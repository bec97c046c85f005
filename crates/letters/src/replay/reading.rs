//! Reads the letters of a job back in the order of sending: what lies close together in one go, whatever the
//! order, and never more than a budget of bytes at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use redrive::Clock;
use redrive_core::{Origin, Record, Timestamp, Topic};
use redrive_kafka::{Admin, Outgoing, Picker, Settings, Walk};
use tokio::sync::mpsc;

use super::Error;
use super::before::Before;
use super::destinations::Destinations;
use super::prepare::{Known, Sending, outgoing};
use super::route::{Candidate, Why};
use crate::jobs::{Begun, Job, JobId, Key, Moves, Outcome, Since, TopicIds, What, outgoing as state_record};

/// The bytes of letters that are read at once.
const BUDGET: usize = 16 << 20;

/// The letters that are read at once, as their sizes allow.
const FEWEST: usize = 4;
const MOST: usize = 10_000;

/// Handfuls that wait to be sent.
const AHEAD: usize = 2;

/// A letter, ready to be sent; or what tells that it is not, and why.
pub(super) struct Prepared {
    pub(super) record: Outgoing,
    pub(super) size: usize,
}

/// The letters of a job from a number on, a handful at a time.
pub(super) type Handfuls = mpsc::Receiver<Result<Vec<Prepared>, Error>>;

struct Reading {
    job: JobId,
    begun: Begun,
    admin: Admin,
    by: String,
    walk: Walk,
    originals: Picker,
    destinations: Destinations,
    before: Before,
    clock: Clock,
    /// Letters that were asked for and did not fit.
    back: VecDeque<Origin>,
    window: usize,
    number: u64,
}

/// Reads the letters from this number on, ahead of whoever sends them.
pub(super) fn read(
    (settings, clock): (&Settings, &Clock),
    (job, by): (&Job, &str),
    (from, moves): (u64, Moves),
    (destinations, before): (Destinations, Before),
) -> Result<Handfuls, Error> {
    let mut reading = Reading {
        job: job.id.clone(),
        begun: job.begun.clone(),
        admin: Admin::new(settings)?,
        by: by.to_owned(),
        walk: Walk::new(settings)?,
        originals: Picker::of_consumed(settings)?,
        destinations,
        before,
        clock: clock.clone(),
        back: VecDeque::new(),
        window: 1_000,
        number: from,
    };
    let selection = job.selection.clone();
    let (to, handfuls) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let letters = selection.iter().skip(usize::try_from(from).unwrap_or(usize::MAX));
        let mut letters = letters.map(|letter| moves.now(letter));
        loop {
            let handful = reading.handful(&mut letters).await;
            let is_last = handful.as_ref().map_or(true, Vec::is_empty);
            if to.send(handful).await.is_err() || is_last {
                return;
            }
        }
    });
    Ok(handfuls)
}

impl Reading {
    /// The next letters, ready to be sent; none at the end.
    async fn handful(&mut self, letters: &mut impl Iterator<Item = Origin>) -> Result<Vec<Prepared>, Error> {
        while self.back.len() < self.window {
            let Some(letter) = letters.next() else { break };
            self.back.push_back(letter);
        }
        let window = self.back.len().min(self.window);
        let wanted: Vec<Origin> = self.back.iter().take(window).cloned().collect();
        let mut records = Vec::new();
        while records.is_empty() && !wanted.is_empty() {
            // Nothing can be read of a topic that is gone.
            let lost = self.lost(&wanted).await?;
            let is_there = |letter: &&Origin| !lost.contains_key(&letter.topic);
            let there: Vec<Origin> = wanted.iter().filter(is_there).cloned().collect();
            let brought = self.bring(&there).await?;
            // Again, and now for sure: an id never comes back, so what was read before it was seen is its own.
            let lost = self.lost(&wanted).await?;
            records = told_apart(&wanted, (&there, brought), &lost);
        }
        self.back.drain(..records.len());
        let bytes: usize = records.iter().flatten().map(Record::size).sum();
        self.window = window_of(bytes, records.len());
        self.prepare(records).await
    }

    /// The topics of these letters that are gone, or are others than they were when the job began.
    async fn lost(&self, letters: &[Origin]) -> Result<BTreeMap<Topic, Why>, Error> {
        let topics: BTreeSet<&Topic> = letters.iter().map(|letter| &letter.topic).collect();
        let topics: Vec<Topic> = topics.into_iter().cloned().collect();
        let now = TopicIds::ask(&self.admin, &topics).await?;
        let lost = topics.into_iter().filter_map(|topic| match now.since(&self.begun, &topic) {
            Since::Same => None,
            Since::Anew => Some((topic.clone(), Why::TopicAnew(topic))),
            Since::Gone => Some((topic.clone(), Why::TopicGone(topic))),
        });
        Ok(lost.collect())
    }

    /// The records of the first of these, as many as fit; none for each that is gone.
    async fn bring(&self, wanted: &[Origin]) -> Result<Vec<Option<Record>>, Error> {
        let mut found: Vec<Option<Record>> = vec![None; wanted.len()];
        let mut partitions: BTreeMap<(&Topic, i32), Vec<(i64, usize)>> = BTreeMap::new();
        for (place, letter) in wanted.iter().enumerate() {
            partitions.entry((&letter.topic, letter.partition)).or_default().push((letter.offset, place));
        }
        let mut bytes = 0;
        for ((topic, partition), mut places) in partitions {
            places.sort_unstable();
            let mut next = 0;
            loop {
                places.retain(|(_, place)| *place < found.len());
                let Some((offset, _)) = places.get(next).copied() else { break };
                let offsets: Vec<i64> = places[next..].iter().map(|(offset, _)| *offset).collect();
                let from = Origin { topic: topic.clone(), partition, offset };
                let walked = self.walk.bring(from, offsets, BUDGET.saturating_sub(bytes).max(1)).await;
                let walked = match walked {
                    Ok(walked) => walked,
                    // With their topic, the letters are gone.
                    Err(_) if self.destinations.lacks(topic, partition).await? => break,
                    Err(error) => return Err(error.into()),
                };
                let mut at = next;
                for record in walked.records {
                    while places[at].0 < record.at.offset {
                        at += 1;
                    }
                    bytes += record.size();
                    found[places[at].1] = Some(record);
                }
                next += walked.asked;
                if bytes >= BUDGET && found.len() > 1 {
                    bytes -= halve(&mut found);
                    // Those that are behind the half are read again when it is their turn; what is left of the
                    // others stands where it stood.
                    next = places[..next].iter().filter(|(_, place)| *place < found.len()).count();
                }
            }
        }
        Ok(found)
    }

    async fn prepare(&mut self, records: Vec<Result<Record, Why>>) -> Result<Vec<Prepared>, Error> {
        let known: Vec<Option<Known>> =
            records.iter().map(|record| record.as_ref().ok().map(Known::of)).collect();
        let candidates: Vec<Candidate> =
            known.iter().flatten().map(|known| known.candidate.clone()).collect();
        self.destinations.learn(&candidates).await?;
        let mut ready = Vec::with_capacity(records.len());
        for (record, known) in records.into_iter().zip(known) {
            let size = record.as_ref().map_or(0, Record::size);
            let what = match (record, known) {
                (Ok(record), Some(mut known)) => {
                    let letter = &mut known.candidate;
                    letter.replays = self.before.count(self.number, &letter.at, letter.replays);
                    self.one(record, &known).await?
                }
                (Ok(_), None) => Err(Why::Gone),
                (Err(why), _) => Err(why),
            };
            let at = self.clock.now().wall;
            let record = what.unwrap_or_else(|why| skipped(&self.job, self.number, &why, (&self.by, at)));
            ready.push(Prepared { record, size });
            self.number += 1;
        }
        Ok(ready)
    }

    async fn one(&self, record: Record, known: &Known) -> Result<Result<Outgoing, Why>, Error> {
        let mut original = None;
        if let Some(place) = &known.pointer {
            // What is nowhere would be waited for, each time the job is taken up.
            let picked = match self.destinations.routes().has(place) {
                true => self.originals.pick(place.clone(), place.offset).await?,
                false => Vec::new(),
            };
            original = picked.into_iter().find(|picked| picked.at == *place);
            if original.is_none() {
                return Ok(Err(Why::OriginalGone));
            }
        }
        let sending = Sending { job: &self.job, number: self.number, at: self.clock.now().wall };
        Ok(outgoing(known, (&record, original.as_ref()), self.destinations.routes(), &sending))
    }
}

/// The first of the letters that are wanted, as far as it is known what became of them: the records of those that were
/// looked for, or why there is none.
fn told_apart(
    wanted: &[Origin],
    (there, brought): (&[Origin], Vec<Option<Record>>),
    lost: &BTreeMap<Topic, Why>,
) -> Vec<Result<Record, Why>> {
    let mut brought = there.iter().zip(brought).peekable();
    let mut told = Vec::with_capacity(wanted.len());
    for letter in wanted {
        let record = brought.next_if(|(at, _)| *at == letter).map(|(_, record)| record);
        match (lost.get(&letter.topic), record) {
            (Some(why), _) => told.push(Err(why.clone())),
            (None, Some(record)) => told.push(record.ok_or(Why::Gone)),
            // It was not looked for yet.
            (None, None) => break,
        }
    }
    told
}

/// What tells that a letter was not sent.
pub(super) fn skipped(job: &JobId, number: u64, why: &Why, (by, at): (&str, Timestamp)) -> Outgoing {
    let why = Some(why.to_string());
    let outcome = Outcome { what: What::Skipped, at: at.millis(), by: by.to_owned(), letter: None, why };
    state_record(&Key::Outcome(job.clone(), number), &outcome)
}

/// Forgets the second half; how many bytes that frees.
fn halve(found: &mut Vec<Option<Record>>) -> usize {
    let rest = found.split_off(found.len().div_ceil(2));
    rest.iter().flatten().map(Record::size).sum()
}

/// How many to read at once when so many took so much.
fn window_of(bytes: usize, records: usize) -> usize {
    let each = bytes.checked_div(records).unwrap_or(0).max(1);
    (BUDGET / 2 / each).clamp(FEWEST, MOST)
}
