//! Bytes as people see them: text where they are text, hexadecimal digits where they are not.

use std::fmt::Write;

pub(crate) use redrive_letters::query::named;

/// The text, if a terminal can show it as it is.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(plain).then_some(text)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// On one line.
pub(crate) fn line(bytes: &[u8]) -> String {
    match text(bytes) {
        Some(text) => text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""),
        None => format!("0x{}", hex(bytes)),
    }
}

/// The beginning of a text, and a sign that there is more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_shown_in_digits_and_can_be_named_by_them() {
        assert_eq!(line(b"order 7"), "order 7");
        assert_eq!(line(b"two\nlines"), "two\\nlines");
        assert_eq!(line(&[0, 255]), "0x00ff");
        assert!(named("0x00ff").contains(&vec![0, 255]));
        assert_eq!(named("0x0g"), [b"0x0g".to_vec()]);
        assert_eq!(text(&[0x1b, b'[', b'm']), None, "a terminal is not to be told what to do");
        assert_eq!((cut("größe", 3), cut("ab", 3)), ("grö…".to_owned(), "ab".to_owned()));
    }
}
