//! A whole record as a line of JSON, and back, with nothing lost: nulls, order and bytes that are no text.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use redrive_core::headers::Headers;
use redrive_core::{Record, Timestamp, Topic};
use redrive_kafka::Outgoing;
use serde_json::{Value, json};

use super::put;

/// A line that cannot be read in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line that was exported: {0}")]
pub struct BadLine(String);

/// A record as JSON. `more` is what is known of it besides; it is not read in again.
#[must_use]
pub fn exported(record: &Record, more: &Value) -> Value {
    let headers = record.headers.iter().map(|header| {
        let mut value = json!({ "name": header.name });
        put(&mut value, "value", header.value.as_deref());
        value
    });
    let mut value = json!({
        "topic": record.at.topic.as_str(),
        "partition": record.at.partition,
        "offset": record.at.offset,
        "timestamp_ms": record.timestamp.map(Timestamp::millis),
        "headers": headers.collect::<Vec<_>>(),
        "letter": more,
    });
    put(&mut value, "key", record.key.as_deref());
    put(&mut value, "value", record.value.as_deref());
    value
}

/// The record of a line, to be written to its topic and partition again.
pub fn imported(line: &str) -> Result<Outgoing, BadLine> {
    let value: Value = serde_json::from_str(line).map_err(|error| BadLine(error.to_string()))?;
    let missing = |name: &str| BadLine(format!("`{name}` is missing or is something else"));
    let topic: Topic = value["topic"]
        .as_str()
        .ok_or_else(|| missing("topic"))?
        .parse()
        .map_err(|error: redrive_core::topic::BadTopic| BadLine(error.to_string()))?;
    let partition = value["partition"].as_i64().and_then(|number| i32::try_from(number).ok());
    let mut headers = Headers::default();
    for header in value["headers"].as_array().ok_or_else(|| missing("headers"))? {
        let name = header["name"].as_str().ok_or_else(|| missing("name"))?;
        headers.push(name.to_owned(), bytes(header, "value")?);
    }
    Ok(Outgoing {
        partition: Some(partition.ok_or_else(|| missing("partition"))?),
        timestamp: value["timestamp_ms"].as_i64().map(Timestamp::from_millis),
        key: bytes(&value, "key")?,
        value: bytes(&value, "value")?,
        headers,
        ..Outgoing::to(topic)
    })
}

fn bytes(value: &Value, name: &str) -> Result<Option<Bytes>, BadLine> {
    let encoded = &value[format!("{name}_base64")];
    match (&value[name], encoded) {
        (Value::String(text), Value::Null) => Ok(Some(Bytes::from(text.clone()))),
        (Value::Null, Value::String(text)) => match BASE64_STANDARD.decode(text) {
            Ok(decoded) => Ok(Some(decoded.into())),
            Err(error) => Err(BadLine(format!("`{name}_base64`: {error}"))),
        },
        (Value::Null, Value::Null) => Ok(None),
        _ => Err(BadLine(format!("`{name}` is neither a text nor null"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some_bytes() -> impl Strategy<Value = Option<Bytes>> {
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12).prop_map(Bytes::from))
    }

    proptest! {
        #[test]
        fn what_is_exported_is_read_in_as_it_was(
            key in some_bytes(), value in some_bytes(), timestamp in proptest::option::of(any::<i64>()),
            headers in proptest::collection::vec(("\\PC{0,8}", some_bytes()), 0..6),
        ) {
            let headers: Headers = headers.into_iter().collect();
            let timestamp = timestamp.map(Timestamp::from_millis);
            let at = "orders.g.dlq/3/7".parse().unwrap();
            let record = Record { at, timestamp, key, value, headers };
            let line = exported(&record, &json!({})).to_string();
            let read = imported(&line).unwrap();
            prop_assert_eq!(read.topic.as_str(), "orders.g.dlq");
            prop_assert_eq!((read.partition, read.timestamp), (Some(3), record.timestamp));
            prop_assert_eq!((read.key, read.value, read.headers), (record.key, record.value, record.headers));
        }

        #[test]
        fn any_line_is_read_or_refused(line in "\\PC{0,60}") {
            let _ = imported(&line);
        }
    }

    #[test]
    fn a_line_that_says_something_else_is_refused_with_the_reason() {
        let refused = [
            ("{}", "topic"),
            (r#"{"topic":"a/b","partition":0,"headers":[]}"#, "'/'"),
            (r#"{"topic":"a","headers":[]}"#, "partition"),
            (r#"{"topic":"a","partition":0,"headers":[{"value":"x"}]}"#, "name"),
            (r#"{"topic":"a","partition":0,"headers":[],"key":7}"#, "key"),
            (r#"{"topic":"a","partition":0,"headers":[],"value_base64":"!"}"#, "value_base64"),
        ];
        for (line, fragment) in refused {
            let error = imported(line).unwrap_err().to_string();
            assert!(error.contains(fragment), "{error}");
        }
    }
}
