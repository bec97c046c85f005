//! Letters as lines of JSON: what is known of them, for other programs; and whole records without loss, to be read
//! in again.

mod documents;
mod record;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use redrive_core::Timestamp;
use serde_json::{Value, json};

use crate::query::Summary;
use crate::state::Outcome;

pub use documents::{bar, group, job, job_in_full, plan};
pub use record::{BadLine, exported, imported};

/// A time as programs and people read it.
#[must_use]
pub fn moment(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.millis())
        .map_or_else(|_| time.to_string(), |time| time.to_string())
}

/// What the index knows of a letter, as JSON.
#[must_use]
pub fn metadata(letter: &Summary) -> Value {
    let mut value = json!({
        "id": letter.at.to_string(),
        "topic": letter.at.topic.as_str(),
        "partition": letter.at.partition,
        "offset": letter.at.offset,
        "time": moment(letter.time),
        "time_ms": letter.time.millis(),
        "dialect": letter.dialect.name(),
        "source": { "topic": letter.source, "partition": letter.partition, "offset": letter.offset },
        "group": letter.group,
        "class": letter.class.map(redrive_core::Class::name),
        "reason": letter.reason.map(|reason| reason.to_string()),
        "error_type": letter.error_type,
        "error_message": letter.message,
        "failure": letter.failure.to_string(),
        "attempts": letter.attempts,
        "replays": letter.replays,
        "leader": letter.leader,
        "size": letter.size,
        "tombstone": letter.is_tombstone,
        "pointer": letter.is_pointer,
        "state": letter.state.name(),
        "job": letter.job,
        "outcome": letter.outcome.map(Outcome::name),
    });
    put(&mut value, "key", letter.key.as_deref());
    put(&mut value, "lane", letter.lane.as_deref());
    value
}

/// The same as two lines of a bulk request to Elasticsearch.
#[must_use]
pub fn bulk(letter: &Summary, index: &str) -> String {
    let mut value = metadata(letter);
    value["@timestamp"] = moment(letter.time).into();
    value["payload"] = payload(letter).into();
    let deed = json!({ "index": { "_index": index, "_id": letter.at.to_string() } });
    format!("{deed}\n{value}\n")
}

/// How to get at the payload of a letter.
#[must_use]
pub fn payload(letter: &Summary) -> String {
    format!("redrive dlq show {} --payload FILE", letter.at)
}

/// Bytes as text where they are text, otherwise in base64 under another name.
pub fn put(value: &mut Value, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => value[name] = Value::Null,
        Some((Ok(text), _)) => value[name] = text.into(),
        Some((Err(_), bytes)) => value[format!("{name}_base64")] = BASE64_STANDARD.encode(bytes).into(),
    }
}
