//! The surge guard: when most keys fail at once, it is not the records that are bad.
//!
//! Outcomes by key come in; the answer is whether a failure is to be treated as an outage. A key fails
//! if its last outcome was a failure. Once it is an outage, it stays so until something succeeds: the
//! window alone would forget while everything waits.

use std::time::Duration;

use crate::settings::SurgeGuard;

/// The window is this many spans, and the oldest goes as a whole.
const SPANS: usize = 6;
/// Keys are counted by the bits they hit; this many are nearly exact up to a few thousand keys.
const BITS: usize = 8_192;

/// Watches the share of keys that fail.
#[derive(Debug)]
pub(super) struct Surge {
    guard: Option<SurgeGuard>,
    spans: Vec<Span>,
    is_on: bool,
}

/// The keys of one part of the window.
#[derive(Debug, Clone)]
struct Span {
    /// Which part of time this is.
    number: u64,
    handled: Keys,
    failed: Keys,
}

/// A set of keys that knows only about how many it holds.
#[derive(Debug, Clone)]
struct Keys(Vec<u64>);

impl Surge {
    pub(super) fn new(guard: Option<SurgeGuard>) -> Self {
        Self { guard, spans: Vec::new(), is_on: false }
    }

    /// A record of this key was handled.
    pub(super) fn handled(&mut self, key: &[u8], now: Duration) {
        if self.guard.is_none() {
            return;
        }
        if self.is_on {
            // What failed before the cure says nothing about what comes after it.
            self.spans.clear();
            self.is_on = false;
        }
        let bit = Self::bit(key);
        self.span(now).handled.insert(bit);
        // A key that goes well again was not failing: one bad record in a hundred is, in time, of every key.
        for span in &mut self.spans {
            span.failed.remove(bit);
        }
    }

    /// A record of this key has no tries left in place. Says whether it counts as an outage.
    pub(super) fn failed(&mut self, key: &[u8], now: Duration) -> bool {
        let Some(guard) = self.guard else { return false };
        let bit = Self::bit(key);
        let span = self.span(now);
        span.handled.insert(bit);
        span.failed.insert(bit);
        let oldest = self.number(now).saturating_sub(SPANS as u64 - 1);
        let (mut handled, mut failed) = (Keys::default(), Keys::default());
        for span in self.spans.iter().filter(|span| span.number >= oldest) {
            handled.merge(&span.handled);
            failed.merge(&span.failed);
        }
        let (handled, failed) = (handled.count(), failed.count());
        let enough = handled >= f64::from(guard.keys) - 0.5;
        self.is_on |= enough && failed * 100.0 >= handled * f64::from(guard.percent);
        self.is_on
    }

    fn number(&self, now: Duration) -> u64 {
        let span = self.guard.map_or(Duration::MAX, |guard| guard.window / SPANS as u32);
        now.as_millis() as u64 / (span.as_millis() as u64).max(1)
    }

    fn span(&mut self, now: Duration) -> &mut Span {
        let number = self.number(now);
        let index = (number % SPANS as u64) as usize;
        if self.spans.is_empty() {
            let empty = Span { number, handled: Keys::default(), failed: Keys::default() };
            self.spans = vec![empty; SPANS];
        }
        let span = &mut self.spans[index];
        if span.number != number {
            *span = Span { number, handled: Keys::default(), failed: Keys::default() };
        }
        span
    }

    /// Spread well enough for counting; nothing is looked up by it.
    fn bit(key: &[u8]) -> usize {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ key.len() as u64;
        for chunk in key.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
        }
        (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self(vec![0; BITS / 64])
    }
}

impl Keys {
    fn insert(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn remove(&mut self, bit: usize) {
        self.0[bit / 64] &= !(1 << (bit % 64));
    }

    fn merge(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// About how many keys there are: each hits a bit by chance, and bits that were hit hide others.
    fn count(&self) -> f64 {
        let hit: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        let clear = (BITS as f64 - f64::from(hit)).max(1.0);
        -(BITS as f64) * (clear / BITS as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn guard() -> Surge {
        Surge::new(Some(SurgeGuard::default()))
    }

    #[test]
    fn twenty_keys_that_all_fail_are_an_outage_and_nineteen_are_not() {
        let mut surge = guard();
        let failed: Vec<_> = (0..25_u8).map(|key| surge.failed(&[key], second(1))).collect();
        assert_eq!(failed.iter().position(|on| *on), Some(19), "{failed:?}");
    }

    #[test]
    fn one_key_that_fails_often_is_one_key() {
        let mut surge = guard();
        assert!((0..1_000).all(|_| !surge.failed(b"poison", second(1))));
    }

    #[test]
    fn fewer_than_half_of_the_keys_are_no_outage() {
        let mut surge = guard();
        for key in 0..1_000_u16 {
            surge.handled(&key.to_be_bytes(), second(1));
        }
        assert!((0..300_u16).all(|key| !surge.failed(&key.to_be_bytes(), second(2))));
    }

    #[test]
    fn keys_that_fail_now_and_then_are_no_outage() {
        let mut surge = guard();
        for round in 0..50_u8 {
            for key in 0..40_u8 {
                // One in twenty fails, and in time every key has had its turn.
                match (round + key) % 20 {
                    0 => assert!(!surge.failed(&[key], second(1)), "round {round}, key {key}"),
                    _ => surge.handled(&[key], second(1)),
                }
            }
        }
    }

    #[test]
    fn what_failed_before_the_window_is_forgotten() {
        let mut surge = guard();
        for key in 0..19_u8 {
            assert!(!surge.failed(&[key], second(1)));
        }
        assert!(!surge.failed(&[99], second(40)));
    }

    #[test]
    fn it_stays_an_outage_until_something_succeeds() {
        let mut surge = guard();
        for key in 0..20_u8 {
            surge.failed(&[key], second(1));
        }
        assert!(surge.failed(&[1], second(10_000)));
        surge.handled(&[1], second(10_001));
        assert!(!surge.is_on && !surge.failed(&[2], second(10_002)));
    }

    #[test]
    fn without_a_guard_nothing_is_an_outage() {
        let mut surge = Surge::new(None);
        assert!((0..100_u8).all(|key| !surge.failed(&[key], second(1))));
    }
}
