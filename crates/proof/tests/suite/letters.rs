//! Letters that cannot be written: what is wrong is told, and all goes on by itself once it is mended.

use std::collections::BTreeMap;

use redrive_testkit::delete_topic;

use crate::calls::Calls;
use crate::on_both;
use crate::place::Place;

on_both!(a_letter_that_cannot_be_written_holds_its_partition_until_the_topic_is_mended);

async fn a_letter_that_cannot_be_written_holds_its_partition_until_the_topic_is_mended(place: Place) {
    place.topics(3).await;
    let mut sent = place.send_to(0, &["ok"]).await;
    let worker = place.worker().with("--publish-timeout-ms", "2000").start();
    place.until_complete(&sent, 3).await;

    // The topic is missing: partition 0 waits, 1 and 2 go on, and someone is told what to do.
    delete_topic(&place.cluster, &place.dlq()).await;
    let poison = place.send_to(0, &["permanent"]).await;
    told(&place, "partition 0 is held", "redrive topics apply").await;
    let behind = place.send_to(0, &["ok"]).await;
    let beside = [place.send_to(1, &["ok"; 20]).await, place.send_to(2, &["ok"; 20]).await].concat();
    place.until_complete(&beside, 3).await;
    let waits = |calls: &Calls| calls.starts_of((0, behind[0].offset)) == 0;
    assert!(waits(&place.calls()), "nothing of a held partition starts");
    place.make(&place.dlq(), 1, &[]).await;
    sent.extend([poison, behind, beside].concat());
    place.until_complete(&sent, 3).await;
    ready_again(&place, "partition 0 is held").await;

    // It has fewer partitions than the source: 1 waits, 0 still buries.
    let poison = place.send_to(1, &["permanent"]).await;
    told(&place, "partition 1 is held", "as many partitions as the source").await;
    let beside = place.send_to(0, &["permanent", "ok"]).await;
    place.until_complete(&beside, 3).await;
    let dlq = place.dlq().parse().expect("the name of a topic");
    place.admin.add_partitions(&dlq, 3).await.expect("more partitions");
    sent.extend([poison, beside].concat());
    place.until_complete(&sent, 3).await;
    ready_again(&place, "partition 1 is held").await;

    // It takes only small records: the letter of a large one points to where it was consumed.
    let small = BTreeMap::from([("max.message.bytes".to_owned(), "5000".to_owned())]);
    place.admin.alter(&dlq, &small).await.expect("a smaller limit");
    let large = format!("permanent {}", "x".repeat(20_000));
    let pointed = place.send_to(2, &[&large]).await;
    sent.extend(pointed.clone());
    let verdict = place.judge(&sent, 3).await;
    let letter = verdict.letters.iter().find(|letter| letter.partition == 2).expect("a letter");
    assert_eq!(letter.value, None);
    let origin = format!("{}/2/{}", place.topic, pointed[0].offset);
    assert_eq!(letter.headers["redrive-pointer"], origin);
    assert_eq!(verdict.letters.len(), 4, "each once: {:?}", verdict.letters);
    worker.stop_well().await;
}

async fn told(place: &Place, what: &str, remedy: &str) {
    let words = ["WARN", what, "remedy=", remedy];
    place.until_calls(what, |calls| (!calls.events(None, &words).is_empty()).then_some(())).await;
}

async fn ready_again(place: &Place, what: &str) {
    let words = ["ready again", what];
    place.until_calls("ready again", |calls| (!calls.events(None, &words).is_empty()).then_some(())).await;
}
