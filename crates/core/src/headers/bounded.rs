//! Limits on what we write into headers, so that no error text makes a record too large.

pub(super) const MESSAGE: usize = 4 * 1024;
pub(super) const STACK: usize = 16 * 1024;
pub(super) const CAUSE: usize = 1024;
pub(super) const CHAIN: usize = 16 * 1024;
pub(super) const NAME: usize = 256;
pub(super) const BRIEF: usize = 96;

const MARK: &str = "…";

/// The text, cut at a character and marked if it is longer than `limit` bytes.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}
