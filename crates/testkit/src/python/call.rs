//! A request, and the record in it.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A request as the endpoint saw it.
#[derive(Debug, Clone)]
pub struct Call {
    /// When, in seconds since the epoch.
    pub at: f64,
    /// What was asked for.
    pub path: String,
    /// In the order in which they came.
    pub headers: Vec<(String, String)>,
    /// What came.
    pub body: Vec<u8>,
}

impl Call {
    pub(super) fn read(told: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let pairs = told["headers"].as_array().expect("headers");
        Self {
            at: told["at"].as_f64().expect("a time"),
            path: text(&told["path"]),
            headers: pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
            body: STANDARD.decode(text(&told["body"])).expect("a body"),
        }
    }

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// All headers of this name.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        self.headers.iter().filter(|(other, _)| is(other)).map(|(_, value)| value.as_str()).collect()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The key of the record.
    #[must_use]
    pub fn key(&self) -> Option<Vec<u8>> {
        self.header("redrive-key").map(unescaped)
    }

    /// The record's headers, put together again as docs/http.md says.
    ///
    /// # Panics
    /// If they cannot be.
    #[must_use]
    pub fn record_headers(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let (mut headers, mut taken) = (Vec::new(), HashMap::<String, usize>::new());
        let names = self.header("redrive-headers").unwrap_or_default();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let plain = |name: &str| String::from_utf8(unescaped(name)).expect("a name is text");
            match name.strip_suffix(";null") {
                Some(name) => headers.push((plain(name), None)),
                None => {
                    let at = taken.entry(name.to_lowercase()).or_default();
                    let value = unescaped(self.all(&format!("redrive-header-{name}"))[*at]);
                    *at += 1;
                    headers.push((plain(name), Some(value)));
                }
            }
        }
        headers
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let is_code = *first == b'%';
        let code = || {
            let digits = std::str::from_utf8(&behind[..2]).expect("digits");
            u8::from_str_radix(digits, 16).expect("a byte")
        };
        bytes.push(if is_code { code() } else { *first });
        rest = if is_code { &behind[2..] } else { behind };
    }
    bytes
}
