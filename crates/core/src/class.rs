//! The four kinds of failure, and the names they go by.

use std::fmt;
use std::str::FromStr;

/// What a failure says about the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// No further try will help: dead-letter at once (NRE).
    Permanent,
    /// The next try, soon and in place, will probably help (SLE).
    Transient,
    /// The dependency is down for everyone: the flow waits (SBE).
    Outage,
    /// Only this record cannot be handled yet: set it aside, its neighbours go on (SNBE).
    NotReady,
}

impl Class {
    /// Every class, in the order in which they are documented.
    pub const ALL: [Self; 4] = [Self::Permanent, Self::Transient, Self::Outage, Self::NotReady];

    /// The name used in configuration, headers, metrics and on the screen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Transient => "transient",
            Self::Outage => "outage",
            Self::NotReady => "not-ready",
        }
    }

    /// The acronym, read wherever the name is.
    #[must_use]
    pub fn alias(self) -> &'static str {
        match self {
            Self::Permanent => "NRE",
            Self::Transient => "SLE",
            Self::Outage => "SBE",
            Self::NotReady => "SNBE",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a class; the classes are permanent (NRE), transient (SLE), outage (SBE), not-ready (SNBE)"
)]
pub struct UnknownClass(pub String);

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|class| text == class.name() || text.eq_ignore_ascii_case(class.alias()))
            .ok_or_else(|| UnknownClass(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_read_by_its_name_and_by_its_acronym() {
        for class in Class::ALL {
            assert_eq!(class.name().parse(), Ok(class));
            assert_eq!(class.alias().parse(), Ok(class));
            assert_eq!(class.alias().to_lowercase().parse(), Ok(class));
        }
    }

    #[test]
    fn an_unknown_class_is_named_with_the_known_ones() {
        let error = "fatal".parse::<Class>().unwrap_err().to_string();
        assert!(error.contains("`fatal`") && error.contains("not-ready"), "{error}");
    }
}
