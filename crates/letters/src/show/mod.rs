//! Everything about one letter, and what belongs to it.

mod document;
mod links;
mod timeline;

pub use timeline::{Event, Happened};

use bytes::Bytes;
use redrive_core::{Origin, Timestamp};
use redrive_kafka::{Admin, Settings};
use serde_json::Value;

use crate::jobs::{self, Chapter};
use crate::{Error, Index, Query, Summary, Whole, read, told};

/// As many letters are named that belong to one; one more is looked for, to know whether there are more.
pub const NEIGHBOURS: usize = 10;

/// A letter and what belongs to it.
#[derive(Debug)]
pub struct Shown {
    /// The letter.
    pub whole: Whole,
    /// As the index knows it; none if its topic is not indexed.
    pub summary: Option<Summary>,
    /// Its payload, or why that cannot be had.
    pub payload: Result<Option<Bytes>, String>,
    /// Letters that followed it into the letters.
    pub followers: Vec<Summary>,
    /// Letters of its lane.
    pub lane: Vec<Summary>,
    /// Letters of its failure group.
    pub same: Vec<Summary>,
    /// Addresses of logs and traces, by their names.
    pub links: Vec<(String, String)>,
    /// What jobs did with it.
    pub story: Vec<Chapter>,
}

impl Shown {
    /// Reads a letter from Kafka. `links` are names and templates of addresses.
    pub async fn read<'a>(
        settings: &Settings,
        id: &Origin,
        links: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        let whole = whole(settings, id).await?;
        let payload = whole.payload(settings).await.map_err(|error| told(&error));
        let links =
            links.filter_map(|(name, template)| Some((name.to_owned(), links::filled(template, &whole)?)));
        let links = links.collect();
        let story = jobs::story(settings, id).await?;
        let (followers, lane, same) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { whole, summary: None, payload, followers, lane, same, links, story })
    }

    /// Finds what belongs to it.
    pub fn look_around(&mut self, index: &mut Index) -> Result<(), Error> {
        let letter = &self.whole.letter;
        let id = &letter.at;
        let mut some = |query: Query| -> Result<Vec<Summary>, Error> {
            let found = index.page(&query, NEIGHBOURS + 1, None)?.letters;
            Ok(found.into_iter().filter(|other| other.at != *id).collect())
        };
        let topics: Vec<String> = letter.source.topic.iter().cloned().collect();
        let groups: Vec<String> = letter.group.iter().cloned().collect();
        if let Some(origin) = letter.origin() {
            let query = Query { leader: Some(origin), groups: groups.clone(), ..Query::default() };
            self.followers = some(query)?;
        }
        if let Some(lane) = &letter.lane {
            self.lane = some(Query { lanes: vec![lane.to_vec()], topics, groups, ..Query::default() })?;
        }
        self.same = some(Query { failures: vec![letter.fingerprint()], ..Query::default() })?;
        let own = index.page(&Query { ids: vec![id.clone()], ..Query::default() }, 1, None)?;
        self.summary = own.letters.into_iter().next();
        Ok(())
    }

    /// When it was tried, buried, sent back and dealt with, in order.
    #[must_use]
    pub fn timeline(&self) -> Vec<Event> {
        timeline::of(&self.whole.letter, &self.story)
    }

    /// How often it was sent back: before it was this letter, as it says, and since.
    #[must_use]
    pub fn replays(&self) -> u64 {
        let since = self.story.iter().filter(|chapter| chapter.is_sent()).count() as u64;
        u64::from(self.whole.letter.replays) + since
    }

    /// The job that sent it back last and its number there, and when.
    #[must_use]
    pub fn last_replay(&self) -> (Option<String>, Option<Timestamp>) {
        let letter = &self.whole.letter;
        match self.story.iter().rev().find(|chapter| chapter.is_sent()) {
            Some(chapter) => (Some(format!("{}/{}", chapter.job, chapter.number)), chapter.done),
            None => (letter.replay.clone(), letter.replayed_at),
        }
    }

    /// All of it as JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        document::document(self)
    }
}

/// Reads a letter. One of a topic or a partition that is not there would be waited for: that is looked at first.
pub async fn whole(settings: &Settings, id: &Origin) -> Result<Whole, Error> {
    let found = Admin::new(settings)?.outline(std::slice::from_ref(&id.topic)).await?;
    if found.get(&id.topic).is_none_or(|topic| id.partition >= topic.partitions) {
        return Err(Error::NoLetter(id.clone()));
    }
    read(settings, id).await
}
