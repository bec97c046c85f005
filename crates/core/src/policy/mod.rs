//! When to try again, and when to stop.
//!
//! A policy is a value: asking it twice gives the same answer. It is written as one string
//! ([`Policy::from_str`]), printed as the same string, and unfolded into [`Run`]s of equal delays to be explained.

mod parse;
mod runs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::{NonZeroU8, NonZeroU32};
use std::str::FromStr;
use std::time::Duration;

pub use runs::Run;

use crate::duration;
use crate::seed::Seed;
use crate::spelling::Misspelt;

/// When to try again: the delays, an end by time since the first failure, and how much they scatter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    shape: Shape,
    within: Option<Duration>,
    jitter: Option<NonZeroU8>,
}

/// The delays of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Shape {
    /// No retry at all.
    Never,
    /// From `first`, each delay `factor` times the one before, up to `max`.
    Exponential {
        /// The first delay; not zero.
        first: Duration,
        /// The longest delay; not below `first`.
        max: Duration,
        /// What each delay is multiplied by.
        factor: Factor,
        /// How many delays there are; without end if absent.
        count: Option<NonZeroU32>,
    },
    /// Delays one by one; never empty.
    List(Vec<Step>),
}

/// A delay that is used several times in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The delay.
    pub delay: Duration,
    /// How often it is used.
    pub times: NonZeroU32,
}

/// What an exponential delay grows by, in thousandths, so that it can be compared; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Factor(u32);

/// What a policy says to the next retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again after this long.
    After(Duration),
    /// The tries are used up.
    UsedUp,
    /// The next try would come later than the policy lasts.
    Expired,
}

impl Policy {
    /// The policy that never tries again.
    pub const NEVER: Self = Self { shape: Shape::Never, within: None, jitter: None };

    /// The delay before this retry (the first is 1), before jitter; `None` when the tries are used up.
    #[must_use]
    pub fn delay(&self, retry: NonZeroU32) -> Option<Duration> {
        match &self.shape {
            Shape::Never => None,
            Shape::Exponential { count: Some(count), .. } if retry > *count => None,
            Shape::Exponential { first, max, factor, .. } => {
                Some(factor.grown(*first, retry.get() - 1).min(*max))
            }
            Shape::List(steps) => step_of(steps, retry).map(|step| step.delay),
        }
    }

    /// What becomes of a record that has failed for `elapsed` and would now be retried for the
    /// `retry`th time. `asked` is the wait that the failure itself asked for; it replaces the delay.
    #[must_use]
    pub fn next(&self, retry: NonZeroU32, elapsed: Duration, asked: Option<Duration>, seed: Seed) -> Next {
        let Some(delay) = self.delay(retry) else {
            return Next::UsedUp;
        };
        let wait = asked.unwrap_or_else(|| self.scattered(delay, retry, seed));
        match self.within {
            Some(within) if elapsed.saturating_add(wait) > within => Next::Expired,
            Some(_) | None => Next::After(wait),
        }
    }

    /// The delays without their limits.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How long after the first failure a record may still be tried.
    #[must_use]
    pub fn within(&self) -> Option<Duration> {
        self.within
    }

    /// By how many per cent a delay may be longer or shorter than it says.
    #[must_use]
    pub fn jitter(&self) -> Option<NonZeroU8> {
        self.jitter
    }

    /// The longest single delay, jitter included.
    #[must_use]
    pub fn max_delay(&self) -> Duration {
        let longest = self.bounding_runs().iter().map(|run| run.delay).max().unwrap_or_default();
        self.bounded(self.stretched(longest))
    }

    /// The longest a record can wait in all, jitter included; `None` when there is no end. A wait that a
    /// failure asks for comes on top, up to [`Policy::within`].
    #[must_use]
    pub fn total(&self) -> Option<Duration> {
        if self.is_endless() {
            return None;
        }
        let runs = self.bounding_runs();
        let sum = runs.iter().try_fold(Duration::ZERO, |sum, run| Some(sum.saturating_add(run.total()?)));
        Some(sum.map_or(self.within.unwrap_or_default(), |sum| self.bounded(self.stretched(sum))))
    }

    /// Every delay there is, each once, whether or not time is left for it.
    pub fn distinct_delays(&self) -> impl Iterator<Item = Duration> {
        let delays: std::collections::BTreeSet<_> =
            self.unlimited_runs().iter().map(|run| run.delay).collect();
        delays.into_iter()
    }

    /// With jitter, shorter delays may let more retries in than the schedule shows.
    fn bounding_runs(&self) -> Vec<Run> {
        if self.jitter.is_some() { self.unlimited_runs() } else { self.runs() }
    }

    fn bounded(&self, wait: Duration) -> Duration {
        self.within.map_or(wait, |within| wait.min(within))
    }

    /// Whether a record may be tried for ever.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        let endless = matches!(self.shape, Shape::Exponential { count: None, .. });
        endless && self.within.is_none()
    }

    fn scattered(&self, delay: Duration, retry: NonZeroU32, seed: Seed) -> Duration {
        let Some(percent) = self.jitter else { return delay };
        let share = f64::from(percent.get()) / 100.0 * (2.0 * seed.unit(retry.get()) - 1.0);
        millis(delay.as_secs_f64() * 1_000.0 * (1.0 + share))
    }

    fn stretched(&self, delay: Duration) -> Duration {
        let percent = self.jitter.map_or(0, NonZeroU8::get);
        delay.saturating_add(delay.checked_mul(u32::from(percent)).unwrap_or(Duration::MAX) / 100)
    }
}

impl Factor {
    /// Twice as long each time.
    pub const DOUBLE: Self = Self(2_000);
    /// The largest factor.
    pub const MAX: u32 = 1_000;

    /// A factor given in thousandths; `None` below 1 or above [`Factor::MAX`].
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (1_000..=Self::MAX * 1_000).contains(&thousandths).then_some(Self(thousandths))
    }

    pub(crate) fn grows(self) -> bool {
        self.0 > 1_000
    }

    fn grown(self, first: Duration, times: u32) -> Duration {
        let factor = f64::from(self.0) / 1_000.0;
        millis(first.as_secs_f64() * 1_000.0 * factor.powf(f64::from(times)))
    }
}

impl FromStr for Policy {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        parse::policy(text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Shape::Never => f.write_str("never")?,
            Shape::Exponential { first, max, factor, count } => {
                write!(f, "exponential({}..{} {factor}", duration::print(*first), duration::print(*max))?;
                if let Some(count) = count {
                    write!(f, ", {count}")?;
                }
                f.write_str(")")?;
            }
            Shape::List(steps) => {
                let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
                write!(f, "list({})", steps.join(", "))?;
            }
        }
        if let Some(within) = self.within {
            write!(f, " for {}", duration::print(within))?;
        }
        if let Some(percent) = self.jitter {
            write!(f, " jitter {percent}%")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times.get() {
            1 => f.write_str(&duration::print(self.delay)),
            times => write!(f, "{} x{times}", duration::print(self.delay)),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", f64::from(self.0) / 1_000.0)
    }
}

fn step_of(steps: &[Step], retry: NonZeroU32) -> Option<&Step> {
    let mut left = retry.get();
    steps.iter().find(|step| {
        let found = left <= step.times.get();
        left = left.saturating_sub(step.times.get());
        found
    })
}

/// Whole milliseconds, and never more than the longest wait there is.
fn millis(value: f64) -> Duration {
    let longest = duration::LONGEST.as_secs_f64() * 1_000.0;
    Duration::from_millis(value.round().clamp(0.0, longest) as u64)
}
