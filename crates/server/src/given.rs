//! What a question comes with: parameters in its address, or a document. Each is taken by its name; what nobody took
//! is told.

use std::fmt::Display;
use std::str::FromStr;

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use redrive::Clock;
use redrive_letters::query::Filter;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// What a question comes with.
pub(crate) struct Given {
    values: Vec<(String, Value)>,
    known: Vec<&'static str>,
}

impl Given {
    /// The parameters of an address.
    pub(crate) fn in_address(uri: &Uri) -> Result<Self, Problem> {
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8().map(std::borrow::Cow::into_owned);
            decoded
                .map_err(|_| Problem::bad(format!("`{text}` in the address is not UTF-8 when it is decoded")))
        };
        let values = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, Value::from(decoded(value)?)))
        });
        Ok(Self { values: values.collect::<Result<_, Problem>>()?, known: Vec::new() })
    }

    /// The members of a document; nothing at all is an empty one.
    pub(crate) fn in_body(body: &[u8]) -> Result<Self, Problem> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self { values: Vec::new(), known: Vec::new() });
        }
        let read: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| Problem::bad(format!("the body is not an object in JSON: {error}")))?;
        Ok(Self { values: read.into_iter().collect(), known: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Result<Option<Value>, Problem> {
        self.known.push(name);
        let (taken, rest) = std::mem::take(&mut self.values).into_iter().partition(|(one, _)| one == name);
        self.values = rest;
        let mut taken: Vec<(String, Value)> = taken;
        match (taken.pop(), taken.is_empty()) {
            (Some(_), false) => Err(Problem::bad(format!("`{name}` is given more than once; give it once"))),
            (one, _) => Ok(one.map(|(_, value)| value).filter(|value| !value.is_null())),
        }
    }

    /// Something that is written as a text.
    pub(crate) fn read<T: FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let Some(text) = text(&value) else { return Err(Problem::bad(format!("`{name}` has to be a text"))) };
        let read = text.parse::<T>();
        read.map(Some).map_err(|error| Problem::bad(format!("`{name}`: {error}")))
    }

    /// A number up to so much.
    pub(crate) fn number(&mut self, name: &'static str, most: u64) -> Result<Option<u64>, Problem> {
        let bad = || Problem::bad(format!("`{name}` has to be a whole number of at most {most}"));
        let Some(value) = self.take(name)? else { return Ok(None) };
        let number = text(&value).and_then(|text| text.parse().ok()).filter(|number| *number <= most);
        number.map(Some).ok_or_else(bad)
    }

    /// The same, and nothing is nonsense.
    pub(crate) fn some(&mut self, name: &'static str, most: u64) -> Result<Option<u64>, Problem> {
        match self.number(name, most)? {
            Some(0) => Err(Problem::bad(format!("`{name}` has to be a whole number from 1 to {most}"))),
            number => Ok(number),
        }
    }

    /// Yes or no; not given is no.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name)? {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(Problem::bad(format!("`{name}` has to be true or false"))),
        }
    }

    /// Which letters are meant, by the parameters that are left.
    pub(crate) fn filter(&mut self) -> Result<Filter, Problem> {
        self.known.extend(Filter::NAMES.map(|(name, _)| name));
        let mut filter = Filter::default();
        let mut rest = Vec::new();
        for (name, value) in std::mem::take(&mut self.values) {
            if !set(&mut filter, &name, &value)? {
                rest.push((name, value));
            }
        }
        self.values = rest;
        match filter.nonsense(Clock::system().now().wall) {
            Some((name, why)) => Err(Problem::bad(format!("`{name}`: {why}"))),
            None => Ok(filter),
        }
    }

    /// Which letters are meant, by an object.
    pub(crate) fn filter_in(&mut self, name: &'static str) -> Result<Option<Filter>, Problem> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let Value::Object(members) = value else {
            return Err(Problem::bad(format!("`{name}` has to be an object, as {{\"topic\": \"orders\"}}")));
        };
        let mut inner = Self { values: members.into_iter().collect(), known: Vec::new() };
        let filter = inner.filter()?;
        inner.end()?;
        Ok(Some(filter))
    }

    /// Nothing more is expected.
    pub(crate) fn end(self) -> Result<(), Problem> {
        if self.values.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self.values.iter().map(|(name, _)| format!("`{name}`")).collect();
        let there = match self.known.as_slice() {
            [] => "nothing is expected here".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Err(Problem::bad(format!("{} is not known here; {there}", names.join(", "))))
    }
}

/// A value as it would be written in an address.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// False if nothing is called so.
fn set(filter: &mut Filter, name: &str, value: &Value) -> Result<bool, Problem> {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    for value in values {
        let Some(text) = text(value) else {
            return Err(Problem::bad(format!("`{name}` has to be a text, or a list of texts")));
        };
        if !filter.set(name, &text).map_err(|error| Problem::bad(format!("`{name}`: {error}")))? {
            return Ok(false);
        }
    }
    Ok(Filter::NAMES.iter().any(|(one, _)| *one == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_is_named() {
        let uri: Uri = "/x?topic=a%2Fb+c&limit=5&colour=red".parse().unwrap();
        let mut given = Given::in_address(&uri).unwrap();
        assert_eq!(given.number("limit", 10).unwrap(), Some(5));
        assert_eq!(given.filter().unwrap().topics, ["a/b c"]);
        let told = format!("{:?}", given.end().unwrap_err());
        assert!(told.contains("`colour` is not known here; there are limit, id, topic"), "{told}");
    }

    #[test]
    fn a_document_says_the_same_as_an_address() {
        let body = br#"{"query": {"topic": ["a", "b"], "attempts": 3}, "dry_run": true}"#;
        let mut given = Given::in_body(body).unwrap();
        let filter = given.filter_in("query").unwrap().unwrap();
        assert_eq!((filter.topics.len(), filter.attempts.unwrap().least), (2, Some(3)));
        assert!(given.flag("dry_run").unwrap() && given.end().is_ok());
        for bad in [&b"[]"[..], b"{", br#"{"query": 1}"#, br#"{"query": {"colour": "red"}}"#] {
            let read = Given::in_body(bad).and_then(|mut given| given.filter_in("query"));
            assert!(read.is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
