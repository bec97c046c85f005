//! Trace context as the W3C writes it: which trace, which span of it is the parent, and whether it is recorded.

use std::fmt;

use redrive::headers::Headers;
use serde_json::{Map, Value, json};

use crate::http::Fields;

pub(crate) const PARENT: &str = "traceparent";
pub(crate) const STATE: &str = "tracestate";

const SAMPLED: u8 = 1;
/// What of the flags holds for the whole trace: that its id is random.
const KEPT: u8 = 2;

/// A span, as others name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) flags: u8,
}

/// What whoever is called gets of the span that calls: instead of what the record has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) parent: Context,
    /// The record's, if its context is valid.
    pub(crate) state: Option<String>,
}

impl Context {
    /// The context of a record; none if it has none, or one that is not valid.
    pub(crate) fn of(headers: &Headers) -> Option<Self> {
        Self::read(headers.text(PARENT)?.trim())
    }

    /// A version that is not known yet may have more behind what is known.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version] = hex(parts.next()?)?;
        let context = Self {
            trace: hex(parts.next()?)?,
            span: hex(parts.next()?)?,
            flags: hex::<1>(parts.next()?)?[0],
        };
        let is_whole = version != 0xff && (version != 0 || parts.next().is_none());
        (is_whole && context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    pub(crate) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Another span of this trace.
    pub(crate) fn child(self, span: [u8; 8]) -> Self {
        Self { span, flags: self.flags & (SAMPLED | KEPT), ..self }
    }

    /// A span of a new trace.
    pub(crate) fn root(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Self {
        Self { trace, span, flags: u8::from(is_sampled) * SAMPLED }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        f.write_str("00-")?;
        write(f, &self.trace)?;
        f.write_str("-")?;
        write(f, &self.span)?;
        write!(f, "-{:02x}", self.flags)
    }
}

/// The state that goes with a context: all of it, which may stand in several headers.
pub(crate) fn state(headers: &Headers) -> Option<String> {
    let parts: Vec<_> = headers
        .all(STATE)
        .flatten()
        .filter_map(|part| std::str::from_utf8(part).ok())
        .map(str::trim)
        .collect();
    let state = parts.join(",");
    (!state.is_empty()).then_some(state)
}

impl Carried {
    /// In the headers of a request.
    pub(crate) fn put(&self, headers: &mut Fields) {
        headers.remove(PARENT);
        headers.remove(STATE);
        headers.put(PARENT, self.parent.to_string().as_bytes());
        if let Some(state) = &self.state {
            headers.put(STATE, state.as_bytes());
        }
    }

    /// In an object of JSON.
    pub(crate) fn tell(&self, object: &mut Map<String, Value>) {
        object.insert(PARENT.to_owned(), json!(self.parent.to_string()));
        match &self.state {
            Some(state) => object.insert(STATE.to_owned(), json!(state)),
            None => object.remove(STATE),
        };
    }
}

/// So many bytes, in small letters as they have to be.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_as_the_w3c_writes_it() {
        let context = Context::read(GOOD).unwrap();
        assert_eq!((context.is_sampled(), context.to_string()), (true, GOOD.to_owned()));
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more-to-come";
        assert!(!Context::read(later).unwrap().is_sampled());
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        ] {
            assert_eq!(Context::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_carried_replaces_the_context_and_keeps_the_state() {
        let mut headers = Fields::behind(b"", 0);
        for (name, value) in [(PARENT, GOOD), (STATE, "a=1"), (STATE, "b=2"), ("baggage", "k=v")] {
            headers.put(name, value.as_bytes());
        }
        let parent = Context::read(GOOD).unwrap().child([7; 8]);
        Carried { parent, state: Some("a=1,b=2".to_owned()) }.put(&mut headers);
        let sent = headers.map();
        let all =
            |name: &str| sent.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all(PARENT), ["00-4bf92f3577b34da6a3ce929d0e0e4736-0707070707070707-01"]);
        assert_eq!((all(STATE), all("baggage")), (vec!["a=1,b=2"], vec!["k=v"]));
        Carried { parent, state: None }.put(&mut headers);
        assert_eq!(headers.map().get(STATE), None);
    }

    proptest! {
        #[test]
        fn whatever_is_written_can_be_read(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), flags in any::<u8>()) {
            prop_assume!(trace != [0; 16] && span != [0; 8]);
            let context = Context { trace, span, flags };
            prop_assert_eq!(Context::read(&context.to_string()), Some(context));
        }

        #[test]
        fn nothing_that_a_record_says_is_too_odd(text in "\\PC*") {
            let _ = Context::read(&text);
        }
    }
}
