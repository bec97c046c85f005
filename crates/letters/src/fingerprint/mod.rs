//! Which failures have the same cause: a short, stable text for an error type, what its message says apart from
//! the values in it, and the top of its chain of causes, in one topic and group.
//!
//! The version is part of the text. Another way to normalise makes other groups, and what people said about
//! the old ones (muted, resolved) no longer finds them: so it is a new version, and never done in passing.

mod normal;

use std::fmt;
use std::str::FromStr;

use crate::letter::Letter;

pub use normal::normalised;

/// The version of what is compared, and how.
pub const VERSION: u32 = 1;

/// How many causes of the chain count, from the outside in: what is below is the library's affair.
const TOP: usize = 3;

/// The id of a failure group: `f1-` and twelve letters and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 12;
const BITS: u64 = (1 << (5 * LENGTH as u64)) - 1;

impl Fingerprint {
    /// The failure group of a letter.
    #[must_use]
    pub fn of(letter: &Letter) -> Self {
        let message = normalised(letter.message.as_deref().unwrap_or_default());
        Self::with(letter, &message)
    }

    /// The same, where the message is normalised already.
    pub(crate) fn with(letter: &Letter, message: &str) -> Self {
        let mut hash = Hash::new();
        let topic = letter.source.topic.as_deref().unwrap_or(letter.at.topic.as_str());
        hash.text(Some(topic));
        hash.text(letter.group.as_deref());
        // One that never reached a handler has no error: why it is a letter is what there is.
        let reason = letter.reason.map(|reason| reason.to_string());
        hash.text(letter.error_type.as_deref().or(reason.as_deref()));
        hash.text(Some(message));
        for link in letter.chain.iter().take(TOP) {
            hash.text(Some(&link.error_type));
            hash.number(u64::from(link.status.unwrap_or(0)));
            hash.text(link.code.as_deref());
        }
        Self(hash.end() & BITS)
    }

    /// As a number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// From its number.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number & BITS)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{VERSION}-")?;
        for place in (0..LENGTH).rev() {
            let digit = (self.0 >> (5 * place)) & 31;
            write!(f, "{}", char::from(DIGITS[digit as usize]))?;
        }
        Ok(())
    }
}

/// A text that is no failure group of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a failure group; they look like f1-3k9x0m2v7a1c, and `redrive dlq groups` lists them")]
pub struct BadFingerprint(pub String);

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let bad = || BadFingerprint(text.to_owned());
        let digits = text.strip_prefix(&format!("f{VERSION}-")).filter(|digits| digits.len() == LENGTH);
        let value = |digit: u8| DIGITS.iter().position(|one| *one == digit);
        let number = digits
            .ok_or_else(bad)?
            .bytes()
            .try_fold(0, |number: u64, digit| Some(number << 5 | u64::try_from(value(digit)?).ok()?));
        number.map(Self).ok_or_else(bad)
    }
}

/// FNV-1a, with its bits mixed at the end. It is written down in every group's id, so it stays as it is.
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// With its length, so that no two lists of texts are alike; none is not an empty text.
    fn text(&mut self, text: Option<&str>) {
        self.number(text.map_or(u64::MAX, |text| text.len() as u64));
        self.bytes(text.unwrap_or_default().as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub(crate) fn end(self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redrive_core::Record;
    use redrive_core::headers::Headers;

    fn letter(pairs: &[(&'static str, &str)]) -> Letter {
        let pairs = pairs.iter().map(|(name, value)| (*name, Some(value.to_string())));
        let at = "orders.billing.dlq/0/7".parse().unwrap();
        let headers: Headers = pairs.collect();
        Letter::read(&Record { at, timestamp: None, key: None, value: None, headers })
    }

    fn failed(kind: &str, message: &str) -> Letter {
        letter(&[
            ("redrive-origin", "orders/0/1"),
            ("redrive-group", "billing"),
            ("redrive-error-type", kind),
            ("redrive-error-message", message),
        ])
    }

    #[test]
    fn the_ids_of_version_1_stay_what_they_are() {
        let known = [
            (failed("NoSuchCustomer", "no customer 7"), "f1-sv4rxcy1dm5e"),
            (failed("Timeout", "after 900ms"), "f1-skrtnsrx8fm1"),
            (letter(&[]), "f1-paptm1ny2agp"),
        ];
        for (letter, id) in known {
            assert_eq!(letter.fingerprint().to_string(), id);
        }
    }

    #[test]
    fn type_message_chain_topic_and_group_tell_failures_apart() {
        let one = failed("Timeout", "no answer from db").fingerprint();
        assert_eq!(one, failed("Timeout", "no answer from db").fingerprint());
        assert_ne!(one, failed("Refused", "no answer from db").fingerprint());
        assert_ne!(one, failed("Timeout", "no answer from cache").fingerprint());
        let other = |change: fn(&mut Letter)| {
            let mut letter = failed("Timeout", "no answer from db");
            change(&mut letter);
            letter.fingerprint()
        };
        assert_ne!(one, other(|letter| letter.group = Some("reports".to_owned())));
        assert_ne!(one, other(|letter| letter.group = None));
        assert_ne!(one, other(|letter| letter.source.topic = Some("items".to_owned())));
        assert_eq!(one, other(|letter| letter.source.offset = Some(99)));
        assert_eq!(one, other(|letter| letter.stack = Some("at main".to_owned())));
        let status = |status: u16| {
            let mut letter = failed("Timeout", "no answer from db");
            let chain = format!(r#"[{{"type":"h","message":"","status":{status}}}]"#);
            letter.chain = serde_json::from_str(&chain).unwrap();
            letter.fingerprint()
        };
        assert_ne!(status(404), status(500));
    }

    proptest! {
        #[test]
        fn an_id_is_read_as_it_is_written(number in any::<u64>()) {
            let id = Fingerprint::from_number(number);
            prop_assert_eq!(id.to_string().parse::<Fingerprint>(), Ok(id));
            prop_assert_eq!(Fingerprint::from_number(id.number()), id);
        }

        #[test]
        fn any_text_is_an_id_or_refused(text in "\\PC{0,20}") {
            if let Ok(id) = text.parse::<Fingerprint>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
