//! Who wrote a letter, told by its headers, record by record; what the headers mean; and which of them are the
//! user's. The names and encodings are those of the programs that write them.

mod cloud_stream;
mod connect;
mod redrive;
mod seeds;
mod share;
mod smallrye;
mod spring;
mod streams;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;
use std::str::FromStr;

use redrive_core::headers::{Headers, Name};

use crate::letter::{Letter, REPLAYED_AT};
use values::Values;

/// Whose headers a letter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Redrive's own.
    Redrive,
    /// Spring Kafka: the dead-letter recoverer, or retry topics.
    Spring,
    /// Spring Cloud Stream.
    CloudStream,
    /// Kafka Connect.
    Connect,
    /// Kafka Streams.
    Streams,
    /// Share groups.
    Share,
    /// SmallRye, as Quarkus has it.
    Smallrye,
    /// The headers of well-known how-tos: `X_DELAY_...`, `dlq-reason`.
    Seeds,
    /// Nobody that is known.
    Unknown,
}

impl Dialect {
    /// Every dialect; where a letter has the headers of several, the first of them is taken for the writer.
    pub const ALL: [Self; 9] = [
        Self::Redrive,
        Self::Spring,
        Self::CloudStream,
        Self::Connect,
        Self::Streams,
        Self::Share,
        Self::Smallrye,
        Self::Seeds,
        Self::Unknown,
    ];

    /// As it is named everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Spring => "spring",
            Self::CloudStream => "spring-cloud-stream",
            Self::Connect => "connect",
            Self::Streams => "streams",
            Self::Share => "share-group",
            Self::Smallrye => "smallrye",
            Self::Seeds => "seeds",
            Self::Unknown => "unknown",
        }
    }

    /// Whose letter has these headers.
    #[must_use]
    pub fn of(headers: &Headers) -> Self {
        let marks = headers.iter().filter_map(|header| Self::marked_by(&header.name));
        marks.min().unwrap_or(Self::Unknown)
    }

    /// Whose letter it is that has a header of this name, if the name tells.
    fn marked_by(name: &str) -> Option<Self> {
        // The first byte decides about nearly all headers of users.
        match name.as_bytes().first()? {
            b'r' if redrive::marks(name) => Some(Self::Redrive),
            b'k' | b'r' if spring::marks(name) => Some(Self::Spring),
            b'x' if cloud_stream::owns(name) => Some(Self::CloudStream),
            b'_' if connect::owns(name) => Some(Self::Connect),
            b'_' if streams::owns(name) => Some(Self::Streams),
            b'_' if share::owns(name) => Some(Self::Share),
            b'd' if smallrye::owns(name) => Some(Self::Smallrye),
            b'X' | b'd' | b'e' | b'f' if seeds::marks(name) => Some(Self::Seeds),
            _ => None,
        }
    }

    /// Puts into a letter what the headers say.
    pub(crate) fn read(self, headers: &Headers, letter: &mut Letter) {
        let mut values = Values::of(headers);
        match self {
            Self::Redrive => return redrive::read(headers, letter),
            Self::Spring => spring::read(&mut values, letter),
            Self::CloudStream => cloud_stream::read(&mut values, letter),
            Self::Connect => connect::read(&mut values, letter),
            Self::Streams => streams::read(&mut values, letter),
            Self::Share => share::read(&mut values, letter),
            Self::Smallrye => smallrye::read(&mut values, letter),
            Self::Seeds => seeds::read(&mut values, letter),
            Self::Unknown => {}
        }
        letter.problems.append(&mut values.problems);
    }

    /// The headers that the user put there, in order: without what this dialect adds when it fails, and without
    /// Redrive's. What another program added before is part of the record that failed.
    #[must_use]
    pub fn strip(self, headers: &Headers) -> Headers {
        let users = headers.iter().filter(|header| !self.owns(&header.name) && !is_ours(&header.name));
        users.map(|header| (header.name.clone(), header.value.clone())).collect()
    }

    fn owns(self, name: &str) -> bool {
        match self {
            Self::Redrive | Self::Unknown => false,
            Self::Spring => spring::owns(name),
            Self::CloudStream => cloud_stream::owns(name),
            Self::Connect => connect::owns(name),
            Self::Streams => streams::owns(name),
            Self::Share => share::owns(name),
            Self::Smallrye => smallrye::owns(name),
            Self::Seeds => seeds::owns(name),
        }
    }
}

fn is_ours(name: &str) -> bool {
    Name::of(name).is_some() || name == REPLAYED_AT
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a dialect; there are redrive, spring, spring-cloud-stream, connect, streams, share-group, smallrye, seeds, unknown"
)]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}
