//! Values of headers as others encode them: text, decimal numbers as text, and big-endian binary.
//!
//! What is not as it should be is noted, and none.

use redrive_core::Timestamp;
use redrive_core::headers::{Headers, Link};

/// The longest text that is taken from a header, in bytes; a stack may be longer than the rest.
const LONGEST: usize = 64 * 1024;

/// Reads the headers of one letter and notes what is wrong with them.
pub(super) struct Values<'a> {
    headers: &'a Headers,
    pub(super) problems: Vec<String>,
}

impl<'a> Values<'a> {
    pub(super) fn of(headers: &'a Headers) -> Self {
        Self { headers, problems: Vec::new() }
    }

    fn last(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.last(name).map(AsRef::as_ref)
    }

    /// The first value: each hop appended one, so this is the true one.
    fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|header| header.name == name)?.value.as_deref()
    }

    /// Text; bytes that are none are replaced.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.last(name).map(lossy)
    }

    pub(super) fn first_text(&self, name: &str) -> Option<String> {
        self.first(name).map(lossy)
    }

    /// A decimal number.
    pub(super) fn number<N: TryFrom<i64>>(&mut self, name: &str) -> Option<N> {
        let value = self.last(name)?;
        let number = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse::<i64>().ok());
        let number = number.and_then(|number| N::try_from(number).ok());
        if number.is_none() {
            self.problems.push(format!("{name} is {:?}, which is not such a number", cut(&lossy(value), 40)));
        }
        number
    }

    /// Four bytes.
    pub(super) fn first_int(&mut self, name: &str) -> Option<i32> {
        let value = self.first(name)?;
        self.exact(name, value).map(i32::from_be_bytes)
    }

    /// Eight bytes.
    pub(super) fn first_long(&mut self, name: &str) -> Option<i64> {
        let value = self.first(name)?;
        self.exact(name, value).map(i64::from_be_bytes)
    }

    pub(super) fn int(&mut self, name: &str) -> Option<i32> {
        let value = self.last(name)?;
        self.exact(name, value).map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self, name: &str) -> Option<i64> {
        let value = self.last(name)?;
        self.exact(name, value).map(i64::from_be_bytes)
    }

    fn exact<const N: usize>(&mut self, name: &str, value: &[u8]) -> Option<[u8; N]> {
        let exact = value.try_into().ok();
        if exact.is_none() {
            self.problems.push(format!("{name} has {} bytes; {N} were expected", value.len()));
        }
        exact
    }

    /// Two's complement in as few bytes as hold it: one to eight.
    pub(super) fn minimal(&mut self, name: &str) -> Option<i64> {
        let value = self.last(name)?;
        if value.is_empty() || value.len() > 8 {
            self.problems.push(format!("{name} has {} bytes; 1 to 8 were expected", value.len()));
            return None;
        }
        let sign = if value[0] & 0x80 == 0 { 0 } else { 0xff };
        let mut whole = [sign; 8];
        whole[8 - value.len()..].copy_from_slice(value);
        Some(i64::from_be_bytes(whole))
    }

    /// ISO 8601 with a zone, or epoch milliseconds.
    pub(super) fn moment(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.text(name)?;
        self.time(name, &text)
    }

    pub(super) fn first_moment(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.first_text(name)?;
        self.time(name, &text)
    }

    fn time(&mut self, name: &str, text: &str) -> Option<Timestamp> {
        let iso = || text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        let millis = text.parse::<i64>().ok().or_else(iso);
        if millis.is_none() {
            self.problems.push(format!("{name} is {:?}, which is no time", cut(text, 40)));
        }
        millis.map(Timestamp::from_millis)
    }
}

/// A chain of an error and its cause, of those that are known.
pub(super) fn chain(links: [(Option<&String>, Option<&String>); 2]) -> Vec<Link> {
    let known = links.into_iter().filter_map(|(error_type, message)| {
        Some(Link {
            error_type: error_type?.clone(),
            message: message.cloned().unwrap_or_default(),
            status: None,
            code: None,
        })
    });
    known.collect()
}

pub(super) fn lossy(value: &[u8]) -> String {
    cut(&String::from_utf8_lossy(value), LONGEST)
}

fn cut(text: &str, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
