//! How fast: `50/s`, `3000/m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// At most so many letters in so long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    letters: u32,
    per: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
}

/// So often letters go out where their rate is limited.
const TURNS: f64 = 5.0;

impl Rate {
    /// Letters in a second.
    #[must_use]
    pub fn in_a_second(self) -> f64 {
        f64::from(self.letters) / self.per.length().as_secs_f64()
    }

    /// How many go out together, so that they come evenly and not one by one.
    #[must_use]
    pub fn handful(self) -> u64 {
        // A rate is far below what a float holds exactly.
        ((self.in_a_second() / TURNS).ceil() as u64).max(1)
    }

    /// How long so many letters take.
    #[must_use]
    pub fn time_of(self, letters: u64) -> Duration {
        Duration::try_from_secs_f64(letters as f64 / self.in_a_second()).unwrap_or(Duration::MAX)
    }
}

impl Unit {
    fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        })
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a rate; write 50/s, 3000/m or 10000/h");
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{text}` says not in how long; write {text}/s, {text}/m or {text}/h"));
        }
        let (letters, unit) = text.split_once('/').ok_or_else(bad)?;
        let letters = letters.trim().parse().ok().filter(|letters| *letters > 0).ok_or_else(bad)?;
        let per = match unit.trim() {
            "s" => Unit::Second,
            "m" => Unit::Minute,
            "h" => Unit::Hour,
            _ => return Err(bad()),
        };
        Ok(Self { letters, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per {
            Unit::Second => "s",
            Unit::Minute => "m",
            Unit::Hour => "h",
        };
        write!(f, "{}/{unit}", self.letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_so_many_in_so_long() {
        let rate: Rate = "50/s".parse().unwrap();
        assert_eq!((rate.handful(), rate.time_of(100)), (10, Duration::from_secs(2)));
        let slow: Rate = "30/m".parse().unwrap();
        assert_eq!((slow.handful(), slow.time_of(1)), (1, Duration::from_secs(2)));
        assert_eq!(slow.to_string().parse(), Ok(slow));
        for text in ["", "50", "0/s", "-1/s", "50/d", "fast", "50/"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
