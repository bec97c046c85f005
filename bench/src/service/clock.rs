//! Time, measured.
#![allow(clippy::disallowed_methods, reason = "this is the clock of the measurements")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch: the same for every process of this machine.
pub(crate) fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
