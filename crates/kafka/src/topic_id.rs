//! The id of a topic: what tells a topic from another of the same name that was made after it.

use std::fmt;
use std::str::FromStr;

/// 16 bytes that Kafka gives a topic when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId([u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Base64 without padding: 6 bits a character.
const LENGTH: usize = 22;

impl TopicId {
    /// The id of these bytes; all zeros mean that there is none.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }

    pub(crate) fn from_bits(most: i64, least: i64) -> Option<Self> {
        let both = (u128::from(most.cast_unsigned()) << 64) | u128::from(least.cast_unsigned());
        Self::from_bytes(both.to_be_bytes())
    }
}

/// As Kafka prints it: base64 for addresses, without padding.
impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        let text: String = (0..LENGTH)
            .map(|place| {
                let shift = 122 - 6 * i32::try_from(place).expect("below 22");
                let six = if shift >= 0 { bits >> shift } else { bits << -shift };
                char::from(ALPHABET[(six & 63) as usize])
            })
            .collect();
        f.pad(&text)
    }
}

/// A text that is not the id of a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a topic")]
pub struct BadTopicId(String);

impl FromStr for TopicId {
    type Err = BadTopicId;

    fn from_str(text: &str) -> Result<Self, BadTopicId> {
        let refused = || BadTopicId(text.to_owned());
        if text.len() != LENGTH {
            return Err(refused());
        }
        let mut bits = 0_u128;
        for (place, character) in text.bytes().enumerate() {
            let six = ALPHABET.iter().position(|known| *known == character).ok_or_else(refused)? as u128;
            // The last character holds two bits, above four that are zero.
            bits = if place + 1 < LENGTH {
                bits << 6 | six
            } else if six & 0b1111 == 0 {
                bits << 2 | six >> 4
            } else {
                return Err(refused());
            };
        }
        Self::from_bytes(bits.to_be_bytes()).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printed_as_kafka_prints_it() {
        // Uuid.toString() of Kafka for these bits.
        let id = TopicId::from_bits(1, 1).unwrap();
        assert_eq!(id.to_string(), "AAAAAAAAAAEAAAAAAAAAAQ");
        let all = TopicId::from_bytes([0xff; 16]).unwrap();
        assert_eq!(all.to_string(), "_____________________w");
    }

    #[test]
    fn an_id_is_read_as_it_is_printed() {
        for bytes in [[1; 16], [0xfe; 16], *b"0123456789abcdef"] {
            let id = TopicId::from_bytes(bytes).unwrap();
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAEAAAAAAAAAA+", "AAAAAAAAAAEAAAAAAAAAAR", "ä"] {
            assert!(text.parse::<TopicId>().is_err(), "{text}");
        }
    }

    #[test]
    fn zeros_are_no_id() {
        assert_eq!(TopicId::from_bits(0, 0), None);
    }
}
