//! The keys of records in `redrive.state` that this crate reads and writes. The topic holds other things, too.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a job: letters and digits, in this cluster for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// A text that cannot be the name of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a job; redrive replay list shows those there are")]
pub struct BadJobId(String);

impl JobId {
    /// A name that nothing else has, from this much chance.
    #[must_use]
    pub fn by(chance: u64) -> Self {
        // Neither 0 nor 1, which look like letters.
        const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let digit = |place: u32| DIGITS[usize::try_from(chance >> (5 * place) & 31).unwrap_or(0)];
        Self((0..10).map(|place| char::from(digit(place))).collect())
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What fences off every other process that runs this job.
    #[must_use]
    pub fn transactional_id(&self) -> String {
        format!("redrive-job-{}", self.0)
    }
}

impl FromStr for JobId {
    type Err = BadJobId;

    fn from_str(text: &str) -> Result<Self, BadJobId> {
        let is_good = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_good { Ok(Self(text.to_owned())) } else { Err(BadJobId(text.to_owned())) }
    }
}

impl TryFrom<String> for JobId {
    type Error = BadJobId;

    fn try_from(text: String) -> Result<Self, BadJobId> {
        text.parse()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a record of the topic is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A chunk of a job's selection.
    Selection(JobId, u32),
    /// That a job has begun.
    Begun(JobId),
    /// How far it came.
    Mark(JobId),
    /// What is wanted of it.
    Wish(JobId),
    /// That it is over.
    End(JobId),
    /// Which process goes on with it.
    Turn(JobId),
    /// Letters that it wrote again elsewhere, some at a time.
    Moved(JobId, u32),
    /// What became of a letter, by its number in the job.
    Outcome(JobId, u64),
    /// What people made of a failure group, by its fingerprint.
    Group(String),
    /// The last entry of a writer in the journal.
    JournalHead(String),
    /// Which process of a writer writes next.
    JournalTurn(String),
}

impl Key {
    /// The key of a record; none if it is not one of these.
    #[must_use]
    pub fn read(key: &[u8]) -> Option<Self> {
        let key = std::str::from_utf8(key).ok()?;
        let (kind, rest) = key.split_once('/')?;
        match kind {
            "job" => {
                let (id, part) = rest.split_once('/')?;
                let id = id.parse().ok()?;
                match part {
                    "begun" => Some(Self::Begun(id)),
                    "mark" => Some(Self::Mark(id)),
                    "wish" => Some(Self::Wish(id)),
                    "end" => Some(Self::End(id)),
                    "turn" => Some(Self::Turn(id)),
                    part => match part.split_once('/')? {
                        ("selection", chunk) => Some(Self::Selection(id, number(chunk)?)),
                        ("moved", some) => Some(Self::Moved(id, number(some)?)),
                        _ => None,
                    },
                }
            }
            "outcome" => {
                let (id, letter) = rest.split_once('/')?;
                Some(Self::Outcome(id.parse().ok()?, number(letter)?))
            }
            "group-state" if !rest.is_empty() => Some(Self::Group(rest.to_owned())),
            "journal-head" if !rest.is_empty() => Some(Self::JournalHead(rest.to_owned())),
            "journal-turn" if !rest.is_empty() => Some(Self::JournalTurn(rest.to_owned())),
            _ => None,
        }
    }
}

/// A number in its one spelling: two keys that mean the same would outlive each other.
fn number<N: FromStr + ToString>(text: &str) -> Option<N> {
    text.parse::<N>().ok().filter(|number| number.to_string() == text)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Selection(id, chunk) => write!(f, "job/{id}/selection/{chunk}"),
            Self::Begun(id) => write!(f, "job/{id}/begun"),
            Self::Mark(id) => write!(f, "job/{id}/mark"),
            Self::Wish(id) => write!(f, "job/{id}/wish"),
            Self::End(id) => write!(f, "job/{id}/end"),
            Self::Turn(id) => write!(f, "job/{id}/turn"),
            Self::Moved(id, some) => write!(f, "job/{id}/moved/{some}"),
            Self::Outcome(id, letter) => write!(f, "outcome/{id}/{letter}"),
            Self::Group(fingerprint) => write!(f, "group-state/{fingerprint}"),
            Self::JournalHead(writer) => write!(f, "journal-head/{writer}"),
            Self::JournalTurn(writer) => write!(f, "journal-turn/{writer}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Key> {
        let id = || any::<u64>().prop_map(JobId::by);
        prop_oneof![
            (id(), any::<u32>()).prop_map(|(id, chunk)| Key::Selection(id, chunk)),
            (id(), any::<u32>()).prop_map(|(id, some)| Key::Moved(id, some)),
            id().prop_map(Key::Begun),
            id().prop_map(Key::Mark),
            id().prop_map(Key::Wish),
            id().prop_map(Key::End),
            id().prop_map(Key::Turn),
            (id(), any::<u64>()).prop_map(|(id, letter)| Key::Outcome(id, letter)),
            "\\PC{1,20}".prop_map(Key::Group),
            "\\PC{1,20}".prop_map(Key::JournalHead),
            "\\PC{1,20}".prop_map(Key::JournalTurn),
        ]
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(key in keys()) {
            prop_assert_eq!(Key::read(key.to_string().as_bytes()), Some(key));
        }

        #[test]
        fn any_bytes_are_a_key_in_its_one_spelling_or_none(bytes in "(job|outcome|group-state)?/\\PC{0,20}") {
            if let Some(key) = Key::read(bytes.as_bytes()) {
                prop_assert_eq!(key.to_string(), bytes);
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_none() {
        for key in
            ["pause/orders/billing", "job/a", "job/a/", "job/a/selection/01", "job/a b/mark", "outcome/a/+1"]
        {
            assert_eq!(Key::read(key.as_bytes()), None, "{key}");
        }
    }
}
