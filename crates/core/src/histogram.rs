//! How long something took, counted in fixed buckets: a few additions for each, nothing is kept of it.

use std::time::Duration;

/// The upper bounds of the buckets, in milliseconds; what took longer is counted in one more.
pub const BOUNDS: [u64; 14] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// Durations, by how long they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// So many took this long.
    pub fn observe(&mut self, took: Duration, times: u64) {
        let bucket = BOUNDS.partition_point(|bound| Duration::from_millis(*bound) < took);
        self.counts[bucket] += times;
        self.sum += took.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX));
    }

    /// For each bound how many took at most so long, the shorter ones included.
    pub fn up_to(&self) -> impl Iterator<Item = (Duration, u64)> {
        BOUNDS.iter().zip(&self.counts).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((Duration::from_millis(*bound), *sum))
        })
    }

    /// These and those.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        for (count, more) in all.counts.iter_mut().zip(&others.counts) {
            *count += more;
        }
        all.sum = all.sum.saturating_add(others.sum);
        all
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long all of them took together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_below_every_bound_it_does_not_exceed() {
        let mut histogram = Histogram::default();
        histogram.observe(Duration::ZERO, 3);
        histogram.observe(Duration::from_millis(5), 1);
        histogram.observe(Duration::from_micros(5_001), 1);
        histogram.observe(Duration::from_secs(600), 2);
        let up_to: Vec<_> = histogram.up_to().map(|(_, count)| count).collect();
        assert_eq!(up_to[..4], [3, 4, 5, 5]);
        assert_eq!((up_to[13], histogram.count()), (5, 7));
        assert_eq!(histogram.sum(), Duration::from_micros(1_200_010_001));
        let twice = histogram.with(&histogram);
        assert_eq!((twice.count(), twice.sum()), (14, histogram.sum() * 2));
    }
}
