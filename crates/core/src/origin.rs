//! Where a record was first consumed: its identity for ever.

use std::fmt;
use std::str::FromStr;

use crate::topic::{BadTopic, Topic};

/// Topic, partition and offset of a record as this group first consumed it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The source topic.
    pub topic: Topic,
    /// The source partition.
    pub partition: i32,
    /// The offset in it.
    pub offset: i64,
}

/// A text that is not `topic/partition/offset`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOrigin {
    /// Not three parts, or the numbers are none.
    #[error("`{0}` is not an origin; write topic/partition/offset, such as orders/3/1042")]
    Shape(String),
    /// The topic's name is refused.
    #[error("`{text}` is not an origin")]
    Topic {
        /// The whole text.
        text: String,
        /// What is wrong with the name.
        source: BadTopic,
    },
}

impl FromStr for Origin {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let shape = || BadOrigin::Shape(text.to_owned());
        let mut parts = text.rsplitn(3, '/');
        let (offset, partition, topic) = (parts.next(), parts.next(), parts.next());
        let offset = natural(offset).ok_or_else(shape)?;
        let partition = natural(partition).ok_or_else(shape)?;
        let topic = topic.ok_or_else(shape)?.parse();
        let topic = topic.map_err(|source| BadOrigin::Topic { text: text.to_owned(), source })?;
        Ok(Self { topic, partition, offset })
    }
}

/// Digits only: `+5` and `007` would give one record two names.
fn natural<N: FromStr>(part: Option<&str>) -> Option<N> {
    let part = part.filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
    let is_plain = part == "0" || !part.starts_with('0');
    part.parse::<N>().ok().filter(|_| is_plain)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_origin_has_one_spelling() {
        assert!("orders/3/1042".parse::<Origin>().is_ok());
        for text in
            ["orders/3", "orders/-1/5", "orders/+1/5", "orders/03/5", "orders/3/", "a/b/3/5", "/3/5", ""]
        {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(topic in "[a-z._-]{3,20}", partition in 0..i32::MAX, offset in 0..i64::MAX) {
            let origin = Origin { topic: topic.parse().unwrap(), partition, offset };
            prop_assert_eq!(origin.to_string().parse::<Origin>(), Ok(origin));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            if let Ok(origin) = text.parse::<Origin>() {
                prop_assert_eq!(origin.to_string(), text);
            }
        }
    }
}
