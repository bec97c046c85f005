//! What must not be repeated of a record, wherever a failure tells it: in messages, types, codes and stacks.
//!
//! A failure goes in as the handler made it, and comes out with stars. It is done before anything else sees the
//! failure: classification, letters, the shelf, listeners and logs.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::classify::Pattern;
use crate::failure::Failure;
use crate::record::Record;
use crate::spelling::Misspelt;

/// What stands for a text that is not repeated.
const STARS: &str = "***";
/// What stands at the end of a text that was cut.
const CUT: char = '…';

/// What of a record, and of texts, is not repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// What stands at these places of a value that is JSON.
    pub json: Vec<Pointer>,
    /// What these headers hold; the case of their names does not matter.
    pub headers: Vec<String>,
    /// What these expressions match.
    pub patterns: Vec<Pattern>,
    /// These texts, whatever the record is.
    pub texts: Vec<Hidden>,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STARS)
    }
}

/// A JSON pointer (RFC 6901): empty for all of it, or beginning with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

impl Mask {
    /// Whether it hides nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.json.is_empty() && self.headers.is_empty() && self.patterns.is_empty() && self.texts.is_empty()
    }

    /// The same failure of this record without what is not to be repeated.
    #[must_use]
    pub fn apply(&self, mut failure: Failure, record: &Record) -> Failure {
        if self.is_empty() {
            return failure;
        }
        let secrets = self.secrets(record);
        for text in failure.texts_mut() {
            self.mask(text, &secrets);
        }
        failure
    }

    fn mask(&self, text: &mut String, secrets: &[String]) {
        for secret in secrets.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            *text = text.replace(secret.as_str(), STARS);
        }
        cut_short(text, secrets);
        for pattern in &self.patterns {
            *text = pattern.replace_all(text, STARS);
        }
    }

    /// Every text of the record that is not to be repeated, the longest first: one may be a part of another.
    fn secrets(&self, record: &Record) -> Vec<String> {
        let mut secrets: Vec<_> = self.texts.iter().map(|text| text.0.clone()).collect();
        let is_named = |name: &str| self.headers.iter().any(|other| other.eq_ignore_ascii_case(name));
        for header in record.headers.iter().filter(|header| is_named(&header.name)) {
            let value = header.value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
            secrets.extend(value.map(ToOwned::to_owned));
        }
        let value = record.value.as_deref().filter(|_| !self.json.is_empty());
        if let Some(value) = value.and_then(|value| serde_json::from_slice::<Value>(value).ok()) {
            for pointer in &self.json {
                value.pointer(&pointer.0).into_iter().for_each(|found| leaves(found, &mut secrets));
            }
        }
        // Texts are put on one line on their way.
        let on_one_line: Vec<_> = secrets.iter().map(|text| one_line(text)).collect();
        secrets.extend(on_one_line);
        secrets.retain(|secret| secret.chars().any(|c| c != '*'));
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A text that was cut may end within a secret, of which the beginning is then left.
fn cut_short(text: &mut String, secrets: &[String]) {
    let Some(whole) = text.strip_suffix(CUT) else { return };
    let begins = |secret: &String| {
        let ends = secret.char_indices().map(|(at, _)| at).skip(1).chain([secret.len()]);
        ends.filter(|end| whole.ends_with(&secret[..*end])).max()
    };
    if let Some(length) = secrets.iter().filter_map(begins).max() {
        *text = format!("{}{STARS}{CUT}", &whole[..whole.len() - length]);
    }
}

/// The texts and numbers in a value, each as an error would repeat it: plain, and as JSON writes it.
fn leaves(value: &Value, secrets: &mut Vec<String>) {
    match value {
        // To hide these would hide nothing, and a great deal.
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => secrets.push(number.to_string()),
        Value::String(text) => {
            let json = value.to_string();
            let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json);
            secrets.extend([text.clone(), json.to_owned()]);
        }
        Value::Array(list) => list.iter().for_each(|value| leaves(value, secrets)),
        Value::Object(object) => object.values().for_each(|value| leaves(value, secrets)),
    }
}

impl FromStr for Pointer {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let bad_escape =
            text.match_indices('~').find(|(at, _)| !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
        match bad_escape {
            Some((at, _)) => {
                Err(Misspelt::new(at..at + 1, "`~` means nothing here").help("write ~0 for ~ and ~1 for /"))
            }
            None if text.is_empty() || text.starts_with('/') => Ok(Self(text.to_owned())),
            None => Err(Misspelt::new(0..text.len(), "a JSON pointer begins with a slash")
                .help("write /name/of/field, or nothing for all of it")),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;
    use crate::headers::Headers;
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::json;

    fn record(value: &[u8], headers: Headers) -> Record {
        Record {
            at: "orders/0/1".parse().unwrap(),
            timestamp: None,
            key: None,
            value: Some(Bytes::copy_from_slice(value)),
            headers,
        }
    }

    fn mask(json: &[&str], headers: &[&str], patterns: &[&str]) -> Mask {
        Mask {
            json: json.iter().map(|text| text.parse().unwrap()).collect(),
            headers: headers.iter().map(ToString::to_string).collect(),
            patterns: patterns.iter().map(|text| text.parse().unwrap()).collect(),
            texts: Vec::new(),
        }
    }

    fn failure(text: &str) -> Failure {
        let mut failure = Failure::new(Cause { code: Some(text.to_owned()), ..Cause::new(text, text) });
        failure.stack = Some(text.to_owned());
        failure.caused_by(Cause::new("Inner", text))
    }

    fn said(mask: &Mask, text: &str, record: &Record) -> String {
        let mut masked = mask.apply(failure(text), record);
        let mut texts: Vec<_> =
            masked.texts_mut().map(|text| text.clone()).filter(|text| text != "Inner").collect();
        texts.dedup();
        assert_eq!(texts.len(), 1, "every text is masked alike: {texts:?}");
        texts.remove(0)
    }

    #[test]
    fn what_is_nobodys_business_is_hidden_whatever_the_record_is() {
        let mask = Mask { texts: vec![Hidden("hunter2".to_owned())], ..Mask::default() };
        assert_eq!(said(&mask, "bad token hunter2", &record(b"x", Headers::default())), "bad token ***");
        assert!(!format!("{mask:?}").contains("hunter2"));
    }

    #[test]
    fn what_a_pointer_a_header_or_a_pattern_finds_is_not_repeated() {
        let value =
            json!({ "card": { "number": 4111111111111111_u64, "holder": "Ada \"L\"" }, "ok": true, "id": 7 });
        let headers = [("X-Token", Some("tok-1")), ("x-token", Some("tok-12"))].into_iter().collect();
        let record = record(value.to_string().as_bytes(), headers);
        let mask = mask(&["/card", "/ok", "/nowhere"], &["x-token"], &[r"\b\d{3}-\d{2}\b"]);
        let text =
            "order 7 of Ada \"L\" (Ada \\\"L\\\") with 4111111111111111, tok-12 and tok-1: 123-45 is true";
        assert_eq!(said(&mask, text, &record), "order 7 of *** (***) with ***, *** and ***: *** is true");
    }

    #[test]
    fn neither_a_cut_nor_another_line_shows_what_is_hidden() {
        let record = record(json!({ "name": "Ada\n Lovelace" }).to_string().as_bytes(), Headers::default());
        let mask = mask(&["/name"], &[], &[]);
        assert_eq!(said(&mask, "no Ada Lovelace here", &record), "no *** here");
        assert_eq!(said(&mask, "no Ada Lovel…", &record), "no ***…");
        assert_eq!(said(&mask, "no Ada Lovel", &record), "no Ada Lovel");
        assert_eq!(said(&mask, "nobody…", &record), "nobody…");
    }

    #[test]
    fn a_value_that_is_no_json_has_no_places() {
        let mask = mask(&["/a", ""], &[], &[]);
        assert_eq!(said(&mask, "secret", &record(b"secret", Headers::default())), "secret");
        let tombstone = Record { value: None, ..record(b"", Headers::default()) };
        assert_eq!(said(&mask, "secret", &tombstone), "secret");
    }

    #[test]
    fn a_pointer_is_spelt_like_one() {
        for text in ["", "/a", "/a~1b/0", "/a~0"] {
            assert_eq!(text.parse::<Pointer>().unwrap().to_string(), text);
        }
        for text in ["a", "$.a", "/a~", "/a~2"] {
            assert!(text.parse::<Pointer>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_secret_is_left(
            secrets in prop::collection::vec("[a-c\"\\\\é ]{1,6}", 1..4),
            token in "[a-c]{1,4}",
            before in "[a-c\"\\\\é ]{0,6}",
            after in "\\PC{0,6}",
        ) {
            let value = json!({ "all": secrets });
            let headers = [("token", Some(token.clone()))].into_iter().collect();
            let record = record(value.to_string().as_bytes(), headers);
            let text = format!("{before}{}{token}{value}{after}", secrets.join(&before));
            let mask = mask(&["/all"], &["token"], &[]);
            let masked = mask.apply(failure(&text), &record);
            for secret in secrets.iter().chain([&token]) {
                prop_assert!(!masked.outermost().message.contains(secret.as_str()), "{masked:?}");
            }
        }

        #[test]
        fn what_is_masked_stays_so(text in "\\PC*", secret in "\\PC{1,5}") {
            let record = record(json!([secret]).to_string().as_bytes(), Headers::default());
            let mask = mask(&["/0"], &[], &["[0-9]+"]);
            let once = mask.apply(failure(&text), &record);
            prop_assert_eq!(mask.apply(once.clone(), &record), once);
        }

        #[test]
        fn an_empty_mask_changes_nothing(text in "\\PC*") {
            let record = record(b"{}", Headers::default());
            prop_assert_eq!(Mask::default().apply(failure(&text), &record), failure(&text));
        }
    }
}
