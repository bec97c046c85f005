//! Offsets that are gone, and a topic that is another one.

use redrive::Origin;
use redrive_testkit::delete_topic;

use crate::on_both;
use crate::place::Place;

on_both!(
    an_offset_that_is_gone_stops_its_partition_until_the_loss_is_accepted,
    a_topic_made_anew_stops_the_group_until_the_loss_is_accepted,
);

async fn an_offset_that_is_gone_stops_its_partition_until_the_loss_is_accepted(place: Place) {
    place.topics(2).await;
    let first = [place.send_to(0, &["ok"; 10]).await, place.send_to(1, &["ok"; 10]).await].concat();
    let worker = place.worker().start();
    place.until_complete(&first, 2).await;
    worker.stop_well().await;
    let gone = place.send_to(0, &["ok"; 10]).await;
    let neighbour = place.send_to(1, &["ok"; 10]).await;
    let below = Origin { topic: place.topic.parse().expect("a name"), partition: 0, offset: 15 };
    place.admin.delete_records(&below).await.expect("records are deleted");

    let worker = place.worker().start();
    let words = ["WARN", "5 offsets are gone", "remedy=", "--accept-loss"];
    place.until_calls("told", |calls| (!calls.events(None, &words).is_empty()).then_some(())).await;
    place.until_complete(&neighbour, 2).await;
    assert!(gone.iter().all(|one| place.calls().starts_of((0, one.offset)) == 0));
    assert_eq!(place.committed(2).await[0], Some(10), "what was committed stays");
    worker.stop_well().await;

    let worker = place.worker().flag("--accept-loss").start();
    place.until_complete(&gone, 2).await;
    worker.stop_well().await;
    let seen: Vec<_> = gone.iter().map(|one| place.calls().starts_of((0, one.offset))).collect();
    assert_eq!(seen, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
}

async fn a_topic_made_anew_stops_the_group_until_the_loss_is_accepted(place: Place) {
    place.topics(1).await;
    let first = place.send_to(0, &["ok"; 10]).await;
    let worker = place.worker().start();
    place.until_complete(&first, 1).await;
    worker.stop_well().await;
    delete_topic(&place.cluster, &place.topic).await;
    place.make(&place.topic, 1, &[]).await;
    let anew = place.send_to(0, &["ok"; 20]).await;

    let before = place.calls().starts();
    let worker = place.worker().start();
    let words = ["WARN", "made anew", "remedy=", "--accept-loss"];
    place.until_calls("told", |calls| (!calls.events(None, &words).is_empty()).then_some(())).await;
    assert_eq!(place.calls().starts(), before, "nothing of the other topic is handled");
    worker.stop_well().await;

    let worker = place.worker().flag("--accept-loss").start();
    place.until_complete(&anew, 1).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), before + 20, "all of it is handled, from its beginning");
}
