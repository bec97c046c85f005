//! The suite's clock: how long it is patient, how it polls, and what it measures. Nothing else here
//! waits or reads the time.
#![allow(clippy::disallowed_methods, reason = "this is the suite's clock")]

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long anything may take before a test fails. Passing tests never wait for it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks again and again until there is something to see.
///
/// # Panics
/// If there is nothing in time.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Does the work and says how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}

/// Does the work on another thread after a while: for what must happen while someone waits.
pub fn later<T: Send + 'static>(delay: Duration, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::spawn(move || {
        thread::sleep(delay);
        work()
    })
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock before the year 292 million")
}
