//! Handlers that do not end by themselves: they are ended, and what they were at is not lost.

mod ground;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ground::{note, orders, run, seen, stage, until, until_status};
use redrive::{Class, Failure, Received, Worker};

/// Counts when it is dropped.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Panics when it is dropped.
struct Spiteful;

impl Drop for Spiteful {
    fn drop(&mut self) {
        panic!("spite");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_as_it_is_ended_has_failed_like_any_other() {
    let stage = stage(1).await;
    let subscription = orders()
        .timeouts(Duration::from_millis(30), Duration::from_secs(30))
        .retry(Class::Outage, "exponential(20ms..50ms x2)")
        .handler(async |received: Received| {
            if received.attempt() == 1 {
                let _spite = Spiteful;
                std::future::pending::<()>().await;
            }
            Ok::<_, Failure>(())
        });
    stage.send("orders", "k", "v").await.unwrap();
    let running = run(&stage, subscription).await;
    let status = until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(status.counts.failed[Class::Outage as usize], 1);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_cut_off_when_a_partition_of_it_is_given_up_and_its_other_records_are_tried_again() {
    let stage = stage(2).await;
    let (ended, batches) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let forever =
        orders().drain_timeout(Duration::from_millis(200)).batch_handler(NonZeroU32::new(10).unwrap(), {
            let (ended, batches) = (ended.clone(), batches.clone());
            move |_: Vec<Received>| {
                batches.fetch_add(1, Ordering::SeqCst);
                let counted = Counted(ended.clone());
                async move {
                    let _counted = counted;
                    std::future::pending().await
                }
            }
        });
    for n in 0..20 {
        stage.send("orders", &n.to_string(), &n.to_string()).await.unwrap();
    }
    let first = run(&stage, forever).await;
    until_status(&first, "all run", |status| status.running == 20).await;
    let (all, handler_saw) = seen();
    let second = orders().handler(move |received: Received| {
        note(&handler_saw, &received);
        async move { Ok::<_, Failure>(()) }
    });
    let second = Worker::new(stage.cluster()).subscribe(second).start().await.unwrap();
    until("the other worker handles what was cut off", || !all.lock().unwrap().is_empty()).await;
    until("the batch was ended", || ended.load(Ordering::SeqCst) > 0).await;
    let left = until_status(&first, "the rest runs", |status| (1..20).contains(&status.running)).await;
    assert_eq!(left.counts.failed, [0; 4], "to be cut off is no failure");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
    until("every batch was ended", || ended.load(Ordering::SeqCst) == batches.load(Ordering::SeqCst)).await;
}
