//! Where a letter is sent, and why it is not. Plain data in, plain data out: what topics there are is asked before.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Where its record was consumed, if it says all of it.
    pub origin: Option<Origin>,
    /// The topic that its record was consumed from, and the partition, as far as it says.
    pub source: Option<(Topic, Option<i32>)>,
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
            source: letter
                .source
                .topic
                .as_deref()
                .and_then(|topic| topic.parse().ok())
                .map(|topic| (topic, letter.source.partition)),
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
    /// The same where it does not say the partition: its key leads there, as it did at first.
    ByKey(Topic),
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
    /// It names a partition that no topic can have.
    BadPartition,
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
    /// The topic does not accept it, and will not: it has no key where the topic is compacted, for example.
    Refused(Topic),
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
    /// Topics that a group of Redrive consumes, as far as it can be known: it has a shelf for them.
    pub consumed: BTreeSet<Topic>,
}

impl Routes {
    /// Where this letter goes.
    pub fn route(&self, letter: &Candidate) -> Result<Route, Why> {
        if letter.is_empty {
            return Err(Why::Empty);
        }
        let route = match self.to.as_ref().unwrap_or(&Whereto::Usual) {
            Whereto::Topic(topic) => Route::Topic(topic.clone()),
            Whereto::Origin => home(letter)?,
            Whereto::Retry => {
                origin(letter)?;
                self.shelf(letter).ok_or(Why::NoShelf)?
            }
            Whereto::Usual => match self.shelf(letter) {
                Some(shelf) => shelf,
                None => home(letter)?,
            },
        };
        let topic = route.topic();
        let partitions = self.partitions.get(topic).copied().flatten();
        let partitions = partitions.ok_or_else(|| Why::NoTopic(topic.clone()))?;
        match (partition(letter), &route) {
            // A topic of somebody's choice, or no partition is told: where the key leads.
            (_, Route::Topic(_) | Route::ByKey(_)) => Ok(route),
            (Some(partition), _) if (0..partitions).contains(&partition) => Ok(route),
            (Some(..0), Route::Shelf { .. } | Route::Origin(_)) => Err(Why::BadPartition),
            (_, Route::Shelf { .. } | Route::Origin(_)) => Err(Why::NoPartition(topic.clone())),
        }
    }

    /// The partition of the topic, if it is to be that of the origin; otherwise the key leads.
    #[must_use]
    pub fn partition(&self, route: &Route, letter: &Candidate) -> Option<i32> {
        let partitions = self.partitions.get(route.topic()).copied().flatten()?;
        partition(letter).filter(|partition| (0..partitions).contains(partition))
    }

    /// Whether somebody tells what becomes of a letter that goes there, as far as it can be known.
    #[must_use]
    pub fn is_heard(&self, route: &Route) -> bool {
        route.is_told() || self.consumed.contains(route.topic())
    }

    /// Whether there is such a partition, as far as its topic was asked for. An offset below 0 is nowhere.
    #[must_use]
    pub fn has(&self, place: &Origin) -> bool {
        let partitions = self.partitions.get(&place.topic).copied().flatten().unwrap_or(0);
        (0..partitions).contains(&place.partition) && place.offset >= 0
    }

    fn shelf(&self, letter: &Candidate) -> Option<Route> {
        let origin = letter.origin.as_ref()?;
        let (Dialect::Redrive, Some(group)) = (letter.dialect, &letter.group) else { return None };
        let shelf = self.shelves.get(&(origin.topic.clone(), group.clone())).cloned().flatten();
        shelf.map(|shelf| Route::Shelf { shelf, group: group.clone() })
    }
}

/// Back to the topic that it came from.
fn home(letter: &Candidate) -> Result<Route, Why> {
    match &letter.source {
        Some((topic, Some(_))) => Ok(Route::Origin(topic.clone())),
        Some((topic, None)) => Ok(Route::ByKey(topic.clone())),
        None => Err(Why::NoOrigin),
    }
}

fn origin(letter: &Candidate) -> Result<&Origin, Why> {
    letter.origin.as_ref().ok_or(Why::NoOrigin)
}

fn partition(letter: &Candidate) -> Option<i32> {
    letter.source.as_ref().and_then(|(_, partition)| *partition)
}

impl Route {
    /// The topic that is written.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        match self {
            Self::Shelf { shelf, .. } => shelf,
            Self::Origin(topic) | Self::ByKey(topic) | Self::Topic(topic) => topic,
        }
    }

    /// Whether whoever handles it tells what became of it.
    #[must_use]
    pub fn is_told(&self) -> bool {
        match self {
            Self::Shelf { .. } => true,
            Self::Origin(_) | Self::ByKey(_) | Self::Topic(_) => false,
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
            Self::ByKey(topic) => write!(
                f,
                "the original topic {topic}, to the partitions that their keys lead to, since they do not say which they came from: every group that consumes it gets them again"
            ),
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
            Self::BadPartition => {
                f.write_str("they name a partition below 0, which no topic has (--to TOPIC sends them there)")
            }
            Self::Empty => f.write_str("they were deleted: nothing is in them"),
            Self::Gone => f.write_str("they are gone from the letter topic"),
            Self::TopicGone(topic) => write!(f, "they are gone: their letter topic {topic} was deleted"),
            Self::TopicAnew(topic) => write!(
                f,
                "they are gone: their letter topic {topic} was deleted and made anew, and what lies there now was not chosen"
            ),
            Self::OriginalGone => f.write_str("their payloads are gone from where they were consumed"),
            Self::TooLarge => f.write_str("the topic accepts no records so large"),
            Self::Refused(topic) => {
                write!(f, "{topic} refuses them as they are (one that is compacted wants a key)")
            }
        }
    }
}
