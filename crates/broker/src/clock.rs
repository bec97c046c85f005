//! The clock and the timers of this crate. Everything that decides takes its time as an argument;
//! what acts asks here. Nothing else in the crate may read a clock.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the one file that reads the clock"
)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, as records and retention count them.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// A monotonic instant that tokio's paused time turns: sessions, rebalances, long polls.
pub(crate) fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Waits, for the background tasks and the faults on order.
pub(crate) async fn sleep(wait: Duration) {
    tokio::time::sleep(wait).await;
}
