//! Offsets that are gone, and a topic that is another one.

use redrive::Origin;
use redrive_core::shelf::Deed;
use redrive_testkit::delete_topic;

use crate::on_both;
use crate::place::{Place, Sent};
use crate::subject::Subject;

on_both!(
    an_offset_that_is_gone_stops_its_partition_until_the_loss_is_accepted,
    a_topic_made_anew_while_the_group_was_away_stops_it_until_the_loss_is_accepted,
    a_topic_made_anew_under_a_worker_stops_it_until_the_loss_is_accepted,
    a_shelf_that_was_lost_with_what_waited_stops_its_partition_until_the_loss_is_accepted,
    a_shelf_that_somebody_else_cut_stops_its_partition_until_the_loss_is_accepted,
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

/// Brokers forget what groups committed of a topic that is deleted; its shelf does not.
async fn a_topic_made_anew_while_the_group_was_away_stops_it_until_the_loss_is_accepted(place: Place) {
    let worker = handled_ten(&place).await;
    worker.stop_well().await;
    let before = place.calls().starts();
    make_anew(&place).await;
    let anew = place.send_to(0, &["ok"; 20]).await;
    let worker = place.worker().start();
    told(&place, Some(worker.id())).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), before, "nothing of it is handled unasked");
    let worker = place.worker().flag("--accept-loss").start();
    place.until_complete(&anew, 1).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), before + 20);
}

async fn a_topic_made_anew_under_a_worker_stops_it_until_the_loss_is_accepted(place: Place) {
    let worker = handled_ten(&place).await;
    make_anew(&place).await;
    let anew = place.send_to(0, &["ok"; 20]).await;
    told(&place, Some(worker.id())).await;
    worker.stop_well().await;
    // What it committed before it knew is of the topic that is gone. Without it, the group is new.
    if place.committed(1).await != [None] {
        let before = place.calls().starts();
        let worker = place.worker().start();
        told(&place, Some(worker.id())).await;
        worker.stop_well().await;
        assert_eq!(place.calls().starts(), before, "an offset of another topic says nothing");
    }
    let worker = place.worker().flag("--accept-loss").start();
    let id = worker.id();
    place.until_calls("all is handled", |calls| (calls.starts_in(id) == anew.len()).then_some(())).await;
    worker.stop_well().await;
}

async fn a_shelf_that_was_lost_with_what_waited_stops_its_partition_until_the_loss_is_accepted(place: Place) {
    place.topics(1).await;
    let first = place.send([("a", "later:1:600000"), ("b", "ok")]).await;
    let worker = place.worker().start();
    place.until_complete(&first, 1).await;
    worker.stop_well().await;
    delete_topic(&place.cluster, &place.shelf()).await;
    let after = place.send([("c", "ok"), ("d", "ok")]).await;
    let before = place.calls().starts();
    let worker = place.worker().start();
    let words = ["WARN", "its shelf is empty", "remedy=", "--accept-loss"];
    let look =
        |calls: &crate::calls::Calls| (!calls.events(Some(worker.id()), &words).is_empty()).then_some(());
    place.until_calls("told", look).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), before, "nothing is handled unasked");
    let worker = place.worker().flag("--accept-loss").start();
    place.until_complete(&after, 1).await;
    worker.stop_well().await;
    assert_eq!(place.calls().starts(), before + 2, "it goes on where it was");
}

async fn a_shelf_that_somebody_else_cut_stops_its_partition_until_the_loss_is_accepted(place: Place) {
    place.topics(1).await;
    let sent = place.send((0..10).map(|n| (format!("key-{n}"), "later:1:600000"))).await;
    let worker = place.worker().start();
    place.until_complete(&sent, 1).await;
    worker.stop_well().await;
    let shelf = place.stored(&place.shelf(), 1).await;
    let waiting: Vec<_> = shelf.iter().filter(|one| one.headers["redrive-entry"].contains("wait")).collect();
    let is_lost = |one: &Sent| waiting[..5].iter().any(|lost| lost.key.as_ref() == Some(&one.key));
    let (lost, left): (Vec<_>, Vec<_>) = sent.iter().partition(|one| is_lost(one));
    assert_eq!((lost.len(), left.len()), (5, 5));
    let below =
        Origin { topic: place.shelf().parse().expect("a name"), partition: 0, offset: waiting[5].offset };
    place.admin.delete_records(&below).await.expect("records are deleted");

    let before = place.calls().starts();
    let after = place.send([("z", "ok")]).await;
    let words = ["WARN", "was cut by somebody else", "from offset 0 to", "remedy=", "--accept-loss"];
    for _ in 0..2 {
        let worker = place.worker().start();
        let look =
            |calls: &crate::calls::Calls| (!calls.events(Some(worker.id()), &words).is_empty()).then_some(());
        place.until_calls("told", look).await;
        worker.stop_well().await;
        assert_eq!(place.calls().starts(), before, "nothing is handled unasked");
    }
    let worker = place.worker().flag("--accept-loss").start();
    place.until_complete(&after, 1).await;
    for one in &left {
        place.order(0, one.offset, Deed::Release).await;
    }
    place.until_done(6).await;
    worker.stop_well().await;
    let starts =
        |all: &[&Sent]| all.iter().map(|one| place.calls().starts_of((0, one.offset))).sum::<usize>();
    assert_eq!((starts(&lost), starts(&left)), (5, 10), "what is left is handled");

    let worker = place.worker().start();
    let after = place.send([("z", "ok")]).await;
    place.until_complete(&after, 1).await;
    let id = worker.id();
    worker.stop_well().await;
    assert!(place.calls().events(Some(id), &["was cut by somebody else"]).is_empty(), "it is told once");
}

async fn handled_ten(place: &Place) -> Subject {
    place.topics(1).await;
    let first = place.send_to(0, &["ok"; 10]).await;
    let worker = place.worker().start();
    place.until_complete(&first, 1).await;
    worker
}

async fn make_anew(place: &Place) {
    delete_topic(&place.cluster, &place.topic).await;
    place.make(&place.topic, 1, &[]).await;
}

async fn told(place: &Place, worker: Option<u32>) {
    let words = ["WARN", "made anew", "remedy=", "--accept-loss"];
    place.until_calls("told", |calls| (!calls.events(worker, &words).is_empty()).then_some(())).await;
}
