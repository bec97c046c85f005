//! What of a file may be shown beside a problem: keys, structure and the culprit itself; no other value.
//!
//! A value may be a secret whatever its key is called, so only the one at fault is shown, and not even
//! that where secrets belong: in the properties of the client, under a name that says so, in an address.
//! In a file that is not TOML nobody knows what is a value; there only keys before `=` and names of
//! tables are shown.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use toml::de::{DeTable, DeValue};

static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let names =
        "(?i)password|passwd|passphrase|secret|token|credential|jaas|private|authorization|key|bearer|basic";
    Regex::new(names).expect("a constant expression")
});

/// Tables whose every value may be a secret, whatever it is called.
const NAMED: [&str; 4] = ["kafka.properties.", "http.headers.", "command.env.", "traces.headers."];

static ONE_VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^["']?\$\{\w+\}["']?$"#).expect("a constant expression"));

/// A key at the beginning of a line.
static KEY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^\s*[\w."'-]{1,60}\s*="#).expect("a constant expression"));

static TABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^\s*\[{1,2}[\w."' -]*\]{0,2}\s*$"#).expect("a constant expression"));

/// A value of the file.
pub(crate) struct Value {
    span: Range<usize>,
    secret: bool,
}

/// Every value of a file that is TOML, in the order of their places.
pub(crate) fn values(table: &DeTable<'_>) -> Vec<Value> {
    let mut values = Vec::new();
    for (key, value) in table {
        collect(key.get_ref(), value, &mut values);
    }
    values.sort_by_key(|value| value.span.start);
    values
}

fn collect(path: &str, node: &toml::Spanned<DeValue<'_>>, values: &mut Vec<Value>) {
    match node.get_ref() {
        DeValue::Table(table) => {
            table
                .iter()
                .for_each(|(key, value)| collect(&format!("{path}.{}", key.get_ref()), value, values));
        }
        DeValue::Array(list) if list.iter().any(|item| item.get_ref().is_table()) => {
            list.iter().for_each(|item| collect(path, item, values));
        }
        _ => {
            let secret = NAMED.iter().any(|table| path.contains(table)) || is_secret(path);
            values.push(Value { span: node.span(), secret });
        }
    }
}

fn is_secret(path: &str) -> bool {
    path.split('.').any(|name| SECRET_NAME.is_match(name))
}

/// The lines around a problem as they may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The number of its first line.
    pub(crate) line: usize,
    /// The lines, as long as they are in the file.
    pub(crate) text: String,
    /// The culprit within them.
    pub(crate) span: Range<usize>,
}

/// More lines than this are not shown, however long the culprit is.
const MOST_LINES: usize = 4;

/// What is shown of a culprit. Without `values` the file is not TOML.
pub(crate) fn excerpt(text: &str, values: Option<&[Value]>, culprit: Range<usize>) -> Excerpt {
    let culprit = floor(text, culprit.start)..floor(text, culprit.end.max(culprit.start));
    let start = text[..culprit.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[start..].match_indices('\n').map(|(at, _)| start + at);
    let end = end.filter(|end| *end >= culprit.end).chain([text.len()]).next().unwrap_or(text.len());
    let lines = text[start..end].match_indices('\n').nth(MOST_LINES - 1).map_or(end, |(at, _)| start + at);
    let shown = start..lines;
    let mut bytes = text[shown.clone()].as_bytes().to_vec();
    match values {
        Some(values) => blank_values(text, values, &culprit, &shown, &mut bytes),
        None => blank_lines(&text[shown.clone()], &mut bytes),
    }
    let span = culprit.start - start..culprit.end.min(shown.end) - start;
    let line = text[..start].matches('\n').count() + 1;
    Excerpt { line, text: String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned(), span }
}

fn blank_values(
    text: &str,
    values: &[Value],
    culprit: &Range<usize>,
    shown: &Range<usize>,
    bytes: &mut [u8],
) {
    let first = values.partition_point(|value| value.span.end <= shown.start);
    let here = || values[first..].iter().take_while(|value| value.span.start < shown.end);
    for value in here() {
        let written = &text[value.span.clone()];
        let at_fault = value.span.start <= culprit.start && culprit.end <= value.span.end;
        let harmless = at_fault && !value.secret && !written.contains('@') && !written.contains(":-");
        if !harmless && !ONE_VARIABLE.is_match(written) {
            blank(&value.span, shown, bytes);
        }
    }
    // What is left and follows a `#` is a comment, unless a key or the culprit has one.
    let is_code = |at: usize| here().any(|value| value.span.contains(&at)) || culprit.contains(&at);
    let comments: Vec<_> = text[shown.clone()].match_indices('#').map(|(at, _)| shown.start + at).collect();
    for at in comments.into_iter().filter(|at| !is_code(*at)) {
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        blank(&(at + 1..end), shown, bytes);
    }
}

fn blank_lines(text: &str, bytes: &mut [u8]) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !TABLE.is_match(line) {
            // The last line of a key in base64 looks like a name with nothing behind its `=`.
            let has_value = |rest: &str| !rest.trim().is_empty() && !rest.starts_with('=');
            let key = KEY.find(line).filter(|found| has_value(&line[found.end()..]));
            let kept = key.map_or(0, |found| found.end());
            blank(&(start + kept..start + line.len()), &(0..text.len()), bytes);
        }
        start += line.len();
    }
}

/// Stars for everything but blanks, byte for byte, so that places stay what they are.
fn blank(span: &Range<usize>, shown: &Range<usize>, bytes: &mut [u8]) {
    let (from, to) = (span.start.max(shown.start), span.end.min(shown.end));
    if from < to {
        let part = &mut bytes[from - shown.start..to - shown.start];
        part.iter_mut().filter(|byte| !b" \t\r\n".contains(byte)).for_each(|byte| *byte = b'*');
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
