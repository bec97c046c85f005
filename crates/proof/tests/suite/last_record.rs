//! A letter as the last thing of a partition.

use crate::on_both;
use crate::place::Place;

on_both!(the_last_record_of_a_partition_is_buried_and_never_seen_again);

async fn the_last_record_of_a_partition_is_buried_and_never_seen_again(place: Place) {
    place.topics(2).await;
    let mut sent =
        [place.send_to(0, &["ok", "permanent"]).await, place.send_to(1, &["permanent"]).await].concat();
    let worker = place.worker().start();
    place.until_complete(&sent, 2).await;
    worker.stop_well().await;

    // After a restart, and after it has changed hands: one of the two partitions goes to the newcomer.
    let first = place.worker().start();
    until_begun(&place, first.id(), 2).await;
    let second = place.worker().start();
    until_begun(&place, second.id(), 1).await;
    sent.extend([place.send_to(0, &["ok"]).await, place.send_to(1, &["ok"]).await].concat());
    let verdict = place.judge(&sent, 2).await;
    for last in [(0, 1), (1, 0)] {
        assert_eq!(verdict.calls.starts_of(last), 1, "{last:?}");
    }
    assert_eq!(verdict.letters.len(), 2);
    first.stop_well().await;
    second.stop_well().await;
}

async fn until_begun(place: &Place, worker: u32, partitions: usize) {
    let begun = |calls: &crate::calls::Calls| calls.events(Some(worker), &["begun"]).len();
    place.until_calls("begun", |calls| (begun(calls) >= partitions).then_some(())).await;
}
