//! What jobs did with one letter, and what became of it: read from `redrive.state`, where each outcome has its time
//! and the instance that told it, which is more than is kept of all letters.

use std::collections::BTreeMap;

use redrive::pauses;
use redrive_core::{Origin, Record, Timestamp};
use redrive_kafka::{Admin, Error, Passage, Settings, read_through};

use super::value::{self, Begun, Kind, Mark, Outcome, What};
use super::{JobId, Key, State};

/// What a job did with a letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Chapter {
    /// The job.
    pub job: JobId,
    /// The letter's number in it.
    pub number: u64,
    /// What it set out to do.
    pub begun: Begun,
    /// When it dealt with the letter, if it did.
    pub done: Option<Timestamp>,
    /// What was told of the letter since, the last of which is so. Of those before it some may be forgotten.
    pub outcomes: Vec<Outcome>,
}

impl Chapter {
    /// Whether the letter was sent back, and taken as far as it is known.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        let last = self.outcomes.last().map(|outcome| outcome.what);
        self.begun.kind == Kind::Replay
            && self.done.is_some()
            && !matches!(last, Some(What::Skipped | What::Refused))
    }
}

/// What jobs did with this letter, the first that began first.
pub async fn story(settings: &Settings, letter: &Origin) -> Result<Vec<Chapter>, Error> {
    let topic = pauses::topic();
    if !Admin::new(settings)?.outline(std::slice::from_ref(&topic)).await?.contains_key(&topic) {
        return Ok(Vec::new());
    }
    let reading = Reading { letter: letter.clone(), state: State::default(), chapters: BTreeMap::new() };
    let read = read_through(settings, topic, vec![0], reading, Reading::pass).await?;
    let mut chapters: Vec<Chapter> = read.chapters.into_values().collect();
    chapters.sort_by_key(|chapter| read.state.job(&chapter.job).map(|job| job.order));
    Ok(chapters)
}

struct Reading {
    letter: Origin,
    state: State,
    chapters: BTreeMap<JobId, Chapter>,
}

impl Reading {
    fn pass(&mut self, passage: Passage) {
        match passage {
            // Only the newest of each key counts, so what was read before does no harm.
            Passage::Begin { .. } => {}
            Passage::Record(record) => self.take(&record),
        }
    }

    fn take(&mut self, record: &Record) {
        self.state.take(record);
        let value = record.value.as_deref();
        match record.key.as_deref().and_then(Key::read) {
            Some(Key::Begun(id)) => self.begin(id),
            Some(Key::Mark(id)) => {
                let Some(chapter) = self.chapters.get_mut(&id) else { return };
                let mark: Mark = value.and_then(value::read).unwrap_or_default();
                // Written in the transaction that dealt with it, if all of them are still there.
                if mark.upto > chapter.number && chapter.done.is_none() {
                    chapter.done = Some(Timestamp::from_millis(mark.at));
                }
            }
            Some(Key::Outcome(id, number)) => {
                let chapter = self.chapters.get_mut(&id).filter(|chapter| chapter.number == number);
                if let (Some(chapter), Some(outcome)) = (chapter, value.and_then(value::read)) {
                    chapter.outcomes.push(outcome);
                }
            }
            _ => {}
        }
    }

    /// A job begins, or is forgotten.
    fn begin(&mut self, id: JobId) {
        let Some(job) = self.state.job(&id) else { return drop(self.chapters.remove(&id)) };
        if self.chapters.contains_key(&id) {
            return;
        }
        let found = (0..).zip(job.selection.iter()).find(|(_, letter)| *letter == self.letter);
        if let Some((number, _)) = found {
            let begun = job.begun.clone();
            let chapter = Chapter { job: id.clone(), number, begun, done: None, outcomes: Vec::new() };
            self.chapters.insert(id, chapter);
        }
    }
}
