//! Points in time as people write them: `2026-11-01T06:00:00Z`, `2026-11-01`, `10m`, `2h ago`, `-2h`.

use std::str::FromStr;
use std::time::Duration;

use redrive_core::{Timestamp, duration};

/// A time as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This very time.
    At(Timestamp),
    /// So long from now.
    In(Duration),
    /// So long before now.
    Ago(Duration),
}

impl When {
    /// Which time that is.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::In(wait) => now.plus(wait),
            Self::Ago(past) => {
                let past = i64::try_from(past.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.millis().saturating_sub(past))
            }
        }
    }

    /// The same where only the past can be meant: `2h` is two hours ago.
    #[must_use]
    pub fn past(self) -> Self {
        match self {
            Self::In(length) => Self::Ago(length),
            Self::At(_) | Self::Ago(_) => self,
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "now" {
            return Ok(Self::In(Duration::ZERO));
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::At(Timestamp::from_millis(time.as_millisecond())));
        }
        // A day is its beginning.
        let is_day = text.len() == "2026-11-01".len() && text.starts_with(|c: char| c.is_ascii_digit());
        if let Some(Ok(day)) = is_day.then(|| format!("{text}T00:00:00Z").parse::<jiff::Timestamp>()) {
            return Ok(Self::At(Timestamp::from_millis(day.as_millisecond())));
        }
        let (past, length) = match (text.strip_prefix('-'), text.strip_suffix("ago")) {
            (Some(length), None) => (true, length),
            (None, Some(length)) => (true, length.trim_end()),
            _ => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match duration::parse(length) {
            Ok(length) if past => Ok(Self::Ago(length)),
            Ok(length) => Ok(Self::In(length)),
            Err(_) => Err("write a time such as 2026-11-01T06:00:00Z, a day such as 2026-11-01, or a length such as 10m or 2h ago".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_absolute_or_counts_from_now() {
        let now = Timestamp::from_millis(1_000_000);
        let at = |text: &str| text.parse::<When>().map(|when| when.at(now).millis());
        assert_eq!(at("1970-01-01T00:00:05Z"), Ok(5_000));
        assert_eq!(at("1970-01-01T01:00:05+01:00"), Ok(5_000));
        assert_eq!((at("10s"), at("+10s"), at("-10s")), (Ok(1_010_000), Ok(1_010_000), Ok(990_000)));
        assert_eq!((at("10s ago"), at("10sago")), (Ok(990_000), Ok(990_000)));
        assert_eq!((at("1970-01-02"), at("2026-11-16")), (Ok(86_400_000), Ok(1_794_787_200_000)));
        assert_eq!(at("now"), Ok(1_000_000));
        assert_eq!("10s".parse::<When>().map(|when| when.past().at(now).millis()), Ok(990_000));
        assert!(at("2026-13-01").is_err() && at("-10s ago").is_err() && at("ago").is_err());
        assert!(at("tomorrow").is_err_and(|error| error.contains("2h ago") && error.contains("a day")));
        assert!(at("10").is_err() && at("").is_err());
    }
}
