//! What became of a letter that was sent back: a record of `redrive.state`, the newest of a letter being what is so.

use bytes::Bytes;
use redrive_core::{Origin, Record, Timestamp};
use redrive_kafka::Outgoing;
use serde::{Deserialize, Serialize};

use crate::pauses;

/// How the keys of reports begin.
const KEY: &str = "outcome/";

/// What became of a letter that was sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The job that sent it.
    pub job: String,
    /// The number of the letter in the job's selection, from 0.
    pub number: u64,
    /// What became of it.
    pub what: What,
    /// When, by the worker.
    pub at: Timestamp,
    /// The worker's instance.
    pub by: String,
    /// Where it is a letter again, if it is and that is known.
    pub letter: Option<Origin>,
    /// Why it was not taken, if it was not.
    pub why: Option<String>,
}

/// What became of it, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It was handled.
    Handled,
    /// It waits on the shelf again.
    Waiting,
    /// It is a dead letter again.
    Buried,
    /// A rule gave it up.
    Dropped,
    /// Its worker did not take it: it still waits or is in hand, or was never consumed there.
    Refused,
    /// It was not sent after all: gone, or not to be sent. The job itself says so, no worker.
    Skipped,
}

#[derive(Serialize, Deserialize)]
struct Value {
    what: What,
    at: i64,
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Report {
    /// The job and the number that the header `redrive-replay` names.
    #[must_use]
    pub fn of(replay: &str) -> Option<(String, u64)> {
        let (job, number) = replay.rsplit_once('/')?;
        Some((job.to_owned(), number.parse().ok()?)).filter(|(job, _)| !job.is_empty())
    }

    /// As a record of the topic.
    #[must_use]
    pub fn write(&self) -> Outgoing {
        let value = Value {
            what: self.what,
            at: self.at.millis(),
            by: self.by.clone(),
            letter: self.letter.as_ref().map(ToString::to_string),
            why: self.why.clone(),
        };
        Outgoing {
            key: Some(Bytes::from(format!("{KEY}{}/{}", self.job, self.number))),
            value: serde_json::to_vec(&value).ok().map(Bytes::from),
            ..Outgoing::to(pauses::topic())
        }
    }

    /// What a record of the topic says; none if it is not a report.
    #[must_use]
    pub fn read(record: &Record) -> Option<Self> {
        let key = std::str::from_utf8(record.key.as_deref()?).ok()?;
        let (job, number) = Self::of(key.strip_prefix(KEY)?)?;
        let Value { what, at, by, letter, why } = serde_json::from_slice(record.value.as_deref()?).ok()?;
        let letter = letter.and_then(|letter| letter.parse().ok());
        Some(Self { job, number, what, at: Timestamp::from_millis(at), by, letter, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::headers::Headers;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = Report {
            job: "a/b".into(),
            number: 12,
            what: What::Buried,
            at: Timestamp::from_millis(5),
            by: "one".into(),
            letter: "orders.g.dlq/0/3".parse().ok(),
            why: None,
        };
        let Outgoing { key, value, .. } = report.write();
        assert_eq!(key.as_deref(), Some(&b"outcome/a/b/12"[..]));
        assert_eq!(
            value.as_deref(),
            Some(&br#"{"what":"buried","at":5,"by":"one","letter":"orders.g.dlq/0/3"}"#[..])
        );
        let at = "redrive.state/0/1".parse().unwrap();
        let record = Record { at, timestamp: None, key, value, headers: Headers::default() };
        assert_eq!(Report::read(&record), Some(report));
    }

    #[test]
    fn what_names_no_letter_of_a_job_is_no_report() {
        for replay in ["", "job", "job/", "/3", "job/-1", "job/x"] {
            assert_eq!(Report::of(replay), None, "{replay}");
        }
    }
}
