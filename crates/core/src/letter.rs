//! A dead letter: the record as it was, and in headers everything that is known about its end.

use bytes::Bytes;

use crate::flow::Ticket;
use crate::headers::{Headers, Name, Trail};
use crate::origin::Origin;
use crate::record::Record;
use crate::route::Reason;
use crate::shelf::BadEntry;
use crate::time::Timestamp;

/// Who writes letters: the same in all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The consumer group.
    pub group: String,
    /// The service.
    pub service: Option<String>,
    /// The instance of it.
    pub instance: String,
    /// The handler.
    pub handler: String,
    /// Whether letters are filed under their origins, with the original key in a header: where their topic is
    /// compacted, a key of the user's would let one letter remove another.
    pub by_origin: bool,
}

/// How much of a letter there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Size {
    /// All of it.
    #[default]
    Whole,
    /// Without the stack, the chain of causes and the earlier attempts.
    Short,
    /// Without the value: it stays where it was consumed, for as long as that is kept.
    Pointer,
}

/// A dead letter, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where the record was consumed.
    pub origin: Origin,
    /// The original timestamp.
    pub timestamp: Option<Timestamp>,
    /// The key that it is filed under: the original one, or its origin.
    pub key: Option<Bytes>,
    /// The original value, unless there is only a pointer.
    pub value: Option<Bytes>,
    /// The user's headers in order, then ours.
    pub headers: Headers,
}

impl Size {
    /// The next smaller one.
    #[must_use]
    pub fn smaller(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Short),
            Self::Short => Some(Self::Pointer),
            Self::Pointer => None,
        }
    }
}

impl Writer {
    /// The letter of a record that is being buried.
    #[must_use]
    pub fn letter(&self, ticket: &Ticket, now: Timestamp) -> Letter {
        let record = &ticket.record;
        let mut trail = match &ticket.past {
            Some(past) => Trail::clone(&past.trail),
            // A follower that never reached the handler.
            None => Trail { attempt: Some(0), ..ticket.untried(&self.group) },
        };
        trail.origin = Some(record.at.clone());
        trail.origin_timestamp = record.timestamp;
        trail.group = Some(self.group.clone());
        trail.service.clone_from(&self.service);
        trail.instance = Some(self.instance.clone());
        trail.handler = Some(self.handler.clone());
        trail.content_type = record.headers.text("content-type").map(ToOwned::to_owned);
        trail.due = None;
        // Not before its last failure, though the time, which is the brokers', may have been found to be earlier since.
        let failed_at = trail.history.last().map(|last| Timestamp::from_millis(last.at));
        trail.buried_at = failed_at.max(trail.first_failed_at).max(Some(now));
        trail.reason = ticket.burial.map(|burial| burial.reason);
        let leader = ticket.burial.and_then(|burial| burial.leader);
        let named = ticket.past.as_ref().and_then(|past| past.failure.follows.clone());
        trail.leader = leader.map(|offset| Origin { offset, ..record.at.clone() }).or(named);
        trail.key = record.key.clone().filter(|_| self.by_origin);
        let mut headers = record.headers.clone();
        trail.write(&mut headers);
        self.filed(Letter::of(record, headers))
    }

    fn filed(&self, letter: Letter) -> Letter {
        match self.by_origin {
            true => Letter { key: Some(Bytes::from(letter.origin.to_string())), ..letter },
            false => letter,
        }
    }

    /// The letter of a record of a shelf that is no entry: its bytes as they are, and all of its headers.
    #[must_use]
    pub fn of_entry(&self, record: &Record, error: &BadEntry, now: Timestamp) -> Letter {
        let trail = Trail {
            origin: Some(record.at.clone()),
            origin_timestamp: record.timestamp,
            group: Some(self.group.clone()),
            service: self.service.clone(),
            instance: Some(self.instance.clone()),
            error_type: Some("BadEntry".to_owned()),
            error_message: Some(error.to_string()),
            reason: Some(Reason::Undecodable),
            buried_at: Some(now),
            key: record.key.clone().filter(|_| self.by_origin),
            ..Trail::default()
        };
        let (mut ours, mut headers) = (Headers::default(), record.headers.clone());
        trail.write(&mut ours);
        for header in ours.iter() {
            headers.set(&header.name, header.value.clone().unwrap_or_default());
        }
        self.filed(Letter::of(record, headers))
    }
}

impl Letter {
    fn of(record: &Record, headers: Headers) -> Self {
        Self {
            origin: record.at.clone(),
            timestamp: record.timestamp,
            key: record.key.clone(),
            value: record.value.clone(),
            headers,
        }
    }

    /// The same letter with less in it. `expires` is when the original is gone, if that is known.
    #[must_use]
    pub fn shrunk(mut self, size: Size, expires: Option<Timestamp>) -> Self {
        if size >= Size::Short {
            for name in [Name::ErrorStack, Name::ErrorChain, Name::History] {
                self.headers.remove(name.as_str());
            }
        }
        if size == Size::Pointer {
            self.value = None;
            self.headers.set(Name::Pointer.as_str(), self.origin.to_string());
            if let Some(expires) = expires {
                self.headers.set(Name::PointerExpires.as_str(), expires.to_string());
            }
        }
        self
    }

    /// About how many bytes it takes on the wire.
    #[must_use]
    pub fn size(&self) -> usize {
        let length = |bytes: Option<&Bytes>| bytes.map_or(0, Bytes::len);
        let headers =
            self.headers.iter().map(|header| header.name.len() + length(header.value.as_ref()) + 10);
        length(self.key.as_ref()) + length(self.value.as_ref()) + headers.sum::<usize>() + 100
    }
}
