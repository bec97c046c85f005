//! Points in time as people write and read them: `2026-11-01T06:00:00Z`, `10m`, `-2h`.

use std::time::Duration;

use redrive_core::{Timestamp, duration};

use crate::human;

pub(crate) use redrive_letters::When;

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
    fn times_are_shown_as_they_are_read() {
        let time = Timestamp::from_millis(1_793_520_000_250);
        assert_eq!(shown(time), "2026-11-01T08:00:00.25Z");
        assert_eq!(shown(time).parse::<When>(), Ok(When::At(time)));
        assert_eq!(from_now(time, time.plus(Duration::from_secs(90))), "1m 30s ago");
        assert_eq!(from_now(time.plus(Duration::from_millis(250)), time), "in 250ms");
    }
}
