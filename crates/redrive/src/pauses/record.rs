//! A pause as a record: the key says whose it is, the value what is wanted.

use bytes::Bytes;
use redrive_core::{Record, Timestamp, Topic};
use redrive_kafka::Outgoing;
use serde::{Deserialize, Serialize};

use super::topic;
use crate::status::Pause;

/// How the keys of pauses begin; the topic holds other things, too.
const KEY: &str = "pause/";

/// What somebody wants of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What it consumes.
    pub topic: Topic,
    /// By which group.
    pub group: String,
    /// That it pauses; none: that it goes on.
    pub pause: Option<Pause>,
}

#[derive(Serialize, Deserialize)]
struct Value {
    paused: bool,
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    since_ms: i64,
}

impl Wanted {
    /// As a record of the topic. Without a value the key is as good as never written: it goes on.
    pub(super) fn write(&self) -> Outgoing {
        let value = self.pause.as_ref().map(|pause| Value {
            paused: true,
            by: pause.by.clone(),
            reason: pause.reason.clone(),
            since_ms: pause.since.millis(),
        });
        let value = value.and_then(|value| serde_json::to_vec(&value).ok());
        Outgoing {
            key: Some(Bytes::from(format!("{KEY}{}/{}", self.topic, self.group))),
            value: value.map(Bytes::from),
            ..Outgoing::to(topic())
        }
    }

    /// What a record of the topic says; none if it is not of ours, or of a form that this version does not know.
    pub(super) fn read(record: &Record) -> Option<Self> {
        let key = std::str::from_utf8(record.key.as_deref()?).ok()?;
        let (topic, group) = key.strip_prefix(KEY)?.split_once('/')?;
        let pause = match record.value.as_deref() {
            None => None,
            Some(value) => {
                let Value { paused, by, reason, since_ms } = serde_json::from_slice(value).ok()?;
                paused.then(|| Pause { by, reason, since: Timestamp::from_millis(since_ms) })
            }
        };
        Some(Self { topic: topic.parse().ok()?, group: group.to_owned(), pause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::headers::Headers;

    fn written(wanted: &Wanted) -> Record {
        let Outgoing { key, value, .. } = wanted.write();
        let at = "redrive.state/0/7".parse().unwrap();
        Record { at, timestamp: None, key, value, headers: Headers::default() }
    }

    #[test]
    fn what_is_wanted_is_read_as_it_was_written() {
        let pause = Pause {
            by: "ann".into(),
            reason: Some("a \"bad\" day".into()),
            since: Timestamp::from_millis(5),
        };
        for pause in [None, Some(pause.clone()), Some(Pause { reason: None, ..pause })] {
            // A group may have any name at all.
            let wanted = Wanted { topic: "orders".parse().unwrap(), group: "a/b c".to_owned(), pause };
            assert_eq!(Wanted::read(&written(&wanted)), Some(wanted));
        }
    }

    #[test]
    fn what_is_not_ours_says_nothing() {
        let wanted = Wanted { topic: "orders".parse().unwrap(), group: "g".to_owned(), pause: None };
        let ours = written(&wanted);
        for key in [None, Some("letters/orders/g"), Some("pause/orders"), Some("pause//g")] {
            let record = Record { key: key.map(Bytes::from), ..ours.clone() };
            assert_eq!(Wanted::read(&record), None, "{key:?}");
        }
        let record = Record { value: Some(Bytes::from_static(b"{}")), ..ours };
        assert_eq!(Wanted::read(&record), None);
    }
}
