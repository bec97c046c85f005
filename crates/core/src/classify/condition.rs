//! One thing that a rule asks of a cause or its record, and which conditions imply which.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use regex::Regex;

use super::Subject;
use crate::failure::Cause;
use crate::spelling::Misspelt;
use crate::topic::Topic;

/// A question about a cause or its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The type has exactly this name.
    Type(String),
    /// The name of the type ends like this.
    TypeSuffix(String),
    /// The message contains this text.
    Message(String),
    /// The message matches this expression somewhere.
    Pattern(Pattern),
    /// The status is one of these.
    Status(Statuses),
    /// The code is exactly this.
    Code(String),
    /// The record came from this topic.
    Topic(Topic),
    /// The record has this header, with this value if one is given.
    Header {
        /// Its name.
        name: String,
        /// Its value as text.
        value: Option<String>,
    },
}

/// A regular expression that can be compared: by how it is written.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// A range of statuses: `404`, `5xx` or `500-599`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(RangeInclusive<u16>);

impl Condition {
    pub(super) fn holds(&self, cause: &Cause, subject: Subject<'_>) -> bool {
        match self {
            Self::Type(name) => cause.type_name == *name,
            Self::TypeSuffix(suffix) => cause.type_name.ends_with(suffix),
            Self::Message(fragment) => cause.message.contains(fragment),
            Self::Pattern(pattern) => pattern.0.is_match(&cause.message),
            Self::Status(statuses) => cause.status.is_some_and(|status| statuses.0.contains(&status)),
            Self::Code(code) => cause.code.as_ref() == Some(code),
            Self::Topic(topic) => subject.topic == topic,
            Self::Header { name, value: None } => subject.headers.all(name).next().is_some(),
            Self::Header { name, value: Some(wanted) } => {
                subject.headers.all(name).any(|found| found == Some(wanted.as_bytes()))
            }
        }
    }

    /// Whether everything for which `self` holds is something for which `other` holds.
    pub(super) fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Type(name) | Self::TypeSuffix(name), Self::TypeSuffix(suffix)) => name.ends_with(suffix),
            (Self::Message(long), Self::Message(short)) => long.contains(short),
            (Self::Status(few), Self::Status(many)) => few.within(many),
            (Self::Header { name: a, .. }, Self::Header { name: b, value: None }) => a == b,
            (a, b) => a == b,
        }
    }

    /// Whether no cause and record can satisfy both.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Type(a), Self::Type(b)) => a != b,
            (Self::Type(name), Self::TypeSuffix(suffix)) | (Self::TypeSuffix(suffix), Self::Type(name)) => {
                !name.ends_with(suffix)
            }
            (Self::TypeSuffix(a), Self::TypeSuffix(b)) => !a.ends_with(b) && !b.ends_with(a),
            (Self::Status(a), Self::Status(b)) => a.0.start() > b.0.end() || b.0.start() > a.0.end(),
            (Self::Code(a), Self::Code(b)) => a != b,
            (Self::Topic(a), Self::Topic(b)) => a != b,
            _ => false,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(name) => write!(f, "type {name}"),
            Self::TypeSuffix(suffix) => write!(f, "type *{suffix}"),
            Self::Message(fragment) => write!(f, "message containing {fragment:?}"),
            Self::Pattern(pattern) => write!(f, "message matching /{}/", pattern.0),
            Self::Status(statuses) => write!(f, "status {statuses}"),
            Self::Code(code) => write!(f, "code {code}"),
            Self::Topic(topic) => write!(f, "topic {topic}"),
            Self::Header { name, value: None } => write!(f, "header {name}"),
            Self::Header { name, value: Some(value) } => write!(f, "header {name}={value}"),
        }
    }
}

impl Pattern {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The text with every match of it replaced.
    pub(crate) fn replace_all(&self, text: &str, by: &str) -> String {
        self.0.replace_all(text, regex::NoExpand(by)).into_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl FromStr for Pattern {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        Regex::new(text).map(Self).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or(&why).trim_start_matches("error: ").to_owned();
            Misspelt::new(0..text.len(), format!("not a regular expression: {why}"))
        })
    }
}

impl Statuses {
    fn within(&self, other: &Self) -> bool {
        other.0.start() <= self.0.start() && self.0.end() <= other.0.end()
    }
}

impl FromStr for Statuses {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let status = |part: &str| part.parse::<u16>().ok().filter(|status| (100..=599).contains(status));
        let range = match text.split_once('-') {
            Some((from, to)) => status(from.trim()).zip(status(to.trim())),
            None => match text.strip_suffix("xx") {
                Some(hundred) => status(&format!("{hundred}00")).map(|from| (from, from + 99)),
                None => status(text.trim()).map(|one| (one, one)),
            },
        };
        range.filter(|(from, to)| from <= to).map(|(from, to)| Self(from..=to)).ok_or_else(|| {
            Misspelt::new(0..text.len(), format!("`{text}` is not a status"))
                .help("write a status such as 404, a hundred such as 5xx, or a range such as 500-599")
        })
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.0.start(), self.0.end());
        if from == to { write!(f, "{from}") } else { write!(f, "{from}-{to}") }
    }
}
