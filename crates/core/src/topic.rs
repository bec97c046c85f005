//! Names of topics: what Kafka accepts, and the names that Redrive derives for a subscription.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::duration;

/// The longest name Kafka accepts.
const LONGEST: usize = 249;

/// A name that Kafka accepts for a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name that Kafka would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTopic {
    /// There is no name.
    #[error("a topic needs a name")]
    Empty,
    /// The file system's own names.
    #[error("`{0}` cannot be the name of a topic")]
    Dots(String),
    /// Longer than Kafka accepts.
    #[error("the topic name `{name}` has {length} characters; Kafka accepts at most {LONGEST}", length = name.len())]
    TooLong {
        /// The name.
        name: String,
    },
    /// A character that Kafka does not accept.
    #[error("the topic name `{name}` contains {found:?}; Kafka accepts letters, digits, `.`, `_` and `-`")]
    Character {
        /// The name.
        name: String,
        /// The first character at fault.
        found: char,
    },
}

impl FromStr for Topic {
    type Err = BadTopic;

    fn from_str(name: &str) -> Result<Self, BadTopic> {
        let accepted = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() {
            return Err(BadTopic::Empty);
        }
        if name == "." || name == ".." {
            return Err(BadTopic::Dots(name.to_owned()));
        }
        if let Some(found) = name.chars().find(|c| !accepted(*c)) {
            return Err(BadTopic::Character { name: name.to_owned(), found });
        }
        if name.len() > LONGEST {
            return Err(BadTopic::TooLong { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a topic of a subscription is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Records that wait.
    Shelf,
    /// Dead letters.
    Letters,
    /// One step of a ladder.
    Rung(Duration),
    /// The one retry topic of the return strategy.
    Retry,
    /// Where returned records come back, apart from new ones.
    Return,
}

/// The topic that a subscription of `group` to `source` uses for `purpose`.
pub fn derived(source: &Topic, group: &str, purpose: Purpose) -> Result<Topic, BadTopic> {
    let suffix = match purpose {
        Purpose::Shelf => "shelf".to_owned(),
        Purpose::Letters => "dlq".to_owned(),
        Purpose::Rung(delay) => format!("retry-{}", duration::print(delay)),
        Purpose::Retry => "retry".to_owned(),
        Purpose::Return => "return".to_owned(),
    };
    format!("{source}.{group}.{suffix}").parse()
}

/// The bucket topic of the delay service, shared by all its users.
pub fn bucket(delay: Duration) -> Result<Topic, BadTopic> {
    format!("redrive.delay.{}", duration::print(delay)).parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_topics_of_a_subscription_carry_its_topic_and_group() {
        let source: Topic = "pre-order".parse().unwrap();
        let name = |purpose| derived(&source, "payments", purpose).unwrap().to_string();
        assert_eq!(name(Purpose::Shelf), "pre-order.payments.shelf");
        assert_eq!(name(Purpose::Letters), "pre-order.payments.dlq");
        assert_eq!(name(Purpose::Rung(Duration::from_secs(300))), "pre-order.payments.retry-5m");
        assert_eq!(name(Purpose::Retry), "pre-order.payments.retry");
        assert_eq!(name(Purpose::Return), "pre-order.payments.return");
        assert_eq!(bucket(Duration::from_secs(3_600)).unwrap().as_str(), "redrive.delay.1h");
    }

    #[test]
    fn names_that_kafka_refuses_are_refused_with_the_reason() {
        let refused = [("", "needs"), (".", "cannot"), ("..", "cannot"), ("a/b", "'/'"), ("größe", "'ö'")];
        for (name, fragment) in refused {
            let error = name.parse::<Topic>().unwrap_err().to_string();
            assert!(error.contains(fragment), "{error}");
        }
        let long = "a".repeat(245);
        assert!("a".repeat(249).parse::<Topic>().is_ok() && "a".repeat(250).parse::<Topic>().is_err());
        let error = derived(&long.parse().unwrap(), "g", Purpose::Letters).unwrap_err().to_string();
        assert!(error.contains("251 characters"), "{error}");
    }

    proptest! {
        #[test]
        fn a_name_is_accepted_exactly_when_kafka_does(name in "[a-zA-Z0-9._/ é-]{0,260}") {
            let legal = !name.is_empty() && name.len() <= 249 && name != "." && name != ".."
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_' || b == b'-');
            prop_assert_eq!(name.parse::<Topic>().is_ok(), legal);
        }
    }
}
