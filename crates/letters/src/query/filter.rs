//! Which letters are meant, as people write it: on a command line, in an address, in a document.

use redrive_core::route::Reason;
use redrive_core::{Class, Origin, Timestamp};

use super::Query;
use super::words::Words;
use crate::state::{State, UnknownState};
use crate::{Dialect, Fingerprint, When};

/// Which letters are meant. What is empty or `None` asks for nothing; of several values any will do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// These letters.
    pub ids: Vec<Origin>,
    /// The topic that was consumed, or the letter topic.
    pub topics: Vec<String>,
    /// The consumer group, or the failure group.
    pub groups: Vec<String>,
    /// The failure group.
    pub failures: Vec<Fingerprint>,
    /// The key, as text or as `0x` and hexadecimal digits.
    pub keys: Vec<String>,
    /// A regular expression that the key matches somewhere.
    pub key_pattern: Option<String>,
    /// The business key, written as a key is.
    pub lanes: Vec<String>,
    /// At this time or later. A bare length is that long ago: nothing became a letter in the future.
    pub after: Option<When>,
    /// Before this time, written as the other.
    pub before: Option<When>,
    /// The class of the failure.
    pub classes: Vec<Class>,
    /// Why it is a letter.
    pub reasons: Vec<Reason>,
    /// Words of the error.
    pub text: Option<String>,
    /// A header, `NAME` or `NAME=VALUE`; the value is written as a key is.
    pub header: Option<String>,
    /// How many attempts.
    pub attempts: Option<Attempts>,
    /// What is the matter with it.
    pub states: Vec<States>,
    /// Who wrote it.
    pub dialects: Vec<Dialect>,
}

/// A state, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// This one.
    One(State),
    /// Any.
    All,
}

/// A number of attempts, or a range of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// At least so many.
    pub least: Option<u32>,
    /// At most so many.
    pub most: Option<u32>,
}

impl Filter {
    /// Everything that can be asked for by name, and what it means.
    pub const NAMES: [(&'static str, &'static str); 18] = [
        ("id", "only these letters: topic/partition/offset"),
        ("topic", "the topic that was consumed, or the letter topic"),
        ("group", "the consumer group, or the failure group (f1-...)"),
        ("failure", "the failure group"),
        ("key", "the key, as text or as 0x and hexadecimal digits"),
        ("key_pattern", "a regular expression that the key matches somewhere"),
        ("lane", "the business key"),
        ("since", "letters of the last so long, or since then: 2h, 3d, 2026-11-01"),
        ("after", "letters of this time or later: 2026-11-01T06:00:00Z, 2026-11-01, 2h ago"),
        ("before", "letters from before this time: 30d ago"),
        ("class", "the class of the failure"),
        ("reason", "why it is a letter: permanent, exhausted, expired, follower and so on"),
        ("why", "the same as `reason`, as the command line calls it"),
        ("error", "words that the error says; in double quotes side by side"),
        ("header", "a header, NAME or NAME=VALUE; it is looked for in Kafka"),
        ("attempts", "how many attempts: 3, 3.., ..5, 3..5"),
        ("state", "open, replaying, replayed, resolved, purged, or all"),
        ("dialect", "who wrote it: redrive, spring, connect and so on"),
    ];

    /// Asks for one thing more, by its name. False if nothing is called so.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "id" => self.ids.push(read(value)?),
            "topic" => self.topics.push(value.to_owned()),
            "group" => self.groups.push(value.to_owned()),
            "failure" => self.failures.push(read(value)?),
            "key" => self.keys.push(value.to_owned()),
            "key_pattern" => once(&mut self.key_pattern, value.to_owned())?,
            "lane" => self.lanes.push(value.to_owned()),
            "since" => once(&mut self.after, value.parse()?)?,
            "after" => once(&mut self.after, value.parse()?)?,
            "before" => once(&mut self.before, value.parse()?)?,
            "class" => self.classes.push(read(value)?),
            "reason" | "why" => self.reasons.push(read(value)?),
            "error" => once(&mut self.text, value.to_owned())?,
            "header" => once(&mut self.header, value.to_owned())?,
            "attempts" => once(&mut self.attempts, value.parse()?)?,
            "state" => self.states.push(value.parse()?),
            "dialect" => self.dialects.push(read(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What nobody can mean: the name of it, and why.
    pub fn nonsense(&self, now: Timestamp) -> Option<(&'static str, String)> {
        let times = self.after.zip(self.before);
        if let Some((after, before)) = times
            && after.past().at(now) >= before.past().at(now)
        {
            return Some((
                "before",
                "it is not later than the time from which on letters are asked for".to_owned(),
            ));
        }
        if self.header.as_ref().is_some_and(|header| header.is_empty() || header.starts_with('=')) {
            return Some(("header", "it has no name; write NAME or NAME=VALUE".to_owned()));
        }
        if let Some(text) = self.text.as_ref().filter(|text| Words::of(text).question().is_none()) {
            return Some(("error", format!("there is no word in `{text}`; write words that the error says")));
        }
        let empty = |names: &[String]| names.iter().any(String::is_empty);
        let named = [("topic", &self.topics), ("group", &self.groups)];
        let (name, _) = named.into_iter().find(|(_, values)| empty(values))?;
        Some((name, "it is empty; write a name, or leave it out".to_owned()))
    }

    /// The question, as of now. Without a state, letters in `usual` states are meant.
    #[must_use]
    pub fn query(&self, usual: &[State], now: Timestamp) -> Query {
        let bytes = |names: &[String]| names.iter().flat_map(|name| named(name)).collect();
        let failures = self.groups.iter().filter_map(|group| group.parse().ok());
        let is_failure = |group: &String| group.parse::<Fingerprint>().is_ok();
        let named = self.states.iter().filter_map(|one| match one {
            States::One(state) => Some(*state),
            States::All => None,
        });
        let states = match self.states.as_slice() {
            [] => usual.to_vec(),
            some if some.contains(&States::All) => Vec::new(),
            _ => named.collect(),
        };
        let header = self.header.as_ref().map(|header| match header.split_once('=') {
            Some((name, value)) => (name.to_owned(), self::named(value)),
            None => (header.clone(), Vec::new()),
        });
        Query {
            ids: self.ids.clone(),
            topics: self.topics.clone(),
            groups: self.groups.iter().filter(|group| !is_failure(group)).cloned().collect(),
            failures: self.failures.iter().copied().chain(failures).collect(),
            keys: bytes(&self.keys),
            key_pattern: self.key_pattern.clone(),
            after: self.after.map(|time| time.past().at(now)),
            before: self.before.map(|time| time.past().at(now)),
            classes: self.classes.clone(),
            reasons: self.reasons.clone(),
            dialects: self.dialects.clone(),
            text: self.text.clone(),
            header,
            lanes: bytes(&self.lanes),
            leader: None,
            least_attempts: self.attempts.and_then(|attempts| attempts.least),
            most_attempts: self.attempts.and_then(|attempts| attempts.most),
            states,
            sort: super::Sort::default(),
        }
    }
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err("it is given more than once, or with another that means the same".to_owned()),
    }
}

/// Bytes that a person names: as text, or as `0x` and hexadecimal digits. Each that it may mean.
#[must_use]
pub fn named(text: &str) -> Vec<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() % 2 == 0 && digits.is_ascii());
    let decoded = digits.and_then(|digits| {
        let pairs = (0..digits.len()).step_by(2);
        pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect::<Option<Vec<u8>>>()
    });
    [text.as_bytes().to_vec()].into_iter().chain(decoded).collect()
}

impl std::str::FromStr for Attempts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| "write 3, 3.., ..5 or 3..5".to_owned()),
        };
        let (least, most): (Option<u32>, Option<u32>) = match text.split_once("..") {
            Some((least, most)) => (number(least)?, number(most)?),
            None => (number(text)?, number(text)?),
        };
        match (least, most) {
            (None, None) => Err("write 3, 3.., ..5 or 3..5".to_owned()),
            (Some(least), Some(most)) if least > most => {
                Err(format!("it ends before it begins; write {most}..{least}"))
            }
            (least, most) => Ok(Self { least, most }),
        }
    }
}

impl std::str::FromStr for States {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            text => text.parse().map(Self::One).map_err(|error: UnknownState| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_a_number_or_a_range() {
        let attempts = |text: &str| text.parse::<Attempts>().map(|one| (one.least, one.most));
        assert_eq!(attempts("3"), Ok((Some(3), Some(3))));
        assert_eq!(
            (attempts("3.."), attempts("..5"), attempts("3..5")),
            (Ok((Some(3), None)), Ok((None, Some(5))), Ok((Some(3), Some(5))),)
        );
        for nonsense in ["many", "3...5", "", "..", "5..3"] {
            assert!(attempts(nonsense).is_err(), "{nonsense}");
        }
        assert_eq!(("all".parse(), "open".parse()), (Ok(States::All), Ok(States::One(State::Open))));
        assert!("shut".parse::<States>().is_err());
    }

    #[test]
    fn what_nobody_can_mean_is_named() {
        let now = Timestamp::from_millis(10_000_000);
        let nonsense = |asked: &[(&str, &str)]| {
            let mut filter = Filter::default();
            asked.iter().for_each(|(name, value)| assert_eq!(filter.set(name, value), Ok(true)));
            filter.nonsense(now).map(|(name, _)| name)
        };
        assert_eq!(nonsense(&[("since", "1h"), ("before", "2h")]), Some("before"));
        assert_eq!(nonsense(&[("since", "2h"), ("before", "1h")]), None);
        assert_eq!(nonsense(&[("header", "=x")]), Some("header"));
        assert_eq!(nonsense(&[("error", " - ")]), Some("error"), "it would mean all letters");
        assert_eq!(nonsense(&[("topic", "")]), Some("topic"));
        assert_eq!(nonsense(&[("key", ""), ("header", "a=b"), ("error", "no")]), None);
    }

    #[test]
    fn bytes_are_named_as_text_or_by_their_digits() {
        assert!(named("0x00ff").contains(&vec![0, 255]));
        assert_eq!(named("0x0g"), [b"0x0g".to_vec()]);
    }

    #[test]
    fn a_length_is_so_long_ago_wherever_letters_are_asked_for() {
        let now = Timestamp::from_millis(10_000_000);
        for name in ["since", "after", "before"] {
            for value in ["1h", "-1h", "1h ago"] {
                let mut filter = Filter::default();
                filter.set(name, value).unwrap();
                let query = filter.query(&[], now);
                let time = if name == "before" { query.before } else { query.after };
                assert_eq!(time, Some(Timestamp::from_millis(6_400_000)), "{name} {value}");
            }
        }
    }

    #[test]
    fn everything_that_has_a_name_can_be_asked_for_by_it() {
        let values = [
            ("id", "orders.g.dlq/0/1"),
            ("failure", "f1-kz56nyes2xse"),
            ("since", "2h"),
            ("after", "-2h"),
            ("before", "now"),
            ("class", "permanent"),
            ("reason", "exhausted"),
            ("why", "exhausted"),
            ("attempts", "3.."),
            ("state", "all"),
            ("dialect", "spring"),
        ];
        for (name, _) in Filter::NAMES {
            let value = values.iter().find(|(one, _)| *one == name).map_or("x", |(_, value)| value);
            let mut filter = Filter::default();
            let set = filter.set(name, value);
            assert_eq!(set, Ok(true), "{name}");
        }
        assert_eq!(Filter::default().set("colour", "red"), Ok(false));
        let mut filter = Filter::default();
        assert!(filter.set("since", "2h").is_ok() && filter.set("after", "-1h").is_err());
    }
}
