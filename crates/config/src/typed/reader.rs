//! Walks the parsed file and collects problems on the way.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use redrive_core::spelling::{Misspelt, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Typed;
use crate::Surroundings;
use crate::interpolate;
use crate::problem::Problem;

pub(crate) type Node<'a> = &'a Spanned<DeValue<'a>>;
type Key<'a> = Spanned<Cow<'a, str>>;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    /// The value's place.
    pub(crate) span: Range<usize>,
    /// The place of its key; of the value itself inside a list.
    pub(crate) key: Range<usize>,
    /// Whether a variable stood for it or for a part of it: then it may be a secret, and is not repeated.
    pub(crate) hidden: bool,
}

impl<T: Typed> At<T> {
    pub(super) fn read(key: &Key<'_>, node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        Self::read_at(key.span(), node, reader)
    }

    pub(super) fn read_at(key: Range<usize>, node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let before = std::mem::take(&mut reader.filled_in);
        let value = T::read(node, reader);
        let hidden = reader.filled_in;
        reader.filled_in |= before;
        Some(Self { value: value?, span: node.span(), key, hidden })
    }
}

impl<T> At<T> {
    /// The text, or a hint that a variable stands for it.
    pub(crate) fn shown(&self, text: impl std::fmt::Display) -> String {
        if self.hidden { "(from a variable, not shown)".to_owned() } else { text.to_string() }
    }
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A table that is read key by key.
pub(crate) trait FromTable: Sized {
    fn from_table(table: &DeTable<'_>, span: Range<usize>, reader: &mut Reader<'_>) -> Self;
}

/// What is known while the file is read.
pub(crate) struct Reader<'a> {
    source: &'a str,
    surroundings: Surroundings<'a>,
    problems: Vec<Problem>,
    /// In a file that is not TOML, half of it is missing or in the wrong place; that is told already.
    is_toml: bool,
    /// Whether a variable was filled in since the last value began.
    filled_in: bool,
}

/// A text of the file with its variables filled in.
pub(crate) struct Filled {
    pub(crate) text: String,
    span: Range<usize>,
    /// Where the text itself begins in the file, if it stands there letter by letter.
    literal_at: Option<usize>,
    from_variable: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a str, surroundings: Surroundings<'a>, is_toml: bool) -> Self {
        Self { source, surroundings, problems: Vec::new(), is_toml, filled_in: false }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    pub(crate) fn problem_count(&self) -> usize {
        self.problems.len()
    }

    pub(crate) fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(crate) fn table<T: FromTable>(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Option<T> {
        Some(T::from_table(table, span, self))
    }

    pub(crate) fn expect_table<'n>(&mut self, node: Node<'n>) -> Option<&'n DeTable<'n>> {
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(node, "a table", "write it as `[name]` or `{ key = value }`");
        }
        table
    }

    pub(crate) fn wrong_type(&mut self, node: Node<'_>, expected: &str, help: &str) {
        if !self.is_toml {
            return;
        }
        let found = match node.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a switch",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.note(Problem::error(node.span(), format!("expected {expected}, found {found}")).help(help));
    }

    /// Notes a key that is not known, and says which one was probably meant.
    pub(crate) fn unknown_key<'k>(&mut self, key: &Key<'_>, known: &[&'k str]) -> Option<&'k str> {
        let problem = Problem::error(key.span(), format!("unknown key `{}`", key.get_ref()));
        let near = nearest(key.get_ref(), known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are {}", known.join(", ")),
        };
        self.note_key(problem.help(help));
        near
    }

    /// Notes a problem that repeats a key. In a file that is not TOML a key may be a piece of a value.
    pub(crate) fn note_key(&mut self, problem: Problem) {
        if self.is_toml {
            self.note(problem);
        }
    }

    pub(crate) fn missing_key(&mut self, span: Range<usize>, key: &str) {
        if self.is_toml {
            self.note(Problem::error(span, format!("the key `{key}` is missing")));
        }
    }

    /// A text, its variables filled in.
    pub(crate) fn text(&mut self, node: Node<'_>, what: &str) -> Option<Filled> {
        let Some(typed) = node.get_ref().as_str() else {
            self.wrong_type(node, what, "write it in quotes");
            return None;
        };
        let span = node.span();
        let literal_at = self.source[span.clone()].find(typed).map(|at| span.start + at);
        match interpolate::fill(typed, self.surroundings.variables) {
            Ok(filled) => {
                let from_variable = !filled.names.is_empty();
                self.filled_in |= from_variable;
                let literal_at = literal_at.filter(|_| filled.text == typed);
                Some(Filled { text: filled.text, span, literal_at, from_variable })
            }
            Err(bad) => {
                for bad in bad {
                    let place = place(literal_at, &span, bad.span);
                    self.note(Problem::error(place, bad.message).help(bad.help));
                }
                None
            }
        }
    }

    /// Whether the client accepts this property.
    pub(crate) fn accepts(&self, name: &str, value: &str) -> Result<(), String> {
        (self.surroundings.property)(name, value)
    }

    /// Notes what is wrong with a text. What a variable stood for is not repeated: it may be a secret.
    pub(crate) fn misspelt(&mut self, filled: &Filled, what: &str, mistake: Misspelt) {
        let problem = if filled.from_variable {
            let message = format!("with its variables filled in (not shown) this is not {what}");
            Problem::error(filled.span.clone(), message)
        } else {
            let problem =
                Problem::error(place(filled.literal_at, &filled.span, mistake.span), mistake.message);
            Problem { help: mistake.help, ..problem }
        };
        self.note(problem);
    }
}

fn place(literal_at: Option<usize>, whole: &Range<usize>, part: Range<usize>) -> Range<usize> {
    literal_at.map_or(whole.clone(), |at| at + part.start..at + part.end)
}
