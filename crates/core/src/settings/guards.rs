//! Limits that turn many failures into an alarm: `50% of 20 keys in 30s`, `1% over 5m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration;
use crate::spelling::{Misspelt, Scanner};

/// When so many keys fail at once, it is taken for an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurgeGuard {
    /// The share of failing keys, in per cent: 1 to 100.
    pub percent: u8,
    /// The least number of distinct keys for the share to mean anything; not zero.
    pub keys: u32,
    /// The time in which they are counted.
    pub window: Duration,
}

/// More records dropped than this is an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxLoss {
    /// The share of records, in thousandths of a per cent, so that it can be compared.
    pub millipercent: u32,
    /// The time over which it is measured.
    pub window: Duration,
}

impl Default for SurgeGuard {
    fn default() -> Self {
        Self { percent: 50, keys: 20, window: Duration::from_secs(30) }
    }
}

impl FromStr for SurgeGuard {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let mut scanner = Scanner::new(text);
        let share = share(&mut scanner)?;
        scanner.expect("of", "after the share, as in 50% of 20 keys in 30s")?;
        let (span, digits) = scanner.take_while(|c| c.is_ascii_digit());
        let span = if span.is_empty() { scanner.here() } else { span };
        let keys = digits.parse().ok().filter(|keys| *keys > 0);
        let keys = keys.ok_or_else(|| Misspelt::new(span, "expected a number of keys"))?;
        scanner.expect("keys", "after the number, as in 50% of 20 keys in 30s")?;
        let window = window(&mut scanner, "in")?;
        let percent = u8::try_from(share.div_ceil(1_000)).unwrap_or(100);
        Ok(Self { percent, keys, window })
    }
}

impl fmt::Display for SurgeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}% of {} keys in {}", self.percent, self.keys, duration::print(self.window))
    }
}

impl FromStr for MaxLoss {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        let mut scanner = Scanner::new(text);
        let millipercent = share(&mut scanner)?;
        Ok(Self { millipercent, window: window(&mut scanner, "over")? })
    }
}

impl fmt::Display for MaxLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}% over {}", f64::from(self.millipercent) / 1_000.0, duration::print(self.window))
    }
}

/// A share above 0% and up to 100%, in thousandths of a per cent.
fn share(scanner: &mut Scanner<'_>) -> Result<u32, Misspelt> {
    let (span, text) = scanner.take_while(|c| c.is_ascii_digit() || c == '.');
    let span = if span.is_empty() { scanner.here() } else { span };
    let wrong = |message: &str| Misspelt::new(span.clone(), message);
    let share: f64 = text.parse().map_err(|_| wrong("expected a share such as 50%"))?;
    scanner.expect("%", "after the share")?;
    let thousandths = (share * 1_000.0).round();
    if !(1.0..=100_000.0).contains(&thousandths) {
        return Err(wrong("the share is above 0% and at most 100%"));
    }
    Ok(thousandths as u32)
}

fn window(scanner: &mut Scanner<'_>, word: &str) -> Result<Duration, Misspelt> {
    scanner.expect(word, format!("and a time, as in {word} 5m"))?;
    let start = scanner.position();
    let window = duration::scan(scanner)?;
    if window.is_zero() {
        return Err(Misspelt::new(start..scanner.position(), "this time cannot be zero"));
    }
    if !scanner.is_at_end() {
        return Err(Misspelt::new(scanner.here(), "unexpected text after the time"));
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_printed_as_they_are_read() {
        for text in ["50% of 20 keys in 30s", "1% of 1 keys in 1d"] {
            assert_eq!(text.parse::<SurgeGuard>().unwrap().to_string(), text);
        }
        assert_eq!("50% of 20 keys in 30s".parse(), Ok(SurgeGuard::default()));
        for text in ["1% over 5m", "0.1% over 1h", "100% over 250ms"] {
            assert_eq!(text.parse::<MaxLoss>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let guards =
            [("50 of 20 keys in 30s", 3..5), ("50% of keys in 30s", 7..11), ("0% of 20 keys in 30s", 0..1)];
        for (text, span) in guards {
            assert_eq!(text.parse::<SurgeGuard>().unwrap_err().span, span, "{text}");
        }
        for (text, span) in
            [("", 0..0), ("101% over 5m", 0..3), ("1% over 0s", 8..10), ("1% over 5m!", 10..11)]
        {
            assert_eq!(text.parse::<MaxLoss>().unwrap_err().span, span, "{text}");
        }
    }
}
