//! A policy unfolded: runs of equal delays, so that a million retries are a few lines.

use std::time::Duration;

use super::{Policy, Shape};

/// Consecutive retries with the same delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The number of the first retry in it; the first of all is 1.
    pub first: u64,
    /// How many there are; `None` if it never ends.
    pub times: Option<u64>,
    /// The delay before each, without jitter.
    pub delay: Duration,
    /// The delays before this run, added up.
    pub elapsed: Duration,
}

impl Run {
    /// The delays of this run, added up; `None` if it never ends.
    #[must_use]
    pub fn total(&self) -> Option<Duration> {
        self.times.map(|times| times_of(self.delay, times))
    }

    /// The number of the last retry in it.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.times.map(|times| self.first + times - 1)
    }
}

impl Policy {
    /// The schedule as it stands when the handler takes no time: cut where the policy ends by time.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        match self.within() {
            Some(within) => cut(self.unlimited_runs(), within),
            None => self.unlimited_runs(),
        }
    }

    /// The schedule without the end by time, which jitter moves.
    pub(super) fn unlimited_runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (delay, times) in self.delays() {
            match runs.last_mut() {
                Some(last) if last.delay == delay => last.times = last.times.zip(times).map(|(a, b)| a + b),
                Some(_) | None => {
                    let elapsed = runs.last().and_then(|run| Some(run.elapsed.saturating_add(run.total()?)));
                    let first = runs.last().and_then(Run::last).map_or(1, |last| last + 1);
                    runs.push(Run { first, times, delay, elapsed: elapsed.unwrap_or_default() });
                }
            }
        }
        runs
    }

    fn delays(&self) -> Vec<(Duration, Option<u64>)> {
        match self.shape() {
            Shape::Never => Vec::new(),
            Shape::List(steps) => steps.iter().map(|s| (s.delay, Some(u64::from(s.times.get())))).collect(),
            Shape::Exponential { first, max, factor, count } => {
                let count = count.map(|count| u64::from(count.get()));
                let mut delays = Vec::new();
                // A factor of one never grows: it stays at `first` for ever.
                let top = if factor.grows() { *max } else { *first };
                for times in 0.. {
                    let delay = factor.grown(*first, times).min(*max);
                    let left = count.map(|count| count - u64::from(times));
                    if left == Some(0) {
                        break;
                    }
                    if delay == top {
                        delays.push((delay, left));
                        break;
                    }
                    delays.push((delay, Some(1)));
                }
                delays
            }
        }
    }
}

fn cut(runs: Vec<Run>, within: Duration) -> Vec<Run> {
    let mut kept = Vec::new();
    for mut run in runs {
        let room = within.saturating_sub(run.elapsed);
        let fit = room.as_millis().checked_div(run.delay.as_millis());
        let fit = fit.map(|fit| u64::try_from(fit).unwrap_or(u64::MAX));
        let ends_here =
            run.elapsed > within || fit.is_some_and(|fit| run.times.is_none_or(|times| fit < times));
        if ends_here {
            run.times = fit;
        }
        if run.elapsed <= within && run.times != Some(0) {
            kept.push(run);
        }
        if ends_here {
            break;
        }
    }
    kept
}

fn times_of(delay: Duration, times: u64) -> Duration {
    let millis = delay.as_millis().saturating_mul(u128::from(times));
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
