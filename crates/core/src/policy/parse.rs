//! The grammar of policies, and of the three older spellings that mean the same.
//!
//! ```text
//! policy  = shape ["for" duration] ["jitter" percent "%"]          (in either order)
//! shape   = "never" | "exponential(" duration ".." duration "x" factor ["," count] ")"
//!         | "list(" duration ["x" count] {"," duration ["x" count]} ")"
//! older   = "UnlimitedExponentialRetryPolicy(s, s, factor)"         (seconds)
//!         | "LimitedExponentialRetryPolicy(s, s, factor, count)"    (seconds)
//!         | "FixedDelayRetryPolicy(ms x count, ...)"                (milliseconds)
//! ```

use std::num::{NonZeroU8, NonZeroU32};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use super::{Factor, Policy, Shape, Step};
use crate::duration::{self, LONGEST};
use crate::spelling::{Misspelt, Scanner, nearest};

const SHAPES: [&str; 6] = [
    "never",
    "exponential",
    "list",
    "UnlimitedExponentialRetryPolicy",
    "LimitedExponentialRetryPolicy",
    "FixedDelayRetryPolicy",
];
const EXAMPLES: &str =
    "write never, exponential(1s..60s x2), exponential(1s..60s x2, 120) or list(5s x3, 15s x5, 60s)";

pub(super) fn policy(text: &str) -> Result<Policy, Misspelt> {
    let mut scanner = Scanner::new(text);
    let (name_span, name) = scanner.take_while(char::is_alphanumeric);
    let shape = match name {
        "never" => Shape::Never,
        "exponential" => in_parentheses(&mut scanner, exponential)?,
        "list" => in_parentheses(&mut scanner, |s| list(s, duration::scan))?,
        "UnlimitedExponentialRetryPolicy" => {
            in_parentheses(&mut scanner, |s| older_exponential(s, Ending::Never))?
        }
        "LimitedExponentialRetryPolicy" => {
            in_parentheses(&mut scanner, |s| older_exponential(s, Ending::Counted))?
        }
        "FixedDelayRetryPolicy" => in_parentheses(&mut scanner, |s| list(s, |s| older_duration(s, 1)))?,
        _ => return Err(unknown_shape(&mut scanner, name_span, name)),
    };
    limits(&mut scanner, shape)
}

fn unknown_shape(scanner: &mut Scanner<'_>, span: Range<usize>, name: &str) -> Misspelt {
    if name.is_empty() {
        return Misspelt::new(scanner.here(), "expected a policy").help(EXAMPLES);
    }
    let help = nearest(name, SHAPES)
        .map_or(EXAMPLES.to_owned(), |near| format!("did you mean `{near}`? {EXAMPLES}"));
    Misspelt::new(span, format!("`{name}` is not a policy")).help(help)
}

fn limits(scanner: &mut Scanner<'_>, shape: Shape) -> Result<Policy, Misspelt> {
    let mut policy = Policy { shape, within: None, jitter: None };
    while !scanner.is_at_end() {
        let (span, word) = scanner.take_while(char::is_alphabetic);
        let twice = match word {
            "for" => policy.within.replace(positive(scanner)?).is_some(),
            "jitter" => policy.jitter.replace(percent(scanner)?).is_some(),
            _ => {
                let here = if span.is_empty() { scanner.here() } else { span };
                return Err(Misspelt::new(here, "expected the end, `for` or `jitter`")
                    .help("after the delays may stand `for 1h` and `jitter 10%`"));
            }
        };
        if twice {
            return Err(Misspelt::new(span, format!("`{word}` is given twice")));
        }
        if policy.shape == Shape::Never {
            return Err(Misspelt::new(span, format!("`never` has no delays that `{word}` could apply to")));
        }
    }
    Ok(policy)
}

fn in_parentheses(
    scanner: &mut Scanner<'_>,
    inside: impl Fn(&mut Scanner<'_>) -> Result<Shape, Misspelt>,
) -> Result<Shape, Misspelt> {
    scanner.expect("(", "before the delays")?;
    let shape = inside(scanner)?;
    scanner.expect(")", "after the delays")?;
    Ok(shape)
}

fn exponential(scanner: &mut Scanner<'_>) -> Result<Shape, Misspelt> {
    let first = positive(scanner)?;
    scanner.expect("..", "and the longest delay after the first one")?;
    let dots_end = scanner.behind();
    let max_at = scanner.position();
    if !scanner.rest().starts_with(|c: char| c.is_ascii_digit()) {
        let help = format!("write the longest delay after the dots, such as {}..60s", duration::print(first));
        return Err(Misspelt::new(dots_end..dots_end, "expected the longest delay").help(help));
    }
    let max = duration::scan(scanner)?;
    check_order(first, max, max_at..scanner.position())?;
    scanner.expect("x", "and a factor, such as x2")?;
    let factor = factor(scanner)?;
    let count = if scanner.take(",") { Some(count(scanner)?) } else { None };
    Ok(Shape::Exponential { first, max, factor, count })
}

/// Whether an older exponential policy ends.
#[derive(Clone, Copy)]
enum Ending {
    Never,
    Counted,
}

fn older_exponential(scanner: &mut Scanner<'_>, ending: Ending) -> Result<Shape, Misspelt> {
    let start = scanner.position();
    let first = older_duration(scanner, 1_000)?;
    if first.is_zero() {
        return Err(Misspelt::new(start..start + 1, "the first delay cannot be zero: it would never grow"));
    }
    scanner.expect(",", "and the longest delay in seconds")?;
    let max_at = scanner.position();
    let max = older_duration(scanner, 1_000)?;
    check_order(first, max, max_at..scanner.position())?;
    scanner.expect(",", "and a factor")?;
    let factor = factor(scanner)?;
    let count = match ending {
        Ending::Never => None,
        Ending::Counted => {
            scanner.expect(",", "and the count of delays")?;
            Some(count(scanner)?)
        }
    };
    Ok(Shape::Exponential { first, max, factor, count })
}

fn check_order(first: Duration, max: Duration, span: Range<usize>) -> Result<(), Misspelt> {
    if first <= max {
        return Ok(());
    }
    let message = format!("the longest delay is shorter than the first, {}", duration::print(first));
    Err(Misspelt::new(span, message))
}

fn list(
    scanner: &mut Scanner<'_>,
    delay: impl Fn(&mut Scanner<'_>) -> Result<Duration, Misspelt>,
) -> Result<Shape, Misspelt> {
    let mut steps = Vec::new();
    loop {
        let delay = delay(scanner)?;
        let times = if scanner.take("x") { count(scanner)? } else { NonZeroU32::MIN };
        steps.push(Step { delay, times });
        if !scanner.take(",") {
            return Ok(Shape::List(steps));
        }
    }
}

fn positive(scanner: &mut Scanner<'_>) -> Result<Duration, Misspelt> {
    let start = scanner.position();
    let found = duration::scan(scanner)?;
    if found.is_zero() {
        return Err(Misspelt::new(start..scanner.position(), "this duration cannot be zero"));
    }
    Ok(found)
}

fn older_duration(scanner: &mut Scanner<'_>, scale: u64) -> Result<Duration, Misspelt> {
    let unit = if scale == 1 { "milliseconds" } else { "seconds" };
    let (span, number): (_, u64) = number(scanner, &format!("a number of {unit}"))?;
    let delay = number.checked_mul(scale).map(Duration::from_millis).filter(|delay| *delay <= LONGEST);
    delay.ok_or_else(|| Misspelt::new(span, "the delay is longer than ten years"))
}

fn count(scanner: &mut Scanner<'_>) -> Result<NonZeroU32, Misspelt> {
    let (span, number): (_, u32) = number(scanner, "a count")?;
    NonZeroU32::new(number).ok_or_else(|| Misspelt::new(span, "a count is at least 1"))
}

fn percent(scanner: &mut Scanner<'_>) -> Result<NonZeroU8, Misspelt> {
    let (span, number): (_, u8) = number(scanner, "a share such as 10%")?;
    scanner.expect("%", "after the share")?;
    let share = NonZeroU8::new(number).filter(|share| share.get() <= 100);
    share.ok_or_else(|| Misspelt::new(span, "the share is between 1% and 100%"))
}

fn number<N: FromStr>(scanner: &mut Scanner<'_>, what: &str) -> Result<(Range<usize>, N), Misspelt> {
    let (span, digits) = scanner.take_while(|c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(Misspelt::new(scanner.here(), format!("expected {what}")));
    }
    let number =
        digits.parse().map_err(|_| Misspelt::new(span.clone(), format!("`{digits}` is too large")))?;
    Ok((span, number))
}

/// A factor such as `2` or `1.5`, exact to a thousandth.
fn factor(scanner: &mut Scanner<'_>) -> Result<Factor, Misspelt> {
    let (span, text) = scanner.take_while(|c| c.is_ascii_digit() || c == '.');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction:0<3}");
    let readable =
        !whole.is_empty() && fraction.len() <= 3 && !fraction.contains('.') && !text.ends_with('.');
    let thousandths = readable.then(|| digits.parse::<u32>().ok()).flatten();
    let span = if span.is_empty() { scanner.here() } else { span };
    thousandths.and_then(Factor::from_thousandths).ok_or_else(|| {
        Misspelt::new(span, "expected a factor")
            .help("a factor is a number from 1 to 1000, such as x2 or x1.5")
    })
}
