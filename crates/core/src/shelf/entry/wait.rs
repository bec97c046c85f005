//! A record that waits: as it was consumed, with what is known of it beside.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::{Done, Written};
use crate::headers::{CUT_OFF, ENTRY, Headers, Name, TRAIL, Trail};
use crate::record::Record;
use crate::route::Reason;
use crate::time::Timestamp;

/// What keeps a header of the user's apart from ours of the same name.
const USERS: char = '~';

/// A record that waits, self-contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The record as it was consumed: where from, its key, value and headers. Of a pointer only where from.
    pub record: Arc<Record>,
    /// What is known of it: when it is due, its lane, its attempts, whom it waits for.
    pub trail: Arc<Trail>,
}

impl Wait {
    /// When it is due.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.trail.due.unwrap_or(Timestamp::from_millis(0))
    }

    /// Its business key.
    #[must_use]
    pub fn lane(&self) -> Option<&Bytes> {
        self.trail.lane.as_ref()
    }

    /// What names it, this time.
    #[must_use]
    pub fn done(&self) -> Done {
        Done {
            origin: self.record.at.offset,
            attempt: self.trail.attempt.unwrap_or(0),
            replay: self.trail.replays.unwrap_or(0),
        }
    }

    /// Whether it is to become a letter.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.trail.reason == Some(Reason::Cancelled)
    }

    /// Whether the payload is still where it was consumed.
    #[must_use]
    pub fn is_pointer(&self) -> bool {
        self.trail.pointer.is_some()
    }

    /// The same with the original that it points to, if this is it: not another that has its offset now.
    #[must_use]
    pub fn with(&self, original: &Record) -> Option<Self> {
        let is_it = original.at == self.record.at && original.timestamp == self.record.timestamp;
        let whole = Trail { pointer: None, pointer_expires: None, ..Trail::clone(&self.trail) };
        is_it.then(|| Self { record: Arc::new(original.detached()), trail: Arc::new(whole) })
    }

    /// The same without its payload, which can be read back until then.
    #[must_use]
    pub fn pointing(&self, expires: Option<Timestamp>) -> Self {
        let pointer = Some(self.record.at.clone());
        let trail = Trail { pointer, pointer_expires: expires, ..Trail::clone(&self.trail) };
        let (at, timestamp) = (self.record.at.clone(), self.record.timestamp);
        let record = Record { at, timestamp, key: None, value: None, headers: Headers::default() };
        Self { record: Arc::new(record), trail: Arc::new(trail) }
    }

    /// The record that this one named as its predecessor, if it is of the same partition.
    #[must_use]
    pub fn behind(&self) -> Option<i64> {
        let (leader, own) = (self.trail.leader.as_ref()?, &self.record.at);
        let is_before =
            leader.topic == own.topic && leader.partition == own.partition && leader.offset < own.offset;
        is_before.then_some(leader.offset)
    }

    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        // What the trail's texts and the structures take beside the payload.
        self.record.size() + 1_000
    }

    /// What the log has to say of it: where it belongs and when it is due.
    pub(super) fn brief(record: &Record) -> Result<Self, String> {
        let trail = match record.headers.last(TRAIL) {
            Some(packed) => Trail::unpack_brief(packed)?,
            None => Trail::brief(&record.headers).map_err(|error| error.to_string())?,
        };
        let at = trail.origin.clone().ok_or("it has no origin")?;
        let timestamp = trail.origin_timestamp;
        let record = Record { at, timestamp, key: None, value: None, headers: Headers::default() };
        Ok(Self { record: Arc::new(record), trail: Arc::new(trail) })
    }

    pub(super) fn read(record: &Record) -> Result<Self, String> {
        // What cannot be read of its failures must not keep it from being tried again.
        let ours = ours(record)?;
        let trail = Trail::read(&ours).or_else(|_| Trail::brief(&ours));
        let trail = trail.map_err(|error| error.to_string())?;
        let at = trail.origin.clone().ok_or("it has no origin")?;
        let is_ours = |name: &str| name == ENTRY || name == TRAIL || Name::of(name).is_some();
        let users = record.headers.iter().filter(|one| !is_ours(&one.name));
        let users = users.map(|header| {
            let name = header.name.strip_prefix(USERS).filter(|name| is_taken(name));
            (name.unwrap_or(&header.name).to_owned(), header.value.clone())
        });
        let record = Record {
            at,
            timestamp: trail.origin_timestamp,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: users.collect(),
        };
        Ok(Self { record: Arc::new(record), trail: Arc::new(trail) })
    }

    /// A letter that is to be tried again: it names its job and how often it was sent back.
    pub(super) fn replay(record: &Record) -> Result<Self, String> {
        let wait = Self::read(record)?;
        wait.trail.replay.as_ref().ok_or("it names no job")?;
        wait.trail.replays.filter(|replays| *replays > 0).ok_or("it was never sent back")?;
        Ok(wait)
    }

    pub(super) fn write(&self) -> Written {
        let users = self.record.headers.iter().map(|header| {
            let name = match is_taken(&header.name) {
                true => format!("{USERS}{}", header.name),
                false => header.name.to_string(),
            };
            (name, header.value.clone())
        });
        let mut headers: Headers = users.collect();
        let mut trail = Vec::with_capacity(512);
        self.trail.pack(&self.record, &mut trail);
        headers.push(TRAIL, Some(Bytes::from(trail)));
        let (key, value) = match self.is_pointer() {
            true => (None, None),
            false => (self.record.key.clone(), self.record.value.clone()),
        };
        Written { key, value, headers }
    }
}

/// What is known of the record, as headers: packed, or as they stand in a letter.
fn ours(record: &Record) -> Result<Cow<'_, Headers>, String> {
    match record.headers.last(TRAIL) {
        Some(packed) => Ok(Cow::Owned(Trail::unpack(packed).ok_or(CUT_OFF)?)),
        None => Ok(Cow::Borrowed(&record.headers)),
    }
}

/// Whether a header of that name would be taken for ours.
fn is_taken(name: &str) -> bool {
    let name = name.trim_start_matches(USERS);
    name == ENTRY || name == TRAIL || Name::of(name).is_some()
}
