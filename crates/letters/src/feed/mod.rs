//! Feeds the index: what is new in the letter topics goes in, what Kafka no longer has goes out.
//!
//! How far a partition has been read is written with its letters, in one transaction: a feed that is cut off
//! goes on where it was.

mod lock;
mod reading;
mod sweep;
mod which;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redrive::Clock;
use redrive_core::Topic;
use redrive_kafka::{Admin, Refused, Scan, Settings, TopicState};
use tokio::task::spawn_blocking;

use crate::error::Error;
use crate::index::{Index, Rebuilt, TopicRow};

pub use which::{PATTERN, Which};

/// How long one waits for another process that feeds.
const TURN: Duration = Duration::from_secs(3);

/// How far a feed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Offsets that were read.
    pub read: u64,
    /// Of so many.
    pub of: u64,
}

/// What a feed came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fed {
    /// Letters that came.
    pub came: u64,
    /// Letters that left.
    pub left: u64,
    /// The letter topics that there are.
    pub topics: Vec<Topic>,
    /// Another process feeds the index; what is there may be behind.
    pub is_busy: bool,
    /// Why the index was empty, if it was.
    pub rebuilt: Option<Rebuilt>,
}

/// Brings the letters of a cluster into its index, and hands that over.
pub struct Feed {
    settings: Settings,
    folder: PathBuf,
    which: Which,
    clock: Clock,
}

impl Feed {
    /// Feeds the index in a folder.
    #[must_use]
    pub fn new(settings: &Settings, folder: &Path, which: Which) -> Self {
        Self { settings: settings.clone(), folder: folder.to_owned(), which, clock: Clock::system() }
    }

    /// Brings the index up to date; it answers for the letter topics that are meant, and for no others that were ever
    /// read into it. A file that turns out to be damaged is moved aside and built anew.
    pub async fn catch_up(&self, tell: impl FnMut(Progress) + Send + 'static) -> Result<(Index, Fed), Error> {
        let admin = Admin::new(&self.settings)?;
        let cluster = admin.cluster().await?.id;
        let name = cluster.unwrap_or_else(|| self.settings.brokers.clone());
        let found = self.look(&admin).await?;
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "_");
        let lock = lock::take(&self.folder, &name, &self.clock, TURN).await?;
        let (mut index, rebuilt) = Index::open(&self.folder, &name)?;
        let topics: Vec<Topic> = found.read.keys().cloned().collect();
        let Some(lock) = lock else {
            index.ask_about(topics.clone());
            return Ok((index, Fed { topics, is_busy: true, rebuilt, ..Fed::default() }));
        };
        let (settings, folder, clock) = (self.settings.clone(), self.folder.clone(), self.clock.clone());
        let fed = spawn_blocking(move || {
            let _until_done = lock;
            let work = Work { scan: Scan::new(&settings)?, settings, found };
            work.until_done(index, &folder, &name, &clock, tell)
        });
        let (mut index, mut fed) = fed.await??;
        index.ask_about(topics.clone());
        fed.topics = topics;
        fed.rebuilt = fed.rebuilt.or(rebuilt);
        Ok((index, fed))
    }

    /// What letter topics there are.
    async fn look(&self, admin: &Admin) -> Result<Found, Error> {
        let all = admin.topics().await?;
        let wanted: Vec<Topic> = all.iter().filter(|topic| self.which.includes(topic)).cloned().collect();
        let read = match admin.describe(&wanted).await {
            // Who may not see settings reads the letters all the same.
            Err(error) if error.refusal().is_some_and(Refused::is_denied) => admin.outline(&wanted).await?,
            described => described?,
        };
        Ok(Found { all, read })
    }
}

/// The topics of a cluster, and those of them that are read.
struct Found {
    all: BTreeSet<Topic>,
    read: BTreeMap<Topic, TopicState>,
}

/// A feed under way, on a thread that may wait.
struct Work {
    scan: Scan,
    settings: Settings,
    found: Found,
}

impl Work {
    fn until_done(
        mut self,
        mut index: Index,
        folder: &Path,
        name: &str,
        clock: &Clock,
        mut tell: impl FnMut(Progress),
    ) -> Result<(Index, Fed), Error> {
        match self.feed(&mut index, clock, &mut tell) {
            Ok(fed) => Ok((index, fed)),
            Err(error) if error.is_damage() => {
                let path = index.path().to_owned();
                drop(index);
                let aside = Index::set_aside(&path)?;
                let (mut index, _) = Index::open(folder, name)?;
                let fed = self.feed(&mut index, clock, &mut tell)?;
                Ok((index, Fed { rebuilt: Some(Rebuilt::Damaged(aside)), ..fed }))
            }
            Err(error) => Err(error),
        }
    }

    fn feed(
        &mut self,
        index: &mut Index,
        clock: &Clock,
        tell: &mut impl FnMut(Progress),
    ) -> Result<Fed, Error> {
        let topics = self.topics(index)?;
        let (left, places) = self.sweep(index, &topics)?;
        let came = self.read(index, places, clock, tell)?;
        let left = left + self.compacted(index, &topics)?;
        if left > 0 {
            index.tidy()?;
        }
        if came + left > 0 {
            index.settle()?;
        }
        Ok(Fed { came, left, ..Fed::default() })
    }

    /// Notes the topics as they are; what was known of one that is no more, or was made anew, is forgotten.
    fn topics(&self, index: &mut Index) -> Result<Vec<TopicRow>, Error> {
        for row in index.topics()? {
            let now = self.found.read.get(&row.name).map(mark);
            let is_another = now.is_some_and(|now| row.mark.is_some() && now != row.mark);
            if is_another || !self.found.all.contains(&row.name) {
                index.drop_topic(row.id)?;
            }
        }
        for (name, state) in &self.found.read {
            index.set_topic(name, mark(state).as_deref(), is_compacted(state))?;
        }
        let rows = index.topics()?;
        Ok(rows.into_iter().filter(|row| self.found.read.contains_key(&row.name)).collect())
    }
}

fn mark(state: &TopicState) -> Option<String> {
    state.id.map(|id| id.to_string())
}

fn is_compacted(state: &TopicState) -> bool {
    state.settings.get("cleanup.policy").is_some_and(|setting| setting.value.contains("compact"))
}
