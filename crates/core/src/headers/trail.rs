//! What Redrive knows of a record on its way, in headers: typed here, bytes in the record.
//!
//! Reading takes any headers and says which one is malformed; writing replaces, never appends, and
//! leaves the user's headers alone. Numbers are decimal text, times epoch milliseconds.

use std::fmt::Display;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::bounded::{self, cut};
use super::show::Show;
use super::{Headers, Name};
use crate::class::Class;
use crate::failure::{Cause, Failure};
use crate::origin::Origin;
use crate::record::Record;
use crate::route::{Reason, Retries};
use crate::time::Timestamp;

/// How many attempts the history keeps: the last ones.
const HISTORY: usize = 16;

/// Everything our headers say; what a record does not carry is `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each field is the header of its name, described at `Name`")]
pub struct Trail {
    pub origin: Option<Origin>,
    pub origin_timestamp: Option<Timestamp>,
    pub group: Option<String>,
    pub attempt: Option<u32>,
    pub retries: Option<Retries>,
    pub first_failed_at: Option<Timestamp>,
    pub due: Option<Timestamp>,
    pub lane: Option<Bytes>,
    pub class: Option<Class>,
    pub error_type: Option<String>,
    pub error_message: Option<String>,
    pub error_chain: Vec<Link>,
    pub error_stack: Option<String>,
    pub history: Vec<Attempt>,
    pub reason: Option<Reason>,
    pub leader: Option<Origin>,
    pub service: Option<String>,
    pub instance: Option<String>,
    pub handler: Option<String>,
    pub content_type: Option<String>,
    pub buried_at: Option<Timestamp>,
    pub replay: Option<String>,
    pub replays: Option<u32>,
    pub replayed_at: Option<Timestamp>,
    pub pointer: Option<Origin>,
    pub pointer_expires: Option<Timestamp>,
    pub signature: Option<String>,
    pub key: Option<Bytes>,
}

/// One cause in the chain, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The type of the error.
    #[serde(rename = "type")]
    pub error_type: String,
    /// What it says.
    pub message: String,
    /// A status as HTTP has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Any other code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Link {
    fn size(&self) -> usize {
        self.error_type.len() + self.message.len() + self.code.as_ref().map_or(0, String::len)
    }
}

/// One call of the handler that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When, in epoch milliseconds.
    pub at: i64,
    /// The class of the failure, by name.
    pub class: String,
    /// The type of the error.
    #[serde(rename = "type")]
    pub error_type: String,
    /// Where.
    pub instance: String,
}

/// A header of ours with a value that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header {} cannot be read: {why}", name.as_str())]
pub struct BadHeader {
    /// Which one.
    pub name: Name,
    /// What is wrong with it.
    pub why: String,
}

impl Trail {
    /// What the headers say.
    pub fn read(headers: &Headers) -> Result<Self, BadHeader> {
        let reader = Reader::of(headers);
        Ok(Self {
            origin: reader.parsed(Name::Origin)?,
            origin_timestamp: reader.time(Name::OriginTimestamp)?,
            group: reader.text(Name::Group)?,
            attempt: reader.parsed(Name::Attempt)?,
            retries: reader.parsed(Name::Retries)?,
            first_failed_at: reader.time(Name::FirstFailedAt)?,
            due: reader.time(Name::Due)?,
            lane: reader.last(Name::Lane).cloned(),
            class: reader.parsed(Name::Class)?,
            error_type: reader.text(Name::ErrorType)?,
            error_message: reader.text(Name::ErrorMessage)?,
            error_chain: reader.json(Name::ErrorChain)?,
            error_stack: reader.text(Name::ErrorStack)?,
            history: reader.json(Name::History)?,
            reason: reader.parsed(Name::Reason)?,
            leader: reader.parsed(Name::Leader)?,
            service: reader.text(Name::Service)?,
            instance: reader.text(Name::Instance)?,
            handler: reader.text(Name::Handler)?,
            content_type: reader.text(Name::ContentType)?,
            buried_at: reader.time(Name::BuriedAt)?,
            replay: reader.text(Name::Replay)?,
            replays: reader.parsed(Name::Replays)?,
            replayed_at: reader.time(Name::ReplayedAt)?,
            pointer: reader.parsed(Name::Pointer)?,
            pointer_expires: reader.time(Name::PointerExpires)?,
            signature: reader.text(Name::Signature)?,
            key: reader.last(Name::Key).cloned(),
        })
    }

    /// What the headers say about where a record belongs and when it is due, and nothing of its failures.
    pub(crate) fn brief(headers: &Headers) -> Result<Self, BadHeader> {
        let mut trail = Self::default();
        for header in headers.iter() {
            if let (Some(name), Some(value)) = (Name::of(&header.name), &header.value) {
                trail.take_brief(name, value, || value.clone())?;
            }
        }
        Ok(trail)
    }

    /// Takes a value in if it says where a record belongs or when it is due.
    pub(super) fn take_brief(
        &mut self,
        name: Name,
        value: &[u8],
        bytes: impl FnOnce() -> Bytes,
    ) -> Result<(), BadHeader> {
        let time = || Ok(Some(Timestamp::from_millis(parsed(name, value)?)));
        match name {
            Name::Origin => self.origin = Some(parsed(name, value)?),
            Name::OriginTimestamp => self.origin_timestamp = time()?,
            Name::Attempt => self.attempt = Some(parsed(name, value)?),
            Name::Replay => self.replay = Some(parsed(name, value)?),
            Name::Replays => self.replays = Some(parsed(name, value)?),
            Name::Due => self.due = time()?,
            Name::Lane => self.lane = Some(bytes()),
            Name::Reason => self.reason = Some(parsed(name, value)?),
            Name::Leader => self.leader = Some(parsed(name, value)?),
            Name::Pointer => self.pointer = Some(parsed(name, value)?),
            Name::PointerExpires => self.pointer_expires = time()?,
            _ => {}
        }
        Ok(())
    }

    /// What the headers of a record say of the job that sent it back to its topic for this group, and nothing else.
    #[must_use]
    pub fn of_replay(headers: &Headers, group: &str) -> Self {
        let Some(replay) = headers.replay(group) else { return Self::default() };
        let reader = Reader::of(headers);
        Self {
            replay: Some(replay.to_owned()),
            replays: reader.parsed(Name::Replays).unwrap_or_default(),
            replayed_at: reader.time(Name::ReplayedAt).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Makes our headers say exactly this; what is `None` here is removed there.
    pub fn write(&self, headers: &mut Headers) {
        for name in Name::ALL {
            match self.value(*name) {
                Some(value) => headers.set(name.as_str(), value),
                None => headers.remove(name.as_str()),
            }
        }
    }

    /// Adds the value of this header to some bytes, as the trail of this record, if there is one.
    pub(super) fn put_of(&self, record: &Record, name: Name, to: &mut Vec<u8>) -> bool {
        match name {
            Name::Origin => show(to, Some(&record.at)),
            Name::OriginTimestamp => show(to, record.timestamp),
            name => self.put(name, to),
        }
    }

    /// Notes a failed call: what failed and one more line of history, the oldest forgotten.
    pub fn note(&mut self, failure: &Failure, class: Class, at: Timestamp) {
        self.class = Some(class);
        self.first_failed_at.get_or_insert(at);
        self.attempt = Some(self.attempt.unwrap_or(0).saturating_add(1));
        self.tell(failure);
        self.history.push(Attempt {
            at: at.millis(),
            class: class.name().to_owned(),
            error_type: cut(&failure.outermost().type_name, bounded::BRIEF),
            instance: cut(self.instance.as_deref().unwrap_or_default(), bounded::BRIEF),
        });
        let forgotten = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..forgotten);
    }

    /// Tells of a failure, and of nothing that was called.
    pub(crate) fn tell(&mut self, failure: &Failure) {
        let outermost = failure.outermost();
        self.error_type = Some(cut(&outermost.type_name, bounded::NAME));
        self.error_message = Some(cut(&outermost.message, bounded::MESSAGE));
        self.error_chain = chain(failure.causes());
        self.error_stack = failure.stack.as_deref().map(|stack| cut(stack, bounded::STACK));
    }

    fn value(&self, name: Name) -> Option<Bytes> {
        let mut value = Vec::new();
        self.put(name, &mut value).then(|| Bytes::from(value))
    }

    /// Adds the value of this header to some bytes, if there is one.
    fn put(&self, name: Name, to: &mut Vec<u8>) -> bool {
        match name {
            Name::Origin => show(to, self.origin.as_ref()),
            Name::OriginTimestamp => show(to, self.origin_timestamp),
            Name::Group => show(to, self.group.as_ref()),
            Name::Attempt => show(to, self.attempt),
            Name::Retries => show(to, self.retries),
            Name::FirstFailedAt => show(to, self.first_failed_at),
            Name::Due => show(to, self.due),
            Name::Lane => copy(to, self.lane.as_ref()),
            Name::Class => show(to, self.class),
            Name::ErrorType => show(to, self.error_type.as_ref()),
            Name::ErrorMessage => show(to, self.error_message.as_ref()),
            Name::ErrorChain => json(to, &self.error_chain),
            Name::ErrorStack => show(to, self.error_stack.as_deref().map(|stack| cut(stack, bounded::STACK))),
            Name::History => json(to, &self.history),
            Name::Reason => show(to, self.reason),
            Name::Leader => show(to, self.leader.as_ref()),
            Name::Service => show(to, self.service.as_ref()),
            Name::Instance => show(to, self.instance.as_ref()),
            Name::Handler => show(to, self.handler.as_ref()),
            Name::ContentType => show(to, self.content_type.as_ref()),
            Name::BuriedAt => show(to, self.buried_at),
            Name::Replay => show(to, self.replay.as_ref()),
            Name::Replays => show(to, self.replays),
            Name::ReplayedAt => show(to, self.replayed_at),
            Name::Pointer => show(to, self.pointer.as_ref()),
            Name::PointerExpires => show(to, self.pointer_expires),
            Name::Signature => show(to, self.signature.as_ref()),
            Name::Key => copy(to, self.key.as_ref()),
        }
    }
}

fn show(to: &mut Vec<u8>, value: Option<impl Show>) -> bool {
    value.inspect(|value| value.show(to)).is_some()
}

fn copy(to: &mut Vec<u8>, value: Option<&Bytes>) -> bool {
    value.inspect(|value| to.extend_from_slice(value)).is_some()
}

fn json<T: Serialize>(to: &mut Vec<u8>, list: &[T]) -> bool {
    !list.is_empty() && serde_json::to_writer(to, list).is_ok()
}

/// The causes as they are written down. JSON makes control characters six times as long, so the texts
/// are cut shorter and shorter until the whole fits.
fn chain(causes: &[Cause]) -> Vec<Link> {
    let cut_at = |limit: usize| causes.iter().map(|cause| link(cause, limit)).collect::<Vec<_>>();
    let fits = |chain: &Vec<Link>| {
        // At most six times as long, and what is around them.
        let most: usize = chain.iter().map(|link| 6 * link.size() + 64).sum();
        most <= bounded::CHAIN || {
            let mut json = Vec::new();
            serde_json::to_writer(&mut json, chain).is_ok() && json.len() <= bounded::CHAIN
        }
    };
    let limits = [bounded::CAUSE, bounded::CAUSE / 4, bounded::CAUSE / 16];
    limits.into_iter().map(cut_at).find(fits).unwrap_or_else(|| cut_at(bounded::CAUSE / 64))
}

fn link(cause: &Cause, limit: usize) -> Link {
    Link {
        error_type: cut(&cause.type_name, limit.min(bounded::NAME)),
        message: cut(&cause.message, limit),
        status: cause.status,
        code: cause.code.as_deref().map(|code| cut(code, limit.min(bounded::NAME))),
    }
}

fn parsed<T: FromStr<Err: Display>>(name: Name, value: &[u8]) -> Result<T, BadHeader> {
    let text = std::str::from_utf8(value).map_err(|error| BadHeader { name, why: error.to_string() })?;
    text.parse().map_err(|error: T::Err| BadHeader { name, why: error.to_string() })
}

/// The last value of each of our headers: all of them are found in one pass.
struct Reader<'a>([Option<&'a Bytes>; Name::ALL.len()]);

impl<'a> Reader<'a> {
    fn of(headers: &'a Headers) -> Self {
        let mut last = [None; Name::ALL.len()];
        for header in headers.iter() {
            if let Some(name) = Name::of(&header.name) {
                last[name as usize] = header.value.as_ref();
            }
        }
        Self(last)
    }

    fn last(&self, name: Name) -> Option<&'a Bytes> {
        self.0[name as usize]
    }

    fn text(&self, name: Name) -> Result<Option<String>, BadHeader> {
        let Some(value) = self.last(name) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value).map_err(|error| BadHeader { name, why: error.to_string() })?;
        Ok(Some(text.to_owned()))
    }

    fn parsed<T: FromStr<Err: Display>>(&self, name: Name) -> Result<Option<T>, BadHeader> {
        self.last(name).map(|value| parsed(name, value)).transpose()
    }

    fn time(&self, name: Name) -> Result<Option<Timestamp>, BadHeader> {
        Ok(self.parsed(name)?.map(Timestamp::from_millis))
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, name: Name) -> Result<Vec<T>, BadHeader> {
        let Some(value) = self.last(name) else {
            return Ok(Vec::new());
        };
        serde_json::from_slice(value).map_err(|error| BadHeader { name, why: error.to_string() })
    }
}
