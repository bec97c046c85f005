//! The clock and the chance of these tests: nothing else here reads the time or waits.
#![allow(clippy::disallowed_methods, reason = "this is the clock of these tests")]

use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A number that is another one in each run.
pub(crate) fn seed() -> u64 {
    u64::from(SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").subsec_nanos())
}

/// Lets the clients work for a time that depends on the seed and the round.
pub(crate) fn let_work(seed: u64, round: u64) {
    let chance =
        (seed + round).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    sleep(Duration::from_millis(400 + (chance >> 33) % 1_100));
}

/// Looks again and again until there is something to see.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not in time: {what}");
        sleep(Duration::from_millis(10));
    }
}
