//! Where a letter is sent, and why it is not. Plain data in, plain data out: what topics there are is asked before.

use std::collections::BTreeMap;
use std::fmt;

use redrive_core::{Origin, Topic};

use crate::Dialect;
use crate::jobs::{JobId, Whereto};
use crate::letter::Letter;

/// What has to be known of a letter before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it lies.
    pub at: Origin,
    /// Who wrote it.
    pub dialect: Dialect,
    /// Where its record was consumed.
    pub origin: Option<Origin>,
    /// The group that it failed in.
    pub group: Option<String>,
    /// How often it was sent back before.
    pub replays: u32,
    /// Other letters of the same record that are known, and how often each says that it was sent back.
    pub others: Vec<(Origin, u32)>,
    /// Whether there is nothing in it: a letter that was deleted.
    pub is_empty: bool,
    /// The letters of the record that it followed into the letters, those that are open or about to be sent.
    pub leaders: Vec<Origin>,
}

impl Candidate {
    /// Of a letter.
    #[must_use]
    pub fn of(letter: &Letter) -> Self {
        Self {
            at: letter.at.clone(),
            dialect: letter.dialect,
            origin: letter.origin(),
            group: letter.group.clone(),
            replays: letter.replays,
            others: Vec::new(),
            is_empty: letter.is_tombstone() && letter.dialect == Dialect::Unknown,
            leaders: Vec::new(),
        }
    }
}

/// Where a letter goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// To the shelf of its group, due now.
    Shelf {
        /// The shelf.
        shelf: Topic,
        /// The group.
        group: String,
    },
    /// Back to the topic that it was consumed from: every group that consumes it gets it again.
    Origin(Topic),
    /// To a topic that was named.
    Topic(Topic),
}

/// Why a letter is not sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A job has sent it already.
    Sent(JobId),
    /// A job that has not ended is going to.
    Held(JobId),
    /// It was sent back this often already.
    TooOften(u32),
    /// The letter that it followed is not sent before it: its lane is closed, or it would be ahead of it.
    Behind,
    /// It does not say where it came from.
    NoOrigin,
    /// The group that it failed in has no shelf.
    NoShelf,
    /// The topic it would go to is not there.
    NoTopic(Topic),
    /// The topic it would go to has too few partitions.
    NoPartition(Topic),
    /// It was deleted: nothing is in it.
    Empty,
    /// It is gone from the letter topic.
    Gone,
    /// Its letter topic was deleted.
    TopicGone(Topic),
    /// Its letter topic was deleted and made anew: what lies in its place is another.
    TopicAnew(Topic),
    /// Its payload is where it was consumed no more.
    OriginalGone,
    /// The topic accepts no record so large.
    TooLarge,
}

/// What there is to send letters to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// What is wanted.
    pub to: Option<Whereto>,
    /// The shelves of groups, by source topic and group; none where there is none.
    pub shelves: BTreeMap<(Topic, String), Option<Topic>>,
    /// How many partitions topics have; none where there is no such topic.
    pub partitions: BTreeMap<Topic, Option<i32>>,
}

impl Routes {
    /// Where this letter goes.
    pub fn route(&self, letter: &Candidate) -> Result<Route, Why> {
        if letter.is_empty {
            return Err(Why::Empty);
        }
        let route = match self.to.as_ref().unwrap_or(&Whereto::Usual) {
            Whereto::Topic(topic) => Route::Topic(topic.clone()),
            Whereto::Origin => Route::Origin(origin(letter)?.topic.clone()),
            Whereto::Retry => self.shelf(letter)?.ok_or(Why::NoShelf)?,
            Whereto::Usual => match self.shelf(letter)? {
                Some(shelf) => shelf,
                None => Route::Origin(origin(letter)?.topic.clone()),
            },
        };
        let topic = route.topic();
        let partitions = self.partitions.get(topic).copied().flatten();
        let partitions = partitions.ok_or_else(|| Why::NoTopic(topic.clone()))?;
        match (partition(letter), &route) {
            (Some(partition), _) if partition < partitions => Ok(route),
            // A topic of somebody's choice: where the key leads.
            (_, Route::Topic(_)) => Ok(route),
            (_, Route::Shelf { .. } | Route::Origin(_)) => Err(Why::NoPartition(topic.clone())),
        }
    }

    /// The partition of the topic, if it is to be that of the origin; otherwise the key leads.
    #[must_use]
    pub fn partition(&self, route: &Route, letter: &Candidate) -> Option<i32> {
        let partitions = self.partitions.get(route.topic()).copied().flatten()?;
        partition(letter).filter(|partition| *partition < partitions)
    }

    fn shelf(&self, letter: &Candidate) -> Result<Option<Route>, Why> {
        let origin = origin(letter)?;
        let (Dialect::Redrive, Some(group)) = (letter.dialect, &letter.group) else { return Ok(None) };
        let shelf = self.shelves.get(&(origin.topic.clone(), group.clone())).cloned().flatten();
        Ok(shelf.map(|shelf| Route::Shelf { shelf, group: group.clone() }))
    }
}

fn origin(letter: &Candidate) -> Result<&Origin, Why> {
    letter.origin.as_ref().ok_or(Why::NoOrigin)
}

fn partition(letter: &Candidate) -> Option<i32> {
    letter.origin.as_ref().map(|origin| origin.partition)
}

impl Route {
    /// The topic that is written.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        match self {
            Self::Shelf { shelf, .. } => shelf,
            Self::Origin(topic) | Self::Topic(topic) => topic,
        }
    }

    /// Whether whoever handles it tells what became of it.
    #[must_use]
    pub fn is_told(&self) -> bool {
        match self {
            Self::Shelf { .. } => true,
            Self::Origin(_) | Self::Topic(_) => false,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shelf { shelf, group } => write!(f, "the shelf of {group} ({shelf}), due now"),
            Self::Origin(topic) => {
                write!(f, "the original topic {topic}: every group that consumes it gets them again")
            }
            Self::Topic(topic) => write!(f, "the topic {topic}"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(job) => write!(f, "job {job} sent them already (--again sends them once more)"),
            Self::Held(job) => {
                write!(f, "job {job} has them and has not ended (redrive replay show {job})")
            }
            Self::TooOften(times) => write!(f, "sent back {times} times already (--max-replays)"),
            Self::Behind => f.write_str(
                "the letters that they followed are not sent before them, and they would fail or be ahead of those (--ahead sends them all the same)",
            ),
            Self::NoOrigin => {
                f.write_str("they do not say where they came from (--to TOPIC sends them there)")
            }
            Self::NoShelf => f.write_str("their group has no shelf (--to origin sends them to their topic)"),
            Self::NoTopic(topic) => write!(f, "there is no topic {topic}"),
            Self::NoPartition(topic) => write!(f, "{topic} has fewer partitions than they came from"),
            Self::Empty => f.write_str("they were deleted: nothing is in them"),
            Self::Gone => f.write_str("they are gone from the letter topic"),
            Self::TopicGone(topic) => write!(f, "they are gone: their letter topic {topic} was deleted"),
            Self::TopicAnew(topic) => write!(
                f,
                "they are gone: their letter topic {topic} was deleted and made anew, and what lies there now was not chosen"
            ),
            Self::OriginalGone => f.write_str("their payloads are gone from where they were consumed"),
            Self::TooLarge => f.write_str("the topic accepts no records so large"),
        }
    }
}
