//! A record as JSON, for those who get several at a time or one a line: nothing of it is lost.
//!
//! Bytes are `NAME` as text where they are UTF-8, `NAME_base64` where they are not, and `NAME` as null where
//! there are none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redrive::{Origin, Received};
use serde_json::{Map, Value, json};

use crate::traces::Carried;

/// The record, with all it carries, as an object; with the span of the attempt, if there is one.
pub(crate) fn record(received: &Received, origin: &Origin, trace: Option<&Carried>) -> Value {
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(origin.to_string()));
    object.insert("topic".to_owned(), json!(origin.topic.as_str()));
    object.insert("partition".to_owned(), json!(origin.partition));
    object.insert("offset".to_owned(), json!(origin.offset));
    object.insert("timestamp".to_owned(), json!(received.timestamp.map(redrive::Timestamp::millis)));
    object.insert("attempt".to_owned(), json!(received.attempt()));
    put(&mut object, "key", received.key.as_deref());
    put(&mut object, "value", received.value.as_deref());
    object.insert("headers".to_owned(), headers(received));
    if let Some(trace) = trace {
        trace.tell(&mut object);
    }
    Value::Object(object)
}

/// The headers in their order, each an object with its name and value.
pub(crate) fn headers(record: &redrive::Record) -> Value {
    let headers = record.headers.iter().map(|header| {
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(header.name));
        put(&mut object, "value", header.value.as_deref());
        Value::Object(object)
    });
    Value::Array(headers.collect())
}

/// Puts bytes into an object, by one of three names of which exactly one is there.
pub(crate) fn put(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let (name, value) = match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => (name.to_owned(), Value::Null),
        Some((_, Ok(text))) => (name.to_owned(), json!(text)),
        Some((bytes, Err(_))) => (format!("{name}_base64"), json!(STANDARD.encode(bytes))),
    };
    object.insert(name, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(object: &Map<String, Value>) -> Option<Vec<u8>> {
        match (object.get("value"), object.get("value_base64")) {
            (Some(Value::Null), None) => None,
            (Some(Value::String(text)), None) => Some(text.clone().into_bytes()),
            (None, Some(Value::String(text))) => Some(STANDARD.decode(text).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), text in "\\PC*") {
            for bytes in [bytes, Some(text.into_bytes())] {
                let mut object = Map::new();
                put(&mut object, "value", bytes.as_deref());
                let line = Value::Object(object).to_string();
                prop_assert!(!line.contains('\n'));
                prop_assert_eq!(read(serde_json::from_str::<Value>(&line).unwrap().as_object().unwrap()), bytes);
            }
        }
    }
}
