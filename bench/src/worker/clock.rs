//! Time, measured.

use std::time::{Duration, Instant};

#[allow(clippy::disallowed_methods, reason = "measuring is what this program does")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "a pause between two looks at the memory")]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
