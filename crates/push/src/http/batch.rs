//! Several records in one request, and an outcome for each in the answer.

use std::collections::HashMap;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use redrive::{BatchHandler, Class, Failure, Received};
use redrive_core::settings::BatchFormat;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::answer::{Answer, End};
use super::{Push, event, fault};
use crate::line;
use crate::outcome::Outcome;
use crate::traces::{Carried, CarryAll};

/// The handler of batches.
pub(super) struct Batches {
    pub(super) push: Push,
    pub(super) format: BatchFormat,
}

/// A record, and what it carries of the span of its attempt, if there is one.
type Sent<'a> = (&'a Received, Option<&'a Carried>);

impl BatchHandler for Batches {
    async fn handle(&self, batch: Vec<Received>) -> Vec<Result<(), Failure>> {
        self.carry_all(batch, &[]).await
    }
}

impl CarryAll for Batches {
    async fn carry_all(&self, batch: Vec<Received>, traces: &[Option<&Carried>]) -> Vec<Result<(), Failure>> {
        let mut results: Vec<Option<Result<(), Failure>>> = Vec::with_capacity(batch.len());
        for received in &batch {
            results.push(match self.push.skips(received) {
                true => Some(Ok(())),
                false => self.push.refuse(received).map(Err),
            });
        }
        let traces = traces.iter().copied().chain(std::iter::repeat(None));
        let sent: Vec<Sent<'_>> = batch
            .iter()
            .zip(traces)
            .zip(&results)
            .filter(|(_, known)| known.is_none())
            .map(|(sent, _)| sent)
            .collect();
        let answered = if sent.is_empty() { Vec::new() } else { self.send(&sent).await };
        let mut answered = answered.into_iter();
        // There is an outcome for each that was sent.
        results.into_iter().filter_map(|known| known.or_else(|| answered.next())).collect()
    }
}

impl Batches {
    async fn send(&self, records: &[Sent<'_>]) -> Vec<Result<(), Failure>> {
        let ids: Vec<_> =
            records.iter().map(|(one, _)| event::origin(one, &self.push.group).to_string()).collect();
        let (kind, body) = match self.format {
            BatchFormat::Ndjson => ("application/x-ndjson", self.lines(records)),
            BatchFormat::CloudEvents => ("application/cloudevents-batch+json", self.events(records)),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let timeout = records.iter().map(|(one, _)| self.push.timeout(one)).max().unwrap_or_default();
        // The outcomes are in the body, so it is worth waiting for.
        let answer = match self.push.client.call(headers, Bytes::from(body), timeout, timeout).await {
            Ok(answer) => answer,
            Err(failure) => return vec![Err(failure); records.len()],
        };
        let whole = answer.outcome(self.push.client.clock.now().wall);
        match self.outcomes(&answer) {
            Err(failure) => vec![Err(failure); records.len()],
            Ok(mut each) => {
                let known =
                    ids.iter().map(|id| each.get(id).cloned().unwrap_or(whole.clone()).result("http"));
                let known = known.collect();
                ids.iter().for_each(|id| drop(each.remove(id)));
                for id in each.keys() {
                    warn!(endpoint = %self.push.client.endpoint, id, "an outcome of a record that was not sent");
                }
                known
            }
        }
    }

    /// What the answer says of single records, by id. It matters only where the answer as a whole says done.
    fn outcomes(&self, answer: &Answer) -> Result<HashMap<String, Outcome>, Failure> {
        let is_lines = match answer.media_type().as_str() {
            "application/json" => false,
            "application/x-ndjson" | "application/jsonl" => true,
            _ => return Ok(HashMap::new()),
        };
        let endpoint = &self.push.client.endpoint;
        let unknown = match &answer.end {
            End::Whole => None,
            End::TooLong => {
                let what = format!("{endpoint}: the outcomes are longer than handler.http.max-answer");
                Some(fault::coded("answer-too-large", what, Class::Transient))
            }
            End::TooSlow => {
                let what = format!("{endpoint}: the outcomes did not come in time");
                Some(fault::coded("answer-too-slow", what, Class::Outage))
            }
            End::Broken(error) => Some(fault::broken_off(endpoint, error)),
        };
        match (unknown, by_id(&answer.body, is_lines)) {
            (None, Ok(outcomes)) => Ok(outcomes),
            // The whole says that all of them failed, and why.
            _ if !answer.status.is_success() => Ok(HashMap::new()),
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => {
                let what = format!("{endpoint}: the outcomes cannot be read: {error}");
                Err(fault::coded("bad-answer", what, Class::Transient))
            }
        }
    }

    fn lines(&self, records: &[Sent<'_>]) -> Vec<u8> {
        let mut body = Vec::new();
        for (one, trace) in records {
            let origin = event::origin(one, &self.push.group);
            body.extend_from_slice(line::record(one, &origin, *trace).to_string().as_bytes());
            body.push(b'\n');
        }
        body
    }

    fn events(&self, records: &[Sent<'_>]) -> Vec<u8> {
        let mut body = vec![b'['];
        for (one, trace) in records {
            if body.len() > 1 {
                body.push(b',');
            }
            self.event(one, *trace, &mut body);
        }
        body.push(b']');
        body
    }

    /// A record as a CloudEvent in JSON, its value as it is where it is JSON itself.
    fn event(&self, one: &Received, trace: Option<&Carried>, body: &mut Vec<u8>) {
        let origin = event::origin(one, &self.push.group);
        let mut object: Map<String, Value> =
            event::attributes(one, &origin).into_iter().map(|(name, value)| (name, json!(value))).collect();
        if let Some(trace) = trace {
            // By the names of the CloudEvents extension for traces.
            trace.tell(&mut object);
        }
        object.insert("redriveattempt".to_owned(), json!(one.attempt()));
        object.insert("redriveheaders".to_owned(), json!(line::headers(one).to_string()));
        let mut key = Map::new();
        line::put(&mut key, "redrivekey", one.key.as_deref());
        // Attributes have letters and digits only, and are left out rather than null.
        let key = key.into_iter().map(|(name, value)| (name.replace('_', ""), value));
        object.extend(key.filter(|(_, value)| !value.is_null()));
        let mut raw = None;
        match &one.value {
            None => {
                object.insert("redrivetombstone".to_owned(), json!(true));
            }
            Some(value) => {
                let kind = event::content_type(one);
                let kind = kind.to_str().unwrap_or("application/octet-stream");
                object.insert("datacontenttype".to_owned(), json!(kind));
                let is_json = is_json(kind) && serde_json::from_slice::<IgnoredAny>(value).is_ok();
                match is_json {
                    true => raw = Some(value),
                    false => line::put(&mut object, "data", Some(value)),
                }
            }
        }
        let text = Value::Object(object).to_string();
        match raw {
            None => body.extend_from_slice(text.as_bytes()),
            Some(raw) => {
                body.extend_from_slice(text.strip_suffix('}').unwrap_or(&text).as_bytes());
                body.extend_from_slice(b",\"data\":");
                body.extend_from_slice(raw);
                body.push(b'}');
            }
        }
    }
}

/// Whether a media type is JSON: `application/json`, `application/vnd.x+json`.
fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.ends_with("/json") || kind.ends_with("+json")
}

/// The outcomes in a body, by id: a list, or a line for each. Any other JSON says nothing of single records.
fn by_id(body: &[u8], is_lines: bool) -> Result<HashMap<String, Outcome>, String> {
    let read = match is_lines {
        true => serde_json::Deserializer::from_slice(body).into_iter().collect::<Result<_, _>>(),
        false if body.is_empty() => Ok(Vec::new()),
        false => serde_json::from_slice(body).map(|value| match value {
            Value::Array(list) => list,
            one if one.get("id").is_some() => vec![one],
            _ => Vec::new(),
        }),
    };
    let read: Vec<Value> = read.map_err(|error| error.to_string())?;
    let outcome = |one: &Value| {
        let id = one.get("id").and_then(Value::as_str).ok_or("one of them has no id")?;
        Ok((id.to_owned(), Outcome::from_json(one)))
    };
    read.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_a_list_or_lines_and_any_other_json_says_nothing_of_single_records() {
        let ids = |body: &str, is_lines| {
            let outcomes = by_id(body.as_bytes(), is_lines);
            outcomes.map(|outcomes| {
                let mut ids: Vec<_> = outcomes.into_keys().collect();
                ids.sort();
                ids.join(" ")
            })
        };
        assert_eq!(ids(r#"[{"id": "a"}, {"id": "b", "status": 500}]"#, false).as_deref(), Ok("a b"));
        assert_eq!(ids("{\"id\": \"a\"}\n\n{\"id\": \"b\"}\n", true).as_deref(), Ok("a b"));
        assert_eq!(ids(r#"{"id": "a"}"#, false).as_deref(), Ok("a"));
        for nothing in ["", "{}", "null", "[]", r#"{"ok": true}"#, "\"thanks\""] {
            assert_eq!(ids(nothing, false).as_deref(), Ok(""), "{nothing}");
        }
        for odd in ["{", r#"[{"status": 500}]"#, r#"[{"id": 7}]"#, "[5]"] {
            assert!(ids(odd, false).is_err(), "{odd}");
        }
        assert!(ids("thanks", true).is_err());
    }
}
