//! One subscription in trouble, and another that does not notice.

use std::thread;
use std::time::Duration;

use redrive::Clock;

use crate::endpoint::Endpoint;
use crate::process::{Process, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_never_answers_does_not_slow_another_subscription() {
    const RECORDS: usize = 1_000;
    let stage = Stage::new().await;
    stage.topic("stuck", 1).await;
    stage.topic("fast", 1).await;
    #[allow(clippy::disallowed_methods, reason = "it hangs, until the process does")]
    let stuck = Endpoint::new(|_| {
        thread::sleep(Duration::from_secs(600));
        200
    });
    let fast = Endpoint::new(|_| 200);
    let config = format!(
        "{}{}{}",
        stage.head(),
        subscription("stuck", "g", &stuck.url, "drain-timeout = \"1s\""),
        subscription("fast", "g", &fast.url, "drain-timeout = \"1s\""),
    );
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_ready().await;
    stage.send_many("stuck", 0..200, 200).await;
    until("all places of the stuck one are taken", || process.subscription("stuck")["running"] == 64).await;
    let clock = Clock::system();
    let began = clock.now().steady;
    stage.send_many("fast", 0..RECORDS, 50).await;
    let sent = clock.now().steady;
    until("all are handled", || process.subscription("fast")["totals"]["handled"] == RECORDS).await;
    let behind = clock.now().steady - sent;
    // The one that is stuck takes thirty for each of its attempts.
    assert!(behind < Duration::from_secs(20), "{behind:?} after they were sent in {:?}", sent - began);
    assert_eq!(process.subscription("stuck")["totals"]["handled"], 0);
    process.stop().await;
}
