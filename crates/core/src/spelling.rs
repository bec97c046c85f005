//! What is wrong with a piece of text, and where: the error of every small grammar in this crate.

use std::fmt;
use std::ops::Range;

/// A mistake in a text that a person wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Misspelt {
    /// The bytes at fault; empty where something is missing.
    pub span: Range<usize>,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl Misspelt {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Reads a text from left to right and knows where it is.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Right behind what was taken last, where something missing should stand.
    pub(crate) fn behind(&self) -> usize {
        self.at
    }

    /// Where the next character that is not blank begins.
    pub(crate) fn position(&mut self) -> usize {
        let blank = self.rest().len() - self.rest().trim_start().len();
        self.at += blank;
        self.at
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.position() == self.text.len()
    }

    /// Takes `token` if it comes next.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        self.position();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Takes as many characters as `belongs` accepts; the span is empty if there are none.
    pub(crate) fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> (Range<usize>, &'a str) {
        let start = self.position();
        let len = self.rest().find(|c| !belongs(c)).unwrap_or(self.rest().len());
        self.at += len;
        (start..self.at, &self.text[start..self.at])
    }

    /// The token that stands here, for an error that points at it.
    pub(crate) fn here(&mut self) -> Range<usize> {
        let start = self.position();
        let len = self.rest().find(|c: char| c.is_whitespace() || "(),".contains(c));
        let len = len.unwrap_or(self.rest().len());
        let first = self.rest().chars().next().map_or(0, char::len_utf8);
        start..start + len.max(first)
    }

    /// Takes `token` or says that it is missing here.
    pub(crate) fn expect(&mut self, token: &str, place: impl fmt::Display) -> Result<(), Misspelt> {
        if self.take(token) {
            return Ok(());
        }
        Err(Misspelt::new(self.here(), format!("expected `{token}` {place}")))
    }
}

/// The nearest of `known` to what was typed, if any is near.
#[must_use]
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&typed.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.len().max(typed.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        let known = ["concurrency", "followers", "topic"];
        assert_eq!(nearest("concurency", known), Some("concurrency"));
        assert_eq!(nearest("Topics", known), Some("topic"));
        assert_eq!(nearest("zebra", known), None);
    }
}
