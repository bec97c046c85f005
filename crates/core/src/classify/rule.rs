//! A rule: conditions that must all hold, and the class that follows.

use std::fmt;

use super::{Condition, Subject};
use crate::class::Class;
use crate::failure::Cause;
use crate::topic::Topic;

/// If all of these hold, the failure has this class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    conditions: Vec<Condition>,
    class: Class,
}

/// A rule that makes no sense by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// It would match everything.
    #[error("a rule needs a condition: type, message, pattern, status, code, topic or header")]
    Empty,
    /// It can never match.
    #[error("this rule can never match: {0} and {1} exclude each other")]
    Contradiction(String, String),
}

impl Rule {
    /// A rule of these conditions.
    pub fn new(conditions: Vec<Condition>, class: Class) -> Result<Self, BadRule> {
        if conditions.is_empty() {
            return Err(BadRule::Empty);
        }
        for (index, one) in conditions.iter().enumerate() {
            if let Some(other) = conditions[index + 1..].iter().find(|other| one.excludes(other)) {
                return Err(BadRule::Contradiction(one.to_string(), other.to_string()));
            }
        }
        Ok(Self { conditions, class })
    }

    /// The class it names.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    pub(super) fn matches(&self, cause: &Cause, subject: Subject<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(cause, subject))
    }

    /// Whether this rule matches everything that `later` matches, so that `later`, if it comes
    /// after this one, can never match. A `true` is certain; a `false` is not.
    #[must_use]
    pub fn covers(&self, later: &Self) -> bool {
        let implied = |ours: &Condition| later.conditions.iter().any(|theirs| theirs.implies(ours));
        self.conditions.iter().all(implied)
    }

    /// As [`Rule::covers`], for records of this topic only.
    #[must_use]
    pub fn covers_in(&self, topic: &Topic, later: &Self) -> bool {
        let here = Condition::Topic(topic.clone());
        let implied =
            |ours: &Condition| *ours == here || later.conditions.iter().any(|theirs| theirs.implies(ours));
        self.conditions.iter().all(implied)
    }

    /// Whether records of `topic` can match it.
    #[must_use]
    pub fn allows_topic(&self, topic: &Topic) -> bool {
        let wanted = Condition::Topic(topic.clone());
        !self.conditions.iter().any(|condition| condition.excludes(&wanted))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<_> = self.conditions.iter().map(ToString::to_string).collect();
        write!(f, "{} is {}", conditions.join(" and "), self.class)
    }
}
