//! Letters in words.

use redrive_letters::{Outcome, State, Summary};

use crate::bytes_text;

/// Where the record was consumed.
pub(super) fn origin(letter: &Summary) -> String {
    match (letter.partition, letter.offset) {
        (Some(partition), Some(offset)) => format!("{}/{partition}/{offset}", letter.source),
        _ => letter.source.clone(),
    }
}

/// Type and message of an error, on one line.
pub(super) fn error(error_type: Option<&str>, message: Option<&str>) -> String {
    let text = match (error_type, message.filter(|message| !message.is_empty())) {
        (Some(error_type), Some(message)) => format!("{}: {message}", short(error_type)),
        (Some(error_type), None) => short(error_type).to_owned(),
        (None, Some(message)) => message.to_owned(),
        (None, None) => "-".to_owned(),
    };
    bytes_text::line(text.as_bytes())
}

/// A type without the package it is in.
fn short(error_type: &str) -> &str {
    // The address of a problem has no package: cut, it would be another.
    if error_type.contains('/') {
        return error_type;
    }
    error_type.rsplit(['.', ':']).next().filter(|name| !name.is_empty()).unwrap_or(error_type)
}

pub(super) fn bytes(bytes: Option<&[u8]>) -> String {
    bytes.map_or("-".to_owned(), |bytes| bytes_text::cut(&bytes_text::line(bytes), 40))
}

/// What is the matter with a letter.
pub(super) fn state(letter: &Summary) -> String {
    match (letter.state, letter.outcome) {
        (State::Replayed, Some(Outcome::Handled)) => "replayed, handled".to_owned(),
        (State::Replayed, Some(Outcome::Waiting)) => "replayed, waits".to_owned(),
        (State::Replayed, Some(Outcome::Buried)) => "replayed, failed again".to_owned(),
        (state, _) => state.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_on_one_line_without_its_package() {
        assert_eq!(error(Some("java.io.IOException"), Some("two\nlines")), "IOException: two\\nlines");
        assert_eq!(error(Some("shop::errors::NoSuchCustomer"), None), "NoSuchCustomer");
        assert_eq!(error(Some("odd."), Some("")), "odd.");
        let address = "https://ex/bad-price";
        assert_eq!(error(Some(address), Some("too high")), "https://ex/bad-price: too high");
        assert_eq!(error(Some("urn:problem/v1.2:bad"), None), "urn:problem/v1.2:bad");
        assert_eq!((error(None, Some("no")), error(None, None)), ("no".to_owned(), "-".to_owned()));
    }
}
