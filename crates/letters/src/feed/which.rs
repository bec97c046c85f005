//! Which topics hold letters: those that are named, and those whose names match.

use redrive_core::Topic;
use regex::Regex;

use crate::error::Error;

/// What the names of letter topics end with, unless somebody says otherwise.
pub const PATTERN: &str = r".*\.dlq$";

/// Which topics are read.
#[derive(Debug, Clone)]
pub struct Which {
    names: Vec<Topic>,
    patterns: Vec<Regex>,
}

impl Which {
    /// These topics, and those whose whole names match one of these patterns.
    pub fn new(names: Vec<Topic>, patterns: &[String]) -> Result<Self, Error> {
        let compiled = patterns.iter().map(|pattern| {
            // The whole name, as with a consumer that subscribes by a pattern.
            Regex::new(&format!("^(?:{pattern})$"))
                .map_err(|source| Error::Pattern { pattern: pattern.clone(), source: Box::new(source) })
        });
        Ok(Self { names, patterns: compiled.collect::<Result<_, _>>()? })
    }

    /// Whether a topic is one of them.
    #[must_use]
    pub fn includes(&self, topic: &Topic) -> bool {
        self.names.contains(topic) || self.patterns.iter().any(|pattern| pattern.is_match(topic.as_str()))
    }

    /// Those that are named.
    #[must_use]
    pub fn names(&self) -> &[Topic] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_read_if_it_is_named_or_its_whole_name_matches() {
        let which = Which::new(vec!["orders-dlt".parse().unwrap()], &[PATTERN.to_owned()]).unwrap();
        let includes = |name: &str| which.includes(&name.parse().unwrap());
        assert!(includes("orders-dlt") && includes("orders.g.dlq"));
        assert!(!includes("orders") && !includes("orders.dlq.copy") && !includes("orders-dlt2"));
        let error = Which::new(Vec::new(), &["(".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`(`"), "{error}");
    }
}
