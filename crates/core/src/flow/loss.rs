//! How much is given up by rules that say so, and whether that is more than was allowed.

use std::time::Duration;

use crate::settings::MaxLoss;

const SPANS: usize = 10;

/// Counts what was dropped against everything that ended.
#[derive(Debug)]
pub(super) struct Loss {
    limit: Option<MaxLoss>,
    spans: [Span; SPANS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    number: u64,
    ended: u64,
    dropped: u64,
}

impl Loss {
    pub(super) fn new(limit: Option<MaxLoss>) -> Self {
        Self { limit, spans: [Span::default(); SPANS] }
    }

    /// A record ended, dropped or otherwise.
    pub(super) fn count(&mut self, dropped: bool, now: Duration) {
        if self.limit.is_none() {
            return;
        }
        let number = self.number(now);
        let span = &mut self.spans[(number % SPANS as u64) as usize];
        if span.number != number {
            *span = Span { number, ..Span::default() };
        }
        span.ended += 1;
        span.dropped += u64::from(dropped);
    }

    /// The share that was dropped within the window, in thousandths of a percent.
    pub(super) fn share(&self, now: Duration) -> u32 {
        let oldest = self.number(now).saturating_sub(SPANS as u64 - 1);
        let within = self.spans.iter().filter(|span| span.number >= oldest);
        let (ended, dropped) =
            within.fold((0, 0), |(ended, dropped), span| (ended + span.ended, dropped + span.dropped));
        u32::try_from(u128::from(dropped) * 100_000 / u128::from(ended.max(1))).unwrap_or(100_000)
    }

    /// Whether more is lost than was allowed.
    pub(super) fn is_too_much(&self, now: Duration) -> bool {
        self.limit.is_some_and(|limit| self.share(now) > limit.millipercent)
    }

    fn number(&self, now: Duration) -> u64 {
        let span = self.limit.map_or(Duration::MAX, |limit| limit.window / SPANS as u32);
        now.as_millis() as u64 / (span.as_millis() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_limit_it_is_too_much_until_the_window_has_passed() {
        let mut loss = Loss::new(Some("1% over 5m".parse().unwrap()));
        let at = Duration::from_secs;
        for record in 0..200 {
            loss.count(record < 2, at(1));
        }
        assert_eq!((loss.share(at(1)), loss.is_too_much(at(1))), (1_000, false));
        loss.count(true, at(2));
        assert!(loss.is_too_much(at(2)) && loss.is_too_much(at(250)));
        assert!(!loss.is_too_much(at(330)));
    }

    #[test]
    fn without_a_limit_nothing_is_too_much() {
        let mut loss = Loss::new(None);
        loss.count(true, Duration::ZERO);
        assert!(!loss.is_too_much(Duration::ZERO));
    }
}
