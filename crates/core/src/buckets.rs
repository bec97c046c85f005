//! An arbitrary delay as a walk through topics of fixed delays.

use std::time::Duration;

use crate::duration;

/// More hops than this would be a mistake in the buckets rather than a delay.
pub const MOST_HOPS: usize = 32;

const DEFAULT: [u64; 9] = [10, 60, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800];

/// The fixed delays there are topics for: distinct, longest first, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets(Vec<Duration>);

/// The way of one record: the buckets it passes, then what is left to wait until it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The buckets in the order in which they are visited.
    pub hops: Vec<Duration>,
    /// Shorter than the smallest bucket; the receiver waits for the exact due time.
    pub remainder: Duration,
}

/// What is wrong with buckets or with a delay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWalk {
    /// There is no bucket.
    #[error("there is no bucket to wait in; name at least one, such as 1m")]
    NoBucket,
    /// A bucket of zero length would be visited for ever.
    #[error("a bucket cannot have a delay of zero")]
    ZeroBucket,
    /// The buckets are too short for this delay.
    #[error(
        "a delay of {} takes more than {MOST_HOPS} hops; add a bucket longer than {}",
        duration::print(*delay), duration::print(*longest)
    )]
    TooManyHops {
        /// The delay asked for.
        delay: Duration,
        /// The longest bucket.
        longest: Duration,
    },
}

impl Buckets {
    /// Buckets in any order.
    pub fn new(delays: impl IntoIterator<Item = Duration>) -> Result<Self, BadWalk> {
        let mut delays: Vec<_> = delays.into_iter().collect();
        if delays.is_empty() {
            return Err(BadWalk::NoBucket);
        }
        if delays.iter().any(Duration::is_zero) {
            return Err(BadWalk::ZeroBucket);
        }
        delays.sort_unstable_by(|a, b| b.cmp(a));
        delays.dedup();
        Ok(Self(delays))
    }

    /// The buckets, longest first.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.0
    }

    /// Whether every delay up to this one can be walked, not only this one: a shorter delay may take more hops.
    pub fn reach(&self, longest: Duration) -> Result<(), BadWalk> {
        let mut left = longest.as_nanos();
        let mut hops = 0;
        for bucket in &self.0 {
            let times = left / bucket.as_nanos();
            hops += times;
            // Below the longest delay every remainder may come, up to one short of this bucket.
            left = if times > 0 { bucket.as_nanos() - 1 } else { left };
        }
        if hops > MOST_HOPS as u128 {
            return Err(BadWalk::TooManyHops { delay: longest, longest: self.0[0] });
        }
        Ok(())
    }

    /// Takes the longest bucket that fits, again and again.
    pub fn walk(&self, delay: Duration) -> Result<Walk, BadWalk> {
        let mut walk = Walk { hops: Vec::new(), remainder: delay };
        for bucket in &self.0 {
            let times = walk.remainder.as_nanos() / bucket.as_nanos();
            if times + walk.hops.len() as u128 > MOST_HOPS as u128 {
                return Err(BadWalk::TooManyHops { delay, longest: self.0[0] });
            }
            walk.hops.extend(std::iter::repeat_n(*bucket, times as usize));
            walk.remainder -= bucket.saturating_mul(times as u32);
        }
        Ok(walk)
    }
}

impl Default for Buckets {
    /// From ten seconds to seven days.
    fn default() -> Self {
        let mut delays = DEFAULT.map(Duration::from_secs).to_vec();
        delays.reverse();
        Self(delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn seventeen_minutes_are_ten_and_five_and_one_and_one() {
        let buckets = Buckets::new([1, 5, 10, 30, 60].map(minutes)).unwrap();
        let walk = buckets.walk(minutes(17)).unwrap();
        assert_eq!(walk, Walk { hops: [10, 5, 1, 1].map(minutes).to_vec(), remainder: Duration::ZERO });
    }

    #[test]
    fn what_is_below_the_smallest_bucket_is_left_to_the_due_time() {
        let buckets = Buckets::new([minutes(1)]).unwrap();
        let walk = buckets.walk(Duration::from_millis(90_250)).unwrap();
        assert_eq!(walk, Walk { hops: vec![minutes(1)], remainder: Duration::from_millis(30_250) });
    }

    #[test]
    fn the_default_buckets_reach_seven_days_and_far_more() {
        let buckets = Buckets::default();
        assert_eq!(buckets, Buckets::new(DEFAULT.map(Duration::from_secs)).unwrap());
        assert_eq!(buckets.delays()[0], minutes(7 * 24 * 60));
        assert!(buckets.walk(minutes(7 * 24 * 60) - Duration::from_millis(1)).is_ok());
        assert!(buckets.walk(minutes(200 * 24 * 60)).is_ok());
        let error = buckets.walk(minutes(400 * 24 * 60)).unwrap_err().to_string();
        assert!(error.contains("400d") && error.contains("longer than 7d"), "{error}");
    }

    #[test]
    fn thirty_two_hops_are_a_walk_and_thirty_three_are_not() {
        let buckets = Buckets::new([minutes(1)]).unwrap();
        assert_eq!(buckets.walk(minutes(32)).unwrap().hops.len(), 32);
        assert!(buckets.walk(minutes(33)).is_err());
    }

    proptest! {
        #[test]
        fn what_is_within_reach_can_be_walked(
            buckets in proptest::collection::vec(1_u64..1_000, 1..6),
            longest in 0_u64..10_000,
            share in 0_u64..=100,
        ) {
            let buckets = Buckets::new(buckets.into_iter().map(Duration::from_millis)).unwrap();
            if buckets.reach(Duration::from_millis(longest)).is_ok() {
                prop_assert!(buckets.walk(Duration::from_millis(longest * share / 100)).is_ok());
            }
        }

        #[test]
        fn a_walk_takes_exactly_the_delay(
            buckets in proptest::collection::vec(1_u64..1_000_000, 1..8),
            delay in 0_u64..10_000_000,
        ) {
            let buckets = Buckets::new(buckets.into_iter().map(Duration::from_millis)).unwrap();
            let delay = Duration::from_millis(delay);
            let Ok(walk) = buckets.walk(delay) else { return Ok(()) };
            prop_assert_eq!(walk.hops.iter().sum::<Duration>() + walk.remainder, delay);
            prop_assert!(walk.remainder < *buckets.delays().last().unwrap());
            prop_assert!(walk.hops.is_sorted_by(|a, b| a >= b) && walk.hops.len() <= MOST_HOPS);
        }
    }
}
