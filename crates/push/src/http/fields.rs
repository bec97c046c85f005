//! The headers of a request, as the lines that HTTP/1.1 sends: a record's are written once, straight to where they
//! are sent from. Names are in lower case, and no value can end its line.

use std::fmt;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::escape;

/// What stands between a name and its value, and behind it.
const COLON: &[u8] = b": ";
const END: &[u8] = b"\r\n";

/// Lines of headers, behind what every request of this endpoint begins with.
pub(crate) struct Fields {
    bytes: Vec<u8>,
    begin: usize,
}

impl Fields {
    /// None yet, behind `before`, with room for so many bytes.
    pub(crate) fn behind(before: &[u8], room: usize) -> Self {
        let mut bytes = Vec::with_capacity(before.len() + room);
        bytes.extend_from_slice(before);
        Self { bytes, begin: before.len() }
    }

    /// Adds a header. A value that no header can have is left out with its name, which is always one.
    pub(crate) fn put(&mut self, name: &str, value: &[u8]) {
        if value.iter().all(|byte| is_in_value(*byte)) {
            self.name(name);
            self.bytes.extend_from_slice(value);
            self.bytes.extend_from_slice(END);
        }
    }

    /// Adds a header whose value is escaped.
    pub(super) fn put_escaped(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        escape::append(value, &mut self.bytes);
        self.bytes.extend_from_slice(END);
    }

    /// Adds a header whose value is a number.
    pub(super) fn put_number(&mut self, name: &str, value: impl itoa::Integer) {
        self.name(name);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.bytes.extend_from_slice(END);
    }

    /// Takes away every header of this name.
    pub(crate) fn remove(&mut self, name: &str) {
        let mut kept = self.bytes[..self.begin].to_vec();
        for (own, value) in self.iter().filter(|(own, _)| *own != name.as_bytes()) {
            kept.extend([own, COLON, value, END].into_iter().flatten());
        }
        self.bytes = kept;
    }

    /// Names and values.
    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.bytes[self.begin..].split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + COLON.len()..].strip_suffix(b"\r")?))
        })
    }

    /// The same for whoever writes requests otherwise.
    pub(crate) fn map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.iter().count());
        for (name, value) in self.iter() {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        map
    }

    /// Everything, from what stands before them on.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn name(&mut self, name: &str) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes[start..].make_ascii_lowercase();
        self.bytes.extend_from_slice(COLON);
    }
}

/// Credentials are before them.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.map().iter()).finish()
    }
}

/// Nothing that ends a line, or that is not seen.
fn is_in_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields() -> Fields {
        Fields::behind(b"POST / HTTP/1.1\r\nauthorization: Bearer t\r\n", 0)
    }

    #[test]
    fn they_are_written_as_they_are_sent() {
        let mut fields = fields();
        fields.put("content-type", b"a/b");
        fields.put_number("Redrive-Offset", 7_i64);
        fields.put_escaped("redrive-key", "K\u{f6}ln".as_bytes());
        assert_eq!(format!("{fields:?}").matches("Bearer").count(), 0);
        let sent = "POST / HTTP/1.1\r\nauthorization: Bearer t\r\ncontent-type: a/b\r\n\
                    redrive-offset: 7\r\nredrive-key: K%C3%B6ln\r\n";
        assert_eq!(String::from_utf8(fields.into_bytes()).unwrap(), sent);
    }

    #[test]
    fn one_can_be_taken_away() {
        let mut fields = fields();
        for value in ["1", "2"] {
            fields.put("a", value.as_bytes());
            fields.put("aa", value.as_bytes());
        }
        fields.remove("a");
        let map = fields.map();
        assert_eq!((map.get("a"), map.get_all("aa").iter().count()), (None, 2));
    }

    proptest! {
        #[test]
        fn no_value_is_more_than_one_line(value in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut fields = fields();
            fields.put("a", &value);
            fields.put("b", b"");
            let map = fields.map();
            let sent = map.get("a").map(|value| value.as_bytes().to_vec());
            prop_assert_eq!(sent, HeaderValue::from_bytes(&value).ok().map(|_| value));
            prop_assert_eq!(map.get("b"), Some(&HeaderValue::from_static("")));
            prop_assert!(map.len() <= 2);
        }
    }
}
