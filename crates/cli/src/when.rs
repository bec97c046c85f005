//! Points in time as people write and read them: `2026-11-01T06:00:00Z`, `10m`, `-2h`.

use std::str::FromStr;
use std::time::Duration;

use redrive_core::{Timestamp, duration};

use crate::human;

/// A time as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    At(Timestamp),
    /// So long from now.
    In(Duration),
    /// So long before now.
    Ago(Duration),
}

impl When {
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::In(wait) => now.plus(wait),
            Self::Ago(past) => {
                let past = i64::try_from(past.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.millis().saturating_sub(past))
            }
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
        let (past, length) = match text.strip_prefix('-') {
            Some(length) => (true, length),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match duration::parse(length) {
            Ok(length) if past => Ok(Self::Ago(length)),
            Ok(length) => Ok(Self::In(length)),
            Err(_) => Err("write a time such as 2026-11-01T06:00:00Z, or 10m from now, or -2h".to_owned()),
        }
    }
}

/// A length of time, as clap reads it.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| match error.help {
        Some(help) => format!("{}; {help}", error.message),
        None => error.message,
    })
}

/// As a person reads it anywhere.
pub(crate) fn shown(time: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(time.millis()) {
        Ok(time) => time.to_string(),
        Err(_) => time.to_string(),
    }
}

/// How far it is from now.
pub(crate) fn from_now(time: Timestamp, now: Timestamp) -> String {
    if time > now {
        format!("in {}", human::rough(time.since(now)))
    } else {
        format!("{} ago", human::rough(now.since(time)))
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
        assert_eq!(at("now"), Ok(1_000_000));
        assert!(at("tomorrow").is_err() && at("10").is_err() && at("").is_err());
    }

    #[test]
    fn times_are_shown_as_they_are_read() {
        let time = Timestamp::from_millis(1_793_520_000_250);
        assert_eq!(shown(time), "2026-11-01T08:00:00.25Z");
        assert_eq!(shown(time).parse::<When>(), Ok(When::At(time)));
        assert_eq!(from_now(time, time.plus(Duration::from_secs(90))), "1m 30s ago");
        assert_eq!(from_now(time.plus(Duration::from_millis(250)), time), "in 250ms");
    }
}
