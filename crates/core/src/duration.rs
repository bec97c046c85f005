//! Lengths of time as people write them: `250ms`, `5s`, `2m`, `1h`, `3d`.

use std::ops::Range;
use std::time::Duration;

use crate::spelling::{Misspelt, Scanner};

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Ten years: no wait is longer, so that no sum of waits overflows.
pub const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// Reads one length of time, with nothing around it.
pub fn parse(text: &str) -> Result<Duration, Misspelt> {
    let mut scanner = Scanner::new(text);
    let duration = scan(&mut scanner)?;
    if scanner.is_at_end() {
        return Ok(duration);
    }
    Err(Misspelt::new(scanner.here(), "unexpected text after the duration"))
}

/// Writes a length of time in the largest unit that expresses it exactly.
#[must_use]
pub fn print(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let (unit, scale) = UNITS.into_iter().rev().find(|(_, scale)| millis % scale == 0).unwrap_or(UNITS[0]);
    format!("{}{unit}", millis / scale)
}

pub(crate) fn scan(scanner: &mut Scanner<'_>) -> Result<Duration, Misspelt> {
    let (digits, number) = scanner.take_while(|c| c.is_ascii_digit());
    if number.is_empty() {
        return Err(Misspelt::new(scanner.here(), "expected a duration")
            .help("write a duration such as 250ms, 5s, 2m, 1h or 3d"));
    }
    let unit_at = digits.end;
    if scanner.rest().starts_with('.') && scanner.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let message = "a duration is a whole number of its unit";
        return Err(Misspelt::new(scanner.here(), message)
            .help("take a smaller unit: 1500ms for one and a half seconds"));
    }
    if scanner.rest().starts_with(|c: char| c.is_whitespace()) {
        return Err(no_unit(unit_at..unit_at, number));
    }
    let (unit_span, unit) = scanner.take_while(|c| c.is_ascii_alphabetic() && c != 'x');
    let Some((_, scale)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(no_unit(unit_span, number));
    };
    let span = digits.start..unit_span.end;
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    millis.map(Duration::from_millis).filter(|d| *d <= LONGEST).ok_or_else(|| {
        Misspelt::new(span, "the duration is longer than ten years").help("the longest is 3650d")
    })
}

fn no_unit(span: Range<usize>, number: &str) -> Misspelt {
    Misspelt::new(span, "expected a unit: ms, s, m, h or d")
        .help(format!("write {number}s for {number} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_duration_is_written_in_the_largest_exact_unit() {
        let shown = [0, 250, 1_000, 90_000, 120_000, 3_600_000, 259_200_000]
            .map(|ms| print(Duration::from_millis(ms)));
        assert_eq!(shown, ["0s", "250ms", "1s", "90s", "2m", "1h", "3d"]);
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        assert_eq!(parse("").unwrap_err().span, 0..0);
        assert_eq!(parse("5").unwrap_err().span, 1..1);
        assert_eq!(parse("5 s").unwrap_err().span, 1..1);
        assert_eq!(parse("5min").unwrap_err().span, 1..4);
        assert_eq!(parse("5s!").unwrap_err().span, 2..3);
        assert_eq!(parse("99999999999999999999d").unwrap_err().span, 0..21);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(millis in 0..=LONGEST.as_millis() as u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&print(duration)), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            if let Err(error) = parse(&text) {
                prop_assert!(text.get(error.span).is_some());
            }
        }
    }
}
