//! The entries of a shelf: each a Kafka record with a header that says what it is.
//!
//! The header `redrive-entry` has a version, a `?` if a reader that does not know it may skip it, the
//! kind, and for what an owner writes its claim, its number within that and the last offset it had
//! read. A waiting record keeps its key, value and headers; the other kinds say the rest in their value.

mod body;
mod packed;
#[cfg(test)]
mod tests;
mod wait;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::start::Beginning;
pub use crate::headers::ENTRY;
use crate::headers::Headers;
use crate::headers::LOG;
use crate::headers::show::{self, Show as _};
use crate::offsets::Progress;
use crate::record::Record;
use crate::time::Timestamp;

pub use wait::Wait;

/// The version that this program writes, and the highest it reads.
pub const VERSION: u32 = 1;

/// One entry of a shelf partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An owner begins: only what it writes from here on counts.
    Claim(Stamp, Identity),
    /// How far the source has come, and what is done.
    Checkpoint(Stamp, Checkpoint),
    /// A record that waits.
    Wait(Stamp, Arc<Wait>),
    /// A letter that closes its lane.
    Closed(Stamp, Closed),
    /// The answer to an order.
    Outcome(Stamp, Outcome),
    /// What a person or a tool wants done.
    Order(Order),
    /// A letter that is to be tried again, whole: an order like the others, answered by where it stands.
    Replay(Arc<Wait>),
    /// Of a later version, which says that it may be skipped.
    Skipped,
}

/// What an owner puts on everything it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its claim.
    pub claim: ClaimId,
    /// Grows within a claim: what lands twice or late has a number that was seen.
    pub seq: u64,
    /// The last offset of the shelf it had folded; -1 for none.
    pub seen: i64,
}

/// Names one claim: which process, and its how-manieth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimId {
    /// Chosen at random by a process when it starts.
    pub process: u64,
    /// Counts its claims.
    pub number: u32,
}

/// Whose shelf it is: another's is not touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The source topic.
    pub topic: String,
    /// The id of the source topic, where the broker has one: a topic made anew is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    /// The consumer group.
    pub group: String,
}

impl Identity {
    /// Whether both may be of one subscription: an id that is not known is no difference.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same_id = match (&self.topic_id, &other.topic_id) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        self.topic == other.topic && self.group == other.group && same_id
    }
}

/// How far an owner has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whose shelf it is.
    pub identity: Identity,
    /// The source: its mark and what is complete ahead of it.
    pub progress: Progress,
    /// Whether the source begins there, whatever was complete before: a first start, or an operator's reset.
    pub begins: bool,
    /// What waited and is complete since the checkpoint before.
    pub done: Vec<Done>,
    /// Where the log begins; not said by programs that did not look at that.
    pub log: Option<Beginning>,
}

/// A waiting record that is complete: this one, not one that waits again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Done {
    /// Its source offset.
    pub origin: i64,
    /// The attempts it had when it was set aside.
    pub attempt: u32,
    /// How often it was replayed by then.
    pub replay: u32,
}

/// A letter that closes its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The source offset of the letter.
    pub origin: i64,
    /// The business key.
    pub lane: Bytes,
    /// Whether the record is complete by this; otherwise it only says again that the lane is closed.
    pub completes: bool,
    /// Who is about to send its letters back, if somebody announced that.
    pub announced: Option<Announced>,
}

/// Somebody is about to send the letters of a lane back: until then, what arrives of it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// The job.
    pub job: String,
    /// When the lane is opened whether the job is done or not, in epoch milliseconds.
    pub deadline: i64,
}

/// What a person or a tool wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its own name, by which it is answered.
    pub id: String,
    /// The source offset it is about.
    pub origin: i64,
    /// What to do.
    #[serde(flatten)]
    pub deed: Deed,
    /// Who wants it.
    #[serde(default)]
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The job that it is part of, where it is part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// What may be done with a waiting record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "kebab-case")]
pub enum Deed {
    /// It is due now.
    Release,
    /// It is due then.
    Reschedule {
        /// When, in epoch milliseconds.
        due: i64,
    },
    /// It becomes a letter.
    Cancel,
    /// The lane that this letter closed is open.
    Resolve,
    /// The letters of the lane that this one closed are about to be sent back: what arrives is held.
    Announce {
        /// Until when they have to be there, in epoch milliseconds.
        deadline: i64,
    },
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which order.
    pub id: String,
    /// The source offset it was about.
    pub origin: i64,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Where the order stands, if it was one to try a letter again: they are told apart by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i64>,
    /// The job that announced a replay, or holds the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The other letters behind which the lane is open by this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<i64>,
}

impl Outcome {
    /// The answer to an order, and nothing beside it.
    #[must_use]
    pub fn to(id: impl Into<String>, origin: i64, verdict: Verdict) -> Self {
        Self { id: id.into(), origin, verdict, order: None, job: None, also: Vec::new() }
    }
}

/// What came of an order. An order changes nothing by itself: its outcome does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It is due then.
    Due {
        /// When, in epoch milliseconds.
        due: i64,
    },
    /// It becomes a letter.
    Cancelled,
    /// The lane is open behind this letter.
    Opened,
    /// It is with the handler, or on its way there.
    TooLate,
    /// It is complete.
    Finished,
    /// Nothing of that origin was ever here, or it closes no lane.
    Unknown,
    /// The letter waits again, due at once; its lane is open behind it.
    Replayed,
    /// The letter was sent back as often before.
    Already,
    /// The record still waits, or is in hand, from before it was sent back this time.
    StillWaiting,
    /// The letter does not fit on the shelf as a record that waits.
    TooLarge,
    /// What arrives of the lane is held until then.
    Announced {
        /// Until when, in epoch milliseconds.
        deadline: i64,
    },
    /// Another job holds the lane until then.
    Taken {
        /// Until when, in epoch milliseconds.
        deadline: i64,
    },
}

/// A record of a shelf topic that is no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// It has no such header, or one that says nothing.
    #[error("the record has no readable `{ENTRY}` header")]
    Foreign,
    /// A later version of this program wrote it, and it must not be skipped.
    #[error("the entry has version {0}; this program reads up to version {VERSION}")]
    Newer(u32),
    /// It says what it is, and is not that.
    #[error("the {kind} is malformed: {why}")]
    Malformed {
        /// What it says it is.
        kind: String,
        /// What is wrong.
        why: String,
    },
}

/// What the header of an entry says.
struct Head<'a> {
    version: u32,
    ignorable: bool,
    kind: &'a str,
    /// Not of what others than owners write.
    stamp: Option<Stamp>,
}

impl<'a> Head<'a> {
    fn read(record: &'a Record) -> Result<Self, BadEntry> {
        let mut words = Words(Some(record.headers.text(ENTRY).ok_or(BadEntry::Foreign)?));
        let (version, ignorable, kind) = opening(&mut words).ok_or(BadEntry::Foreign)?;
        if kind.is_none() && version <= VERSION {
            return Err(BadEntry::Foreign);
        }
        let stamp = Stamp::read(&mut words).filter(|_| version <= VERSION && words.next().is_none());
        Ok(Self { version, ignorable, kind: kind.unwrap_or_default(), stamp })
    }
}

/// Whether the header of an entry says that it is a record that waits: what the log has to know of it stands in its
/// headers, and its key and value are needed only when it is handled.
#[must_use]
pub fn stands_for_itself(header: &[u8]) -> bool {
    let opening = std::str::from_utf8(header).ok().and_then(|text| opening(&mut Words(Some(text))));
    matches!(opening, Some((..=VERSION, _, Some("wait"))))
}

/// What the header of an entry begins with: its version, whether it may be skipped, and its kind.
fn opening<'a>(words: &mut Words<'a>) -> Option<(u32, bool, Option<&'a str>)> {
    let version = words.next()?;
    let (version, ignorable) = match version.strip_suffix('?') {
        Some(version) => (version, true),
        None => (version, false),
    };
    Some((version.parse().ok()?, ignorable, words.next()))
}

/// What stands between spaces. The words are short: looking at each byte costs less than a search that is made for
/// long texts.
struct Words<'a>(Option<&'a str>);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0?;
        match halves(text, b' ') {
            Some((word, rest)) => {
                self.0 = Some(rest);
                Some(word)
            }
            None => self.0.take(),
        }
    }
}

/// What stands before the first of these, and what after it.
fn halves(text: &str, at: u8) -> Option<(&str, &str)> {
    let place = text.bytes().position(|byte| byte == at)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// An entry as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Headers,
}

impl Entry {
    /// Reads a record of a shelf topic.
    pub fn read(record: &Record) -> Result<Self, BadEntry> {
        let head = Head::read(record)?;
        Self::read_by(&head, record, Wait::read)
    }

    /// Reads as much of a record of a shelf topic as the fold needs: of what waits only where it belongs and
    /// when it is due.
    pub fn brief(record: &Record) -> Result<Self, BadEntry> {
        Self::brief_unless(record, |_| None)
    }

    /// The same where an entry with this mark may be known already.
    pub fn brief_unless(
        record: &Record,
        known: impl FnOnce(Stamp) -> Option<Self>,
    ) -> Result<Self, BadEntry> {
        let head = Head::read(record)?;
        match head.stamp.and_then(known) {
            Some(known) => Ok(known),
            None => Self::read_by(&head, record, Wait::brief),
        }
    }

    fn read_by(
        head: &Head<'_>,
        record: &Record,
        wait: fn(&Record) -> Result<Wait, String>,
    ) -> Result<Self, BadEntry> {
        if head.version > VERSION {
            return if head.ignorable { Ok(Self::Skipped) } else { Err(BadEntry::Newer(head.version)) };
        }
        let stamp = || head.stamp.ok_or("its header has no claim, number and offset");
        let read = || -> Result<Self, String> {
            Ok(match head.kind {
                "order" => Self::Order(body::json(record)?),
                // Never in brief: it is answered with all of it at once, if it can be.
                "replay" => Self::Replay(Arc::new(Wait::replay(record)?)),
                "claim" => Self::Claim(stamp()?, body::identity(record)?),
                "checkpoint" => Self::Checkpoint(stamp()?, body::checkpoint(record)?),
                "wait" => Self::Wait(stamp()?, Arc::new(wait(record)?)),
                "closed" => Self::Closed(stamp()?, body::closed(record)?),
                "outcome" => Self::Outcome(stamp()?, body::json(record)?),
                _ if head.ignorable => Self::Skipped,
                _ => return Err("nothing of that kind is known".to_owned()),
            })
        };
        read().map_err(|why| BadEntry::Malformed { kind: head.kind.to_owned(), why })
    }

    /// The record that says this.
    #[must_use]
    pub fn write(&self) -> Written {
        let plain = |key, value| Written { key, value: Some(value), headers: Headers::default() };
        let mut written = match self {
            Self::Claim(_, identity) => plain(Some(body::identity_of(identity)), Bytes::new()),
            Self::Checkpoint(_, checkpoint) => {
                let mut written =
                    plain(Some(body::identity_of(&checkpoint.identity)), body::checkpoint_of(checkpoint));
                // Beside the value: who does not know it reads the rest all the same.
                if let Some(log) = checkpoint.log {
                    written.headers.push(LOG, Some(body::beginning_of(log)));
                }
                written
            }
            Self::Wait(_, wait) => wait.write(),
            Self::Closed(_, closed) => plain(Some(closed.lane.clone()), body::closed_of(closed)),
            Self::Outcome(_, outcome) => plain(None, body::json_of(outcome)),
            Self::Order(order) => plain(None, body::json_of(order)),
            Self::Replay(wait) => wait.write(),
            Self::Skipped => plain(None, Bytes::new()),
        };
        let mut header = Vec::with_capacity(64);
        VERSION.show(&mut header);
        header.push(b' ');
        self.kind().show(&mut header);
        if let Some(stamp) = self.stamp() {
            header.push(b' ');
            stamp.put(&mut header);
        }
        written.headers.push(ENTRY, Some(header.into()));
        written
    }

    /// What it is, in a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Claim(..) => "claim",
            Self::Checkpoint(..) => "checkpoint",
            Self::Wait(..) => "wait",
            Self::Closed(..) => "closed",
            Self::Outcome(..) => "outcome",
            Self::Order(_) => "order",
            Self::Replay(_) => "replay",
            Self::Skipped => "skipped",
        }
    }

    /// The owner's mark, if an owner wrote it.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Claim(stamp, _)
            | Self::Checkpoint(stamp, _)
            | Self::Wait(stamp, _)
            | Self::Closed(stamp, _)
            | Self::Outcome(stamp, _) => Some(*stamp),
            Self::Order(_) | Self::Replay(_) | Self::Skipped => None,
        }
    }
}

impl Stamp {
    /// Adds the same as it displays.
    fn put(&self, to: &mut Vec<u8>) {
        show::hexadecimal(to, self.claim.process);
        to.push(b'-');
        show::number(to, self.claim.number);
        to.push(b' ');
        show::number(to, self.seq);
        to.push(b' ');
        show::number(to, self.seen);
    }

    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let claim = ClaimId::read(words.next()?)?;
        Some(Self { claim, seq: words.next()?.parse().ok()?, seen: words.next()?.parse().ok()? })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.claim, self.seq, self.seen)
    }
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.process, self.number)
    }
}

/// A text that is no claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no claim")]
pub struct BadClaim(String);

impl FromStr for ClaimId {
    type Err = BadClaim;

    fn from_str(text: &str) -> Result<Self, BadClaim> {
        Self::read(text).ok_or_else(|| BadClaim(text.to_owned()))
    }
}

impl ClaimId {
    fn read(text: &str) -> Option<Self> {
        let (process, number) = halves(text, b'-')?;
        Some(Self { process: u64::from_str_radix(process, 16).ok()?, number: number.parse().ok()? })
    }
}

impl Verdict {
    /// When the record is due by this, if it says so.
    #[must_use]
    pub fn due(self) -> Option<Timestamp> {
        match self {
            Self::Due { due } => Some(Timestamp::from_millis(due)),
            Self::Cancelled | Self::Opened | Self::TooLate | Self::Finished | Self::Unknown => None,
            Self::Replayed | Self::Already | Self::StillWaiting | Self::TooLarge => None,
            Self::Announced { .. } | Self::Taken { .. } => None,
        }
    }
}
