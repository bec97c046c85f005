//! Several records in one request, and an outcome for each in the answer.

use std::collections::HashMap;

use redrive::{BatchHandler, Class, Failure, Received};
use redrive_core::settings::BatchFormat;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::answer::{Answer, End};
use super::{Push, Signed, event, fault};
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
        let mut headers = self.push.client.headers(body.len());
        headers.put("content-type", kind.as_bytes());
        let timeout = records.iter().map(|(one, _)| self.push.timeout(one)).max().unwrap_or_default();
        // The outcomes are in the body, so it is worth waiting for.
        let answer = match self.push.client.call(headers, body.into(), Signed::default(), [timeout; 2]).await
        {
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
        // Whatever it is called: an answer that looks like outcomes must not be taken for a mere yes.
        let looks_like_it = matches!(answer.body.trim_ascii_start().first(), Some(b'{' | b'['));
        if answer.body.trim_ascii().is_empty() && matches!(answer.end, End::Whole) {
            return Ok(HashMap::new());
        }
        if !looks_like_it && !says_json(&answer.media_type()) {
            return Ok(HashMap::new());
        }
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
            End::Broken(error) => Some(fault::broken_off(endpoint, error.as_ref())),
        };
        match (unknown, by_id(&answer.body)) {
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
        let mut object: Map<String, Value> = event::attributes(one, &origin)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
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

/// Whether a media type says that outcomes are meant.
fn says_json(kind: &str) -> bool {
    is_json(kind) || kind.ends_with("ndjson") || kind.ends_with("jsonl") || kind.ends_with("json-seq")
}

/// The outcomes in a body, by id: a list, or a line for each. Anything else is not understood, and so not done.
fn by_id(body: &[u8]) -> Result<HashMap<String, Outcome>, String> {
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(body).into_iter().collect();
    let mut outcomes = HashMap::new();
    for value in read.map_err(|error| error.to_string())? {
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for one in list {
            let id = one.get("id").and_then(Value::as_str).ok_or("one of them has no id")?;
            let outcome = Outcome::from_json(&one);
            // Of two about one record, the one that failed counts.
            let failed = outcomes.get(id).is_some_and(|before: &Outcome| !before.is_done());
            if !failed {
                outcomes.insert(id.to_owned(), outcome);
            }
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_a_list_or_lines_and_any_other_json_is_not_understood() {
        let ids = |body: &str| {
            let outcomes = by_id(body.as_bytes());
            outcomes.map(|outcomes| {
                let mut ids: Vec<_> = outcomes.into_keys().collect();
                ids.sort();
                ids.join(" ")
            })
        };
        assert_eq!(ids(r#"[{"id": "a"}, {"id": "b", "status": 500}]"#).as_deref(), Ok("a b"));
        assert_eq!(ids("{\"id\": \"a\"}\n\n{\"id\": \"b\"}\n").as_deref(), Ok("a b"));
        assert_eq!(ids(r#"{"id": "a"}"#).as_deref(), Ok("a"));
        assert_eq!(ids("[]").as_deref(), Ok(""));
        let odd = ["{", "{}", "null", "false", "5", "\"thanks\"", "thanks", "[5]"];
        let more = [r#"{"ok": true}"#, r#"{"status": 500}"#, r#"[{"status": 500}]"#, r#"[{"id": 7}]"#];
        for odd in odd.into_iter().chain(more) {
            assert!(ids(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn of_two_outcomes_the_one_that_failed_counts() {
        for body in
            ["[{\"id\":\"a\",\"status\":422},{\"id\":\"a\"}]", "{\"id\":\"a\"}{\"id\":\"a\",\"status\":422}"]
        {
            assert!(!by_id(body.as_bytes()).unwrap()["a"].is_done(), "{body}");
        }
    }
}
