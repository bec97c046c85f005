//! What the records of a lane share, where a new group starts, how records wait and are delivered.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::lanes::Followers;
use crate::record::Record;
use crate::route::Exhausted;
use crate::spelling::{Misspelt, nearest};
use crate::time::Timestamp;

/// Where the business key of a record comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OrderBy {
    /// The record's key.
    #[default]
    Key,
    /// The header of this name.
    Header(String),
    /// The value at this JSON pointer in the payload.
    Json(String),
    /// The source partition: all its records, one after the other.
    Partition,
    /// Nowhere: records are independent of each other.
    None,
}

/// Where a group begins that has never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// With the oldest record.
    #[default]
    Earliest,
    /// With what is produced from now on.
    Latest,
    /// With the first record at or after this time.
    At(Timestamp),
}

/// How a record waits that is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delay {
    /// On the shelf.
    #[default]
    Shelf,
    /// In a topic for each delay.
    Ladder,
    /// In one topic, from which it returns.
    Return,
    /// In the shared buckets of the delay service.
    Service,
    /// In a table of PostgreSQL.
    Postgres,
}

/// What is promised about repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// A crash or a rebalance may repeat a record.
    #[default]
    AtLeastOnce,
    /// What is written and the offsets are one transaction.
    ExactlyOnce,
}

/// What an outage stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blocking {
    /// All partitions of the subscription.
    #[default]
    Subscription,
    /// The partition of the record that met it.
    Partition,
}

/// Which partition of the letters a record goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LetterPartition {
    /// The one with the number of its source.
    #[default]
    Same,
    /// The one that its key leads to.
    ByKey,
}

/// What of a record that waits is written to the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payload {
    /// All of it.
    #[default]
    Whole,
    /// Where it stands in its source, from where it is read again.
    Pointer,
}

/// Which HTTP is spoken to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// Over TLS what the endpoint prefers, otherwise 1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    One,
    /// HTTP/2, also without TLS.
    Two,
}

/// What becomes of records whose value is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tombstones {
    /// They are handled like any other.
    #[default]
    Deliver,
    /// They count as handled, and nobody is called.
    Skip,
}

/// How a batch of records is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchFormat {
    /// A line of JSON for each record.
    #[default]
    Ndjson,
    /// A list of CloudEvents.
    CloudEvents,
}

impl OrderBy {
    /// The lane of a record: what it shares with the others that must keep their order. A record that
    /// has no such thing has no lane.
    #[must_use]
    pub fn lane(&self, record: &Record) -> Option<Bytes> {
        match self {
            Self::Key => record.key.clone(),
            Self::Header(name) => record.headers.last(name).cloned(),
            Self::Json(pointer) => {
                let value: serde_json::Value = serde_json::from_slice(record.value.as_ref()?).ok()?;
                match value.pointer(pointer)? {
                    serde_json::Value::Null => None,
                    serde_json::Value::String(text) => Some(Bytes::from(text.clone())),
                    other => Some(Bytes::from(other.to_string())),
                }
            }
            Self::Partition => Some(Bytes::new()),
            Self::None => None,
        }
    }
}

impl Delay {
    /// Whether records of one key keep their order while one of them waits.
    #[must_use]
    pub fn keeps_lanes(self) -> bool {
        match self {
            Self::Shelf | Self::Postgres => true,
            Self::Ladder | Self::Return | Self::Service => false,
        }
    }
}

macro_rules! choices {
    ($($type:ty, $what:literal: $($name:literal = $value:expr),+;)*) => {$(
        impl $type {
            /// The names of all choices, the default first.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl FromStr for $type {
            type Err = Misspelt;

            fn from_str(text: &str) -> Result<Self, Misspelt> {
                match text {
                    $($name => Ok($value),)+
                    _ => Err(unknown(text, $what, Self::NAMES)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(if *self == $value { return f.write_str($name); })+
                Ok(())
            }
        }
    )*};
}

choices! {
    Delay, "way to wait": "shelf" = Self::Shelf, "ladder" = Self::Ladder, "return" = Self::Return,
        "service" = Self::Service, "postgres" = Self::Postgres;
    Blocking, "thing to stop": "subscription" = Self::Subscription, "partition" = Self::Partition;
    LetterPartition, "choice of a partition": "same" = Self::Same, "by-key" = Self::ByKey;
    Payload, "choice of what is written": "whole" = Self::Whole, "pointer" = Self::Pointer;
    HttpVersion, "version of HTTP": "auto" = Self::Auto, "1.1" = Self::One, "2" = Self::Two;
    Tombstones, "choice for tombstones": "deliver" = Self::Deliver, "skip" = Self::Skip;
    BatchFormat, "format of a batch": "ndjson" = Self::Ndjson, "cloudevents" = Self::CloudEvents;
    Delivery, "delivery": "at-least-once" = Self::AtLeastOnce, "exactly-once" = Self::ExactlyOnce;
    Followers, "choice for followers": "pass" = Self::Pass, "hold" = Self::Hold, "bury" = Self::Bury;
    Exhausted, "choice for used-up tries": "bury" = Self::Bury, "shelve" = Self::Shelve, "block" = Self::Block,
        "drop" = Self::Drop;
}

fn unknown(text: &str, what: &str, names: &[&str]) -> Misspelt {
    let list = names.join(", ");
    let help = match nearest(text, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? There are: {list}"),
        None => format!("there are: {list}"),
    };
    Misspelt::new(0..text.len(), format!("`{text}` is not a {what}")).help(help)
}

impl FromStr for OrderBy {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let wrong = |message: &str| {
            Err(Misspelt::new(0..text.len(), message)
                .help("write key, header:NAME, json:/path/to/field, partition or none"))
        };
        match (text, text.split_once(':')) {
            ("key", _) => Ok(Self::Key),
            ("partition", _) => Ok(Self::Partition),
            ("none", _) => Ok(Self::None),
            (_, Some(("header", ""))) => wrong("the header needs a name"),
            (_, Some(("header", name))) => Ok(Self::Header(name.to_owned())),
            (_, Some(("json", pointer))) if pointer.starts_with('/') => Ok(Self::Json(pointer.to_owned())),
            (_, Some(("json", _))) => wrong("a JSON pointer begins with a slash"),
            _ => wrong("not something to order by"),
        }
    }
}

impl fmt::Display for OrderBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("key"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
            Self::Partition => f.write_str("partition"),
            Self::None => f.write_str("none"),
        }
    }
}

impl FromStr for Start {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            _ => match text.parse::<jiff::Timestamp>() {
                Ok(time) => Ok(Self::At(Timestamp::from_millis(time.as_millisecond()))),
                Err(_) => Err(Misspelt::new(0..text.len(), "not a place to start")
                    .help("write earliest, latest or a time such as 2026-11-01T06:00:00Z")),
            },
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::At(time) => match jiff::Timestamp::from_millisecond(time.millis()) {
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{time}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn round_trip<T: FromStr<Err = Misspelt> + fmt::Display + Debug>(texts: &[&str]) {
        for text in texts {
            assert_eq!(text.parse::<T>().unwrap().to_string(), *text);
        }
    }

    #[test]
    fn every_choice_is_printed_as_it_is_read() {
        round_trip::<Delay>(Delay::NAMES);
        round_trip::<Blocking>(Blocking::NAMES);
        round_trip::<LetterPartition>(LetterPartition::NAMES);
        round_trip::<Payload>(Payload::NAMES);
        round_trip::<HttpVersion>(HttpVersion::NAMES);
        round_trip::<Tombstones>(Tombstones::NAMES);
        round_trip::<BatchFormat>(BatchFormat::NAMES);
        round_trip::<Delivery>(Delivery::NAMES);
        round_trip::<Followers>(Followers::NAMES);
        round_trip::<Exhausted>(Exhausted::NAMES);
        round_trip::<OrderBy>(&["key", "none", "partition", "header:order-id", "json:/order/id"]);
        round_trip::<Start>(&["earliest", "latest", "2026-11-01T06:00:00Z"]);
    }

    #[test]
    fn a_lane_is_what_the_records_share() {
        let record = Record {
            at: "orders/3/7".parse().unwrap(),
            timestamp: None,
            key: Some(Bytes::from_static(b"k")),
            value: Some(Bytes::from_static(br#"{"order": {"id": 42, "name": "x", "gone": null}}"#)),
            headers: crate::headers::Headers::from_iter([("h", Some("1")), ("h", Some("2"))]),
        };
        let lane = |text: &str| text.parse::<OrderBy>().unwrap().lane(&record);
        assert_eq!(lane("key").as_deref(), Some(&b"k"[..]));
        assert_eq!(lane("header:h").as_deref(), Some(&b"2"[..]));
        assert_eq!(lane("json:/order/id").as_deref(), Some(&b"42"[..]));
        assert_eq!(lane("json:/order/name").as_deref(), Some(&b"x"[..]));
        assert_eq!(lane("partition").as_deref(), Some(&b""[..]));
        for text in ["none", "header:other", "json:/order/gone", "json:/nothing"] {
            assert_eq!(lane(text), None, "{text}");
        }
        let text = Record { value: Some(Bytes::from_static(b"not json")), ..record.clone() };
        assert_eq!(OrderBy::Json("/order/id".to_owned()).lane(&text), None);
    }

    #[test]
    fn a_wrong_choice_is_refused_with_the_near_one() {
        let help = "shelff".parse::<Delay>().unwrap_err().help.unwrap();
        assert!(help.contains("`shelf`"), "{help}");
        for text in ["", "Key", "header:", "json:id", "keys"] {
            assert!(text.parse::<OrderBy>().is_err(), "{text}");
        }
        for text in ["", "yesterday", "2026-11-01", "2026-13-01T00:00:00Z"] {
            assert!(text.parse::<Start>().is_err(), "{text}");
        }
    }
}
