//! What the other side says became of a record, and what that means: nothing, or a failure with its class.

use std::time::Duration;

use redrive::{Cause, Class, Failure, Origin};
use serde_json::Value;

/// Texts of others are cut at this many bytes, names at fewer.
const TEXT: usize = 2_000;
const NAME: usize = 200;

/// An outcome in the words of the other side; all of it absent means that the record is done.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// A status as HTTP has them.
    pub(crate) status: Option<u16>,
    pub(crate) class: Option<Class>,
    pub(crate) type_name: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) follows: Option<Origin>,
    /// What of it could not be understood.
    pub(crate) misunderstood: Option<String>,
}

impl Outcome {
    /// An outcome written as a JSON object.
    pub(crate) fn from_json(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let mut outcome = Self {
            type_name: text("type"),
            message: text("message"),
            code: text("code"),
            retry_after: value.get("retry_after").and_then(Value::as_f64).and_then(seconds),
            ..Self::default()
        };
        let said = |key: &str| value.get(key).filter(|value| !value.is_null());
        // As text it is refused if it is anything else, rather than taken for nothing: that would mean done.
        let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        outcome.name_class(said("class").map(written).as_deref());
        outcome.name_predecessor(said("follows").map(written).as_deref());
        if let Some(status) = said("status") {
            let read = status.as_u64().and_then(|status| u16::try_from(status).ok());
            match read.filter(|status| (100..1_000).contains(status)) {
                Some(status) => outcome.status = Some(status),
                None => outcome.misunderstood = Some(cut(&format!("{status} is not a status"), NAME)),
            }
        }
        outcome
    }

    /// The class as it was written; an unknown one is told in the message.
    pub(crate) fn name_class(&mut self, class: Option<&str>) {
        let Some(written) = class else { return };
        match written.trim().parse() {
            Ok(class) => self.class = Some(class),
            Err(error) => self.misunderstood = Some(cut(&format!("{error}"), NAME)),
        }
    }

    /// The predecessor that was set aside, as it was written.
    pub(crate) fn name_predecessor(&mut self, origin: Option<&str>) {
        let Some(written) = origin else { return };
        match written.trim().parse() {
            Ok(origin) => self.follows = Some(origin),
            Err(error) => self.misunderstood = Some(cut(&format!("{error}"), NAME)),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        let failed = self.class.is_some() || self.follows.is_some() || self.misunderstood.is_some();
        match self.status {
            Some(status) => (200..300).contains(&status),
            None => !failed && self.message.is_none() && self.type_name.is_none() && self.code.is_none(),
        }
    }

    /// Done, or the failure it stands for. `from` is where it comes from: `http`, `command`.
    pub(crate) fn result(self, from: &str) -> Result<(), Failure> {
        if self.is_done() {
            return Ok(());
        }
        let name = match (self.status, &self.code) {
            (Some(status), _) => format!("{from}.{status}"),
            (None, Some(code)) => format!("{from}.{code}"),
            (None, None) => format!("{from}.failed"),
        };
        let mut message = self.message.unwrap_or_else(|| "it was not handled".to_owned());
        if let Some(misunderstood) = self.misunderstood {
            message = format!("{message} (and {misunderstood})");
        }
        let cause = Cause {
            status: self.status,
            code: self.code.map(|code| cut(&code, NAME)),
            ..Cause::new(self.type_name.map_or(name, |name| cut(&name, NAME)), cut(&message, TEXT))
        };
        let mut failure = Failure::new(cause);
        failure.presumed = self.status.map(of_status);
        failure.retry_after = self.retry_after;
        let class = self.class.or(self.follows.as_ref().map(|_| Class::NotReady));
        failure.follows = self.follows;
        Err(match class {
            Some(class) => failure.classed(class),
            None => failure,
        })
    }
}

/// The class of a status if nothing else says one.
pub(crate) fn of_status(status: u16) -> Class {
    match status {
        425 => Class::NotReady,
        429 | 502 | 503 | 504 => Class::Outage,
        408 | 500..=599 => Class::Transient,
        _ => Class::Permanent,
    }
}

/// So many seconds, if it can be a time at all.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    // No wait at all is what the policy is for: an endpoint that is down would be called without end.
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
}

/// The text, on one line, cut at a character and marked if it is longer than `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut cut = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !cut.is_empty() {
            cut.push(' ');
        }
        cut.push_str(word);
        if cut.len() > most {
            let end = (0..=most).rev().find(|end| cut.is_char_boundary(*end)).unwrap_or(0);
            cut.truncate(end);
            cut.push('…');
            break;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn class(outcome: &Value) -> Option<Class> {
        let failure = Outcome::from_json(outcome).result("http").err()?;
        failure.outermost().class.or(failure.presumed)
    }

    #[test]
    fn every_status_has_its_class() {
        let table = [
            (Class::NotReady, vec![425]),
            (Class::Transient, vec![408, 500, 501, 505, 507, 599]),
            (Class::Outage, vec![429, 502, 503, 504]),
            (Class::Permanent, vec![100, 300, 301, 304, 400, 401, 403, 404, 409, 410, 422, 431, 451]),
        ];
        for (expected, statuses) in table {
            for status in statuses {
                assert_eq!(class(&json!({ "status": status })), Some(expected), "{status}");
            }
        }
        for done in [json!({}), json!({ "status": 200 }), json!({ "status": 299 }), json!({ "id": "o/0/1" })]
        {
            assert_eq!(Outcome::from_json(&done).result("http"), Ok(()), "{done}");
        }
    }

    #[test]
    fn what_is_said_outright_counts_more_than_the_status() {
        assert_eq!(class(&json!({ "status": 500, "class": "not-ready" })), Some(Class::NotReady));
        assert_eq!(class(&json!({ "status": 500, "class": "NRE" })), Some(Class::Permanent));
        assert_eq!(class(&json!({ "status": 409, "follows": "o/0/1" })), Some(Class::NotReady));
        assert_eq!(class(&json!({ "class": "outage" })), Some(Class::Outage));
        // Nobody knows: the rules and the default are asked.
        assert_eq!(class(&json!({ "message": "no" })), None);
        assert!(Outcome::from_json(&json!({ "message": "no" })).result("http").is_err());
    }

    #[test]
    fn what_is_not_understood_is_told_and_the_status_counts() {
        let outcome = json!({ "status": 503, "class": "fatal", "message": "down", "retry_after": -3 });
        let failure = Outcome::from_json(&outcome).result("http").unwrap_err();
        assert_eq!((failure.presumed, failure.retry_after), (Some(Class::Outage), None));
        assert!(failure.outermost().message.starts_with("down (and `fatal` is not a class"), "{failure:?}");
    }

    #[test]
    fn what_is_not_understood_is_never_taken_for_done() {
        for odd in [
            json!({ "status": "200" }),
            json!({ "status": 70_000 }),
            json!({ "status": -1 }),
            json!({ "class": 5 }),
            json!({ "class": "done" }),
            json!({ "follows": ["orders/0/1"] }),
            json!({ "error": "no", "message": "no" }),
        ] {
            assert!(Outcome::from_json(&odd).result("http").is_err(), "{odd}");
        }
        assert_eq!(Outcome::from_json(&json!({ "status": null, "class": null })).result("http"), Ok(()));
    }

    proptest! {
        #[test]
        fn a_cut_text_is_short_and_on_one_line(text in "[\\PC\n\t ]*", most in 4_usize..40) {
            let cut = cut(&text, most);
            prop_assert!(cut.len() <= most + "…".len());
            prop_assert!(!cut.contains(['\n', '\t']));
        }

        #[test]
        fn any_json_is_an_outcome(text in "\\PC*", number in any::<f64>(), status in any::<u64>()) {
            let value = json!({ "status": status, "class": text, "follows": text, "retry_after": number });
            let _ = Outcome::from_json(&value).result("http");
        }
    }
}
