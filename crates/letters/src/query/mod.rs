//! Questions about letters, as plain data, and their answers: a page at a time, newest first unless asked otherwise.

mod candidates;
mod filter;
mod fit;
mod newer;
mod page;
mod row;
mod select;
mod walk;
mod words;

use std::fmt;

use redrive_core::route::Reason;
use redrive_core::{Class, Origin, Timestamp};

use crate::state::State;
use crate::{Dialect, Fingerprint};

pub use filter::{Attempts, Filter, States, named};
pub(crate) use fit::Fit;
pub use fit::pattern;
pub use newer::Marks;
pub use page::{Cursor, Page};
pub use row::Summary;
pub use select::{with_header, without_header};

/// Which letters are meant. What is empty or `None` asks for nothing; of several values any will do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// These letters.
    pub ids: Vec<Origin>,
    /// The letter topic, or the topic that was consumed.
    pub topics: Vec<String>,
    /// The consumer group.
    pub groups: Vec<String>,
    /// The failure group.
    pub failures: Vec<Fingerprint>,
    /// The key.
    pub keys: Vec<Vec<u8>>,
    /// A regular expression that the key, as text, matches somewhere.
    pub key_pattern: Option<String>,
    /// At this time or later.
    pub after: Option<Timestamp>,
    /// Before this time.
    pub before: Option<Timestamp>,
    /// The class of the failure.
    pub classes: Vec<Class>,
    /// Why it is a letter.
    pub reasons: Vec<Reason>,
    /// Who wrote it.
    pub dialects: Vec<Dialect>,
    /// Words of the error's type or message, all of them.
    pub text: Option<String>,
    /// A header of the record, and the values any of which will do; without them, whichever. It is read back from
    /// Kafka.
    pub header: Option<(String, Vec<Vec<u8>>)>,
    /// The business key.
    pub lanes: Vec<Vec<u8>>,
    /// Followers of the record with this origin.
    pub leader: Option<Origin>,
    /// At least so many attempts.
    pub least_attempts: Option<u32>,
    /// At most so many attempts.
    pub most_attempts: Option<u32>,
    /// What is the matter with it.
    pub states: Vec<State>,
    /// In which order.
    pub sort: Sort,
}

/// An order of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The last that became a letter first.
    #[default]
    Newest,
    /// The first that became a letter first.
    Oldest,
    /// The most attempts first, and of those the newest; 32 attempts and more are alike.
    Attempts,
}

impl Query {
    /// Whether it asks for anything but an order.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self { sort: self.sort, ..Self::default() }
    }
}

/// As it is written into jobs and journals.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut add = |name: &str, value: String| parts.push(format!("{name}={value}"));
        self.ids.iter().for_each(|id| add("id", id.to_string()));
        self.topics.iter().for_each(|topic| add("topic", topic.clone()));
        self.groups.iter().for_each(|group| add("group", group.clone()));
        self.failures.iter().for_each(|failure| add("failure", failure.to_string()));
        self.keys.iter().for_each(|key| add("key", shown(key)));
        self.key_pattern.iter().for_each(|pattern| add("key-pattern", pattern.clone()));
        self.after.iter().for_each(|time| add("after", time.to_string()));
        self.before.iter().for_each(|time| add("before", time.to_string()));
        self.classes.iter().for_each(|class| add("class", class.to_string()));
        self.reasons.iter().for_each(|reason| add("reason", reason.to_string()));
        self.dialects.iter().for_each(|dialect| add("dialect", dialect.to_string()));
        self.text.iter().for_each(|text| add("error", format!("{text:?}")));
        self.header.iter().for_each(|(name, value)| {
            add("header", value.first().map_or(name.clone(), |value| format!("{name}:{}", shown(value))));
        });
        self.lanes.iter().for_each(|lane| add("lane", shown(lane)));
        self.leader.iter().for_each(|leader| add("leader", leader.to_string()));
        self.least_attempts.iter().for_each(|least| add("attempts", format!("{least}..")));
        self.most_attempts.iter().for_each(|most| add("attempts", format!("..{most}")));
        self.states.iter().for_each(|state| add("state", state.to_string()));
        f.write_str(if parts.is_empty() { "all" } else { "" })?;
        f.write_str(&parts.join(" "))
    }
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}
