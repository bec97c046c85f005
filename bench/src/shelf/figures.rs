//! What handlers saw: when records were due and when they came, and in which order.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redrive::Received;

use crate::clock;

/// What was seen, by many handlers at once.
#[derive(Default)]
pub(crate) struct Seen {
    shards: [Mutex<Shard>; 16],
    pub(crate) first_tries: AtomicU64,
    pub(crate) handled: AtomicU64,
    first: Mutex<Option<Instant>>,
    tried: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Shard {
    due: HashMap<(i32, i64), Instant>,
    late: Vec<i64>,
    last: HashMap<(i32, Vec<u8>), i64>,
    failures: HashMap<Vec<u8>, u32>,
    violations: u64,
}

impl Seen {
    /// A record is tried for the first time.
    pub(crate) fn tried(&self) {
        let now = clock::now();
        if self.first_tries.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.first.lock().expect("a lock") = Some(now);
        }
    }

    /// All first tries are over by now.
    pub(crate) fn all_tried(&self) {
        *self.tried.lock().expect("a lock") = Some(clock::now());
    }

    /// It is set aside for so long.
    pub(crate) fn aside(&self, record: &Received, wait: Duration) {
        let mut shard = self.shard(record);
        shard.due.insert((record.at.partition, record.at.offset), clock::now() + wait);
        let key = record.key.as_deref().unwrap_or_default().to_vec();
        *shard.failures.entry(key).or_default() += 1;
    }

    /// It is handled, maybe after a wait.
    pub(crate) fn handled(&self, record: &Received) -> u64 {
        let now = clock::now();
        let mut shard = self.shard(record);
        if let Some(due) = shard.due.remove(&(record.at.partition, record.at.offset)) {
            let late = match now.checked_duration_since(due) {
                Some(late) => i64::try_from(late.as_micros()).unwrap_or(i64::MAX),
                None => -i64::try_from(due.duration_since(now).as_micros()).unwrap_or(i64::MAX),
            };
            shard.late.push(late);
        }
        let key = (record.at.partition, record.key.as_deref().unwrap_or_default().to_vec());
        let last = shard.last.insert(key, record.at.offset);
        shard.violations += u64::from(last.is_some_and(|last| last > record.at.offset));
        drop(shard);
        self.handled.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn shard(&self, record: &Received) -> std::sync::MutexGuard<'_, Shard> {
        // By key, so that the order of a key is seen in one place.
        let key = record.key.as_deref().unwrap_or_default();
        let hash = key.iter().fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        self.shards[(hash % 16) as usize].lock().expect("a lock")
    }

    /// Since the first record was tried.
    pub(crate) fn since_first(&self) -> Duration {
        self.first.lock().expect("a lock").map(|first| first.elapsed()).unwrap_or_default()
    }

    /// From the first record's first try to the last's.
    pub(crate) fn first_tries_took(&self) -> Duration {
        let (first, tried) = (self.first.lock().expect("a lock"), self.tried.lock().expect("a lock"));
        first.zip(*tried).map(|(first, tried)| tried - first).unwrap_or_default()
    }

    /// How late what waited came: early ones, then the half, the hundredth and the last, in milliseconds.
    pub(crate) fn lateness(&self) -> String {
        let mut all: Vec<i64> =
            self.shards.iter().flat_map(|shard| shard.lock().expect("a lock").late.clone()).collect();
        all.sort_unstable();
        if all.is_empty() {
            return "nothing waited".to_owned();
        }
        let early = all.iter().filter(|late| **late < 0).count();
        let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize] as f64 / 1e3;
        format!(
            "{} waited, {early} early, late by {:.1} ms (p50), {:.1} ms (p99), {:.1} ms (most)",
            all.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        )
    }

    pub(crate) fn violations(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().expect("a lock").violations).sum()
    }

    /// The most failures in one key.
    pub(crate) fn longest_chain(&self) -> u32 {
        let most = |shard: &Mutex<Shard>| shard.lock().expect("a lock").failures.values().copied().max();
        self.shards.iter().filter_map(most).max().unwrap_or(0)
    }
}
