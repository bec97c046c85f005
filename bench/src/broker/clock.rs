//! The measurements' clock: nothing else here reads the time or waits.
#![allow(clippy::disallowed_methods, reason = "this is the clock of the measurements")]

use std::time::{Duration, Instant};

pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}

/// Lets time pass, for what is measured over a time.
pub(crate) fn pass(time: Duration) {
    std::thread::sleep(time);
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
