//! The values of records in `redrive.state`, as JSON. Each says its version; one of a later version is passed
//! over, and so is what cannot be read: a tool that is behind must not take it for something else.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
pub use redrive::replay::What;
use redrive_core::{Timestamp, Topic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::JobId;
use crate::replay::lanes::Lane;

/// The form of all values.
const VERSION: u32 = 1;

/// What a job does with its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sends them back.
    Replay,
    /// Says that they are dealt with.
    Resolve,
    /// Deletes them.
    Purge,
    /// Deletes what is known of a person.
    Erase,
}

/// Where letters are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Whereto {
    /// Where each belongs: the retry path of its group, or its original topic if it has none.
    Usual,
    /// The retry path of the group: its shelf, due now.
    Retry,
    /// The topic they were consumed from.
    Origin,
    /// A topic that is named.
    Topic(Topic),
}

/// That a job has begun: written once, after the chunks of its selection, and never again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// What it does.
    pub kind: Kind,
    /// Who began it.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// What was asked for, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Where letters go.
    #[serde(default = "usual")]
    pub to: Whereto,
    /// How many letters.
    pub letters: u64,
    /// In how many chunks.
    pub chunks: u32,
    /// How it goes about it.
    #[serde(default)]
    pub options: Options,
    /// Where the letters' partitions ended when it was decided, by `topic/partition`.
    #[serde(default)]
    pub ends: BTreeMap<String, i64>,
    /// The ids of the letters' topics then, by name, as far as brokers have any: what is said of letters holds for
    /// these topics, and not for others that are called so later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub topics: BTreeMap<String, String>,
    /// The lanes that are held until all letters are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Lane>,
    /// The job that announced them, where that is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<JobId>,
    /// How many letters go to topics that no worker of Redrive is known to consume: nothing is heard of those. None
    /// if whoever began it did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<u64>,
    /// How often letters were sent back before, by number, where it was more often than they and the jobs that
    /// sent them tell: another letter of the same record was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replays: BTreeMap<u64, u32>,
    /// What is deleted, as `topic/partition/offset`: all below goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<String>,
    /// Those of them before which letters are written again that are not erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<String>,
}

/// How a job goes about it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Options {
    /// At most so fast, as `50/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// So many first, and the others only when those went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u64>,
    /// How long to wait for what becomes of those, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_wait_ms: Option<u64>,
    /// It pauses when more of a hundred fail again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failed: Option<f64>,
    /// A letter that was sent back so often is not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replays: Option<u32>,
    /// Whether letters that were sent before are sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Whether followers are sent though the letters that they followed are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// Whether nobody watches the process that began it: another like it goes on when it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// How far a job came. Written in the transaction of what it sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// The letters below this number are dealt with.
    pub upto: u64,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// By which process.
    #[serde(default)]
    pub by: String,
    /// When the process that goes on with it last said that it is there, in epoch milliseconds, where that is later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive: Option<i64>,
    /// Whether that process has stopped, and nobody goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// What somebody wants of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// What.
    pub want: Want,
    /// Who.
    pub by: String,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Whether it is about the first letters: that it waits because of them, or that it goes on whatever becomes of
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
}

/// What may be wanted of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// That it goes on.
    Run,
    /// That it waits.
    Pause,
    /// That it ends where it is.
    Cancel,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How.
    pub how: Ending,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// By whom.
    pub by: String,
    /// How many letters it dealt with.
    pub upto: u64,
}

/// How jobs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All letters are dealt with.
    Finished,
    /// Somebody wanted it to end.
    Cancelled,
    /// Before it did anything: an earlier job had some of its letters, and it began anew without them.
    Withdrawn,
}

/// What became of a letter that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What.
    pub what: What,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// The instance that says so, or the process of the job.
    #[serde(default)]
    pub by: String,
    /// Where it is a letter again, if it is and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter: Option<String>,
    /// Why it was not sent, not taken, or failed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What people made of a failure group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupState {
    /// What.
    pub state: Standing,
    /// Who.
    pub by: String,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// How a failure group stands with people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Somebody should look at it.
    Open,
    /// It is known; nobody need look.
    Muted,
    /// Its cause is mended. Seen again, it is a regression.
    Resolved,
}

/// The last entry of a writer in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: String,
}

/// That a process is about to go on with a job, or to write to the journal: when it has read this back, it has
/// read all that was written before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Nobody else has it.
    pub turn: String,
    /// Whether nobody watches this process, so that another like it may go on in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    value: T,
}

/// A value as a record holds it.
pub(crate) fn write<T: Serialize>(value: &T) -> Bytes {
    // Maps with text for keys and numbers that are finite: JSON holds them all.
    serde_json::to_vec(&Versioned { v: VERSION, value }).map(Bytes::from).unwrap_or_default()
}

/// What a record says; none of a version or form that is not known. Workers write outcomes without a version.
pub(crate) fn read<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(default = "first")]
        v: u32,
    }
    let Version { v } = serde_json::from_slice(value).ok()?;
    if v > VERSION {
        return None;
    }
    serde_json::from_slice(value).ok()
}

fn first() -> u32 {
    1
}

fn usual() -> Whereto {
    Whereto::Usual
}

impl Begun {
    /// When.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}

impl Kind {
    /// Its name, as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Resolve => "resolve",
            Self::Purge => "purge",
            Self::Erase => "erase",
        }
    }
}

impl FromStr for Whereto {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "usual" => Ok(Self::Usual),
            "retry" => Ok(Self::Retry),
            "origin" => Ok(Self::Origin),
            name => name
                .strip_prefix("topic:")
                .unwrap_or(name)
                .parse()
                .map(Self::Topic)
                .map_err(|error| format!("{error}; write retry, origin or the name of a topic")),
        }
    }
}

impl TryFrom<String> for Whereto {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Whereto> for String {
    fn from(to: Whereto) -> Self {
        match to {
            Whereto::Topic(topic) => format!("topic:{topic}"),
            to => to.to_string(),
        }
    }
}

impl fmt::Display for Whereto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("usual"),
            Self::Retry => f.write_str("retry"),
            Self::Origin => f.write_str("origin"),
            Self::Topic(topic) => topic.fmt(f),
        }
    }
}

/// Who holds a letter, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The job.
    pub job: JobId,
    /// The letter's number in it.
    pub number: u64,
    /// Whether it was sent by it; otherwise it is going to be.
    pub sent: bool,
}
