//! Points in time as Kafka writes them. Only arithmetic: nobody here asks what time it is.

use std::fmt;
use std::time::Duration;

/// Milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This point, later by `wait`; the end of time rather than an overflow.
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// This point, earlier by `time`; the beginning of time rather than an overflow.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_neither_overflows_nor_runs_backwards() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end.plus(Duration::from_secs(1)), end);
        let start = Timestamp::from_millis(i64::MIN);
        assert_eq!(start.since(end), Duration::ZERO);
        assert_eq!(end.since(start), Duration::from_millis(i64::MAX as u64));
    }
}
