//! Record headers: the user's, which pass untouched and in order, and ours, of which there is one a name.

mod bounded;
mod names;
mod packed;
pub(crate) mod show;
#[cfg(test)]
mod tests;
mod trail;

use std::borrow::Cow;

use bytes::Bytes;

pub use names::{ENTRY, Name, PREFIX};
pub(crate) use names::{LOG, TRAIL};
pub(crate) use packed::CUT_OFF;
pub use trail::{Attempt, BadHeader, Link, Trail};

/// The headers of a record, exactly as they are: order, duplicates, nulls and bytes that are no text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<Header>);

/// One header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its value; a null is not an empty value.
    pub value: Option<Bytes>,
}

impl Headers {
    /// All headers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Header> {
        self.0.iter()
    }

    /// The bytes of their names and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.iter().map(|header| header.name.len() + header.value.as_ref().map_or(0, Bytes::len)).sum()
    }

    /// The values of every header of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a [u8]>> {
        self.0.iter().filter(move |header| header.name == name).map(|header| header.value.as_deref())
    }

    /// The last value of this name, as Kafka's own clients read it.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&Bytes> {
        self.0.iter().rev().find(|header| header.name == name)?.value.as_ref()
    }

    /// The last value of this name, if it is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.last(name)?).ok()
    }

    /// Adds one more header at the end.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: Option<Bytes>) {
        self.0.push(Header { name: name.into(), value });
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.0.reserve_exact(more);
    }

    /// Makes this the only header of its name, in the place of the first one or at the end.
    pub fn set(&mut self, name: &str, value: impl Into<Bytes>) {
        let value = Some(value.into());
        match self.0.iter().position(|header| header.name == name) {
            Some(first) => {
                self.0[first].value = value;
                let mut index = 0;
                self.0.retain(|header| {
                    index += 1;
                    index - 1 <= first || header.name != name
                });
            }
            None => self.push(known(name), value),
        }
    }

    /// Removes every header of this name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|header| header.name != name);
    }

    /// The job that sent the record back to its topic and its number there, if one did for this group, or for any.
    #[must_use]
    pub fn replay(&self, group: &str) -> Option<&str> {
        // Nearly always nothing: the names differ in their length.
        let replay = self.text(Name::Replay.as_str())?;
        let of = self.text(Name::Group.as_str());
        of.is_none_or(|of| of == group).then_some(replay)
    }

    /// Only what the user put there.
    #[must_use]
    pub fn without_ours(&self) -> Self {
        let users = self.0.iter().filter(|header| Name::of(&header.name).is_none());
        Self(users.cloned().collect())
    }
}

/// A name that takes no memory of its own if it is one of ours.
#[must_use]
pub fn known(name: &str) -> Cow<'static, str> {
    match Name::of(name) {
        Some(ours) => Cow::Borrowed(ours.as_str()),
        None if name == ENTRY => Cow::Borrowed(ENTRY),
        None if name == LOG => Cow::Borrowed(LOG),
        None if name == TRAIL => Cow::Borrowed(TRAIL),
        None => Cow::Owned(name.to_owned()),
    }
}

impl<N: Into<Cow<'static, str>>, V: Into<Bytes>> FromIterator<(N, Option<V>)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, Option<V>)>>(pairs: I) -> Self {
        let header =
            |(name, value): (N, Option<V>)| Header { name: name.into(), value: value.map(Into::into) };
        Self(pairs.into_iter().map(header).collect())
    }
}
