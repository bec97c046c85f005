//! The index is fed from Kafka, keeps nothing that Kafka does not have, and can be deleted at any time.

mod ground;

use std::fs;

use bytes::Bytes;
use ground::{Ground, all, bytes, letter, until};
use redrive::{Outgoing, Topic};
use redrive_kafka::Publisher;
use redrive_letters::{Dialect, Query, Rebuilt, Sort};

#[tokio::test]
async fn letters_of_all_partitions_are_listed_and_only_new_ones_are_read_again() {
    let ground = Ground::new().await;
    let topic = ground.topic("orders.billing.dlq", 3, &[]).await;
    ground.topic("orders", 1, &[]).await;
    for offset in 0..30 {
        ground
            .publish(letter(&topic, (offset % 3) as i32, offset, &format!("k{offset}"), "after 900ms"))
            .await;
    }
    let (mut index, fed) = ground.catch_up().await;
    assert_eq!((fed.came, fed.left, fed.topics.len()), (30, 0, 1));
    assert_eq!(fed.rebuilt, Some(Rebuilt::New));
    let letters = all(&mut index, &Query::default());
    assert_eq!(letters.len(), 30);
    assert!(letters.is_sorted_by_key(|letter| std::cmp::Reverse(letter.time)), "the newest first");
    let newest = &letters[0];
    assert_eq!((newest.source.as_str(), newest.partition, newest.offset), ("orders", Some(2), Some(29)));
    assert_eq!((newest.group.as_deref(), newest.attempts), (Some("billing"), 3));
    assert_eq!(
        (newest.error_type.as_deref(), newest.message.as_deref()),
        (Some("Timeout"), Some("after 900ms"))
    );
    assert_eq!((newest.key.as_deref(), newest.lane.as_deref()), (Some(&b"k29"[..]), Some(&b"k29"[..])));
    drop(index);
    ground.publish(letter(&topic, 0, 30, "k30", "after 900ms")).await;
    let (mut index, fed) = ground.catch_up().await;
    assert_eq!((fed.came, fed.rebuilt), (1, None));
    assert_eq!(index.count().unwrap(), 31);
    drop(index);
    let (_, fed) = ground.catch_up().await;
    assert_eq!((fed.came, fed.left), (0, 0));
}

#[tokio::test]
async fn a_topic_in_which_nothing_is_as_it_should_be_is_listed() {
    let ground = Ground::new().await;
    let topic = ground.topic("orders.billing.dlq", 1, &[("max.message.bytes", "4000000")]).await;
    let bad = Bytes::from_static(&[0xff, 0xfe, 0, b'x', 0xc3]);
    let to = || Outgoing::to(topic.clone()).partition(0);
    // A tombstone of nobody, one of Redrive, nothing at all, a megabyte, and bytes that are no text everywhere.
    ground.publish(to().key("k")).await;
    ground.publish(Outgoing { value: None, ..letter(&topic, 0, 1, "k", "gone") }).await;
    ground.publish(to()).await;
    ground.publish(to().value("")).await;
    ground.publish(to().key("").value("")).await;
    ground.publish(letter(&topic, 0, 2, "large", "x").value(vec![7_u8; 1 << 20])).await;
    let mut nasty = letter(&topic, 0, 3, "nasty", "x").key(bad.clone()).value(bad.clone());
    for name in ["redrive-error-message", "redrive-error-type", "redrive-group", "redrive-lane", "b\u{e9}"] {
        nasty.headers.set(name, bad.clone());
    }
    for name in ["redrive-history", "redrive-error-chain", "redrive-attempt", "redrive-leader"] {
        nasty.headers.set(name, bad.clone());
    }
    ground.publish(nasty).await;
    for value in [&b""[..], b"\x00", b"\xff\xff\xff", b"12345678901234567890"] {
        let spring = to().value("s").header("kafka_dlt-original-topic", "orders");
        let spring =
            spring.header("kafka_dlt-original-partition", value).header("retry_topic-attempts", value);
        ground.publish(spring.header("kafka_dlt-original-offset", value)).await;
    }
    let kafka =
        redrive_testkit::Cluster { brokers: ground.settings().brokers.clone(), properties: Vec::new() };
    let name = topic.to_string();
    tokio::task::spawn_blocking(move || kafka.abort(&name, 0, &["never", "was"])).await.unwrap();
    ground.publish(letter(&topic, 0, 4, "after", "x")).await;

    let (mut index, fed) = ground.catch_up().await;
    let letters = all(&mut index, &Query { sort: Sort::Oldest, ..Query::default() });
    assert_eq!((fed.came, letters.len()), (12, 12), "all but the aborted ones");
    let dialects = |dialect| letters.iter().filter(|letter| letter.dialect == dialect).count();
    assert_eq!(
        (dialects(Dialect::Unknown), dialects(Dialect::Redrive), dialects(Dialect::Spring)),
        (4, 4, 4)
    );
    let large = letters.iter().find(|letter| letter.size == 1 << 20).unwrap();
    assert_eq!(large.key.as_deref(), Some(&b"large"[..]));
    assert_eq!(letters.iter().filter(|letter| letter.is_tombstone).count(), 3);
    let nasty = letters.iter().find(|letter| letter.key.as_ref() == Some(&bad)).unwrap();
    assert_eq!(nasty.message.as_deref(), Some("\u{fffd}\u{fffd}\0x\u{fffd}"));
    let query = Query { keys: vec![bad.to_vec()], ..Query::default() };
    assert_eq!(all(&mut index, &query).len(), 1, "found by a key that is no text");
    index.groups(&Query::default(), redrive::Timestamp::from_millis(0)).unwrap();
    drop(index);
    let (_, fed) = ground.catch_up().await;
    assert_eq!(fed.came, 0, "the end of an aborted transaction is not read again");
}

#[tokio::test]
async fn an_index_that_is_deleted_damaged_or_of_another_version_is_built_anew() {
    let ground = Ground::new().await;
    let topic = ground.topic("orders.billing.dlq", 2, &[]).await;
    for offset in 0..10 {
        ground.publish(letter(&topic, (offset % 2) as i32, offset, "k", "x")).await;
    }
    let before = ground.letters().await;
    let delete = || {
        for file in ground.files().iter().filter(|file| file.contains(".db")) {
            fs::remove_file(ground.folder.path().join(file)).unwrap();
        }
    };
    delete();
    assert_eq!(ground.letters().await, before);

    fs::write(ground.file(), b"not a database, and long enough to be taken for one".repeat(100)).unwrap();
    let (mut index, fed) = ground.catch_up().await;
    let Some(Rebuilt::Damaged(aside)) = fed.rebuilt else { panic!("{fed:?}") };
    assert!(aside.exists() && index.count().unwrap() == 10);
    drop(index);

    // A page in the middle.
    let path = ground.file();
    let mut content = fs::read(&path).unwrap();
    let length = content.len();
    content[4_096..length].fill(0xa5);
    fs::write(&path, &content).unwrap();
    ground.publish(letter(&topic, 0, 10, "k", "x")).await;
    let (mut index, fed) = ground.catch_up().await;
    assert!(matches!(fed.rebuilt, Some(Rebuilt::Damaged(_))), "{fed:?}");
    assert_eq!(index.count().unwrap(), 11);
    drop(index);

    let path = ground.file();
    let mut content = fs::read(&path).unwrap();
    // The version that a database says it has.
    content[60..64].copy_from_slice(&7_u32.to_be_bytes());
    fs::write(&path, &content).unwrap();
    let (mut index, fed) = ground.catch_up().await;
    assert_eq!((fed.rebuilt, index.count().unwrap()), (Some(Rebuilt::OtherVersion), 11));
}

#[tokio::test]
async fn letters_that_kafka_deletes_leave_with_all_that_was_counted_of_them() {
    let ground = Ground::new().await;
    let topic = ground.topic("orders.billing.dlq", 1, &[]).await;
    for offset in 0..20 {
        let message = if offset < 10 { "old news 1" } else { "fresh" };
        ground.publish(letter(&topic, 0, offset, &format!("k{offset}"), message)).await;
    }
    let now = redrive::Timestamp::from_millis(1_800_000_000_000);
    let (mut index, _) = ground.catch_up().await;
    let keys = |groups: Vec<redrive_letters::Group>| {
        groups.iter().map(|group| (group.count, group.keys)).collect::<Vec<_>>()
    };
    assert_eq!(keys(index.groups(&Query::default(), now).unwrap()), [(10, 10), (10, 10)]);
    drop(index);
    ground.admin.delete_records(&format!("{topic}/0/13").parse().unwrap()).await.unwrap();
    let (mut index, fed) = ground.catch_up().await;
    assert_eq!((fed.left, index.count().unwrap()), (13, 7));
    assert_eq!(keys(index.groups(&Query::default(), now).unwrap()), [(7, 7)]);
    let text = |text: &str| Query { text: Some(text.to_owned()), ..Query::default() };
    assert_eq!(all(&mut index, &text("news")).len(), 0);
    assert_eq!(all(&mut index, &text("fresh")).len(), 7);
}

#[tokio::test]
async fn a_topic_that_is_deleted_or_made_anew_takes_its_letters_along() {
    let ground = Ground::new().await;
    let kafka =
        redrive_testkit::Cluster { brokers: ground.settings().brokers.clone(), properties: Vec::new() };
    let (one, two) = (ground.topic("a.g.dlq", 1, &[]).await, ground.topic("b.g.dlq", 1, &[]).await);
    for offset in 0..5 {
        ground.publish(letter(&one, 0, offset, "k", "x")).await;
        ground.publish(letter(&two, 0, offset, "k", "x")).await;
    }
    assert_eq!(ground.letters().await.len(), 10);
    redrive_testkit::delete_topic(&kafka, one.as_str()).await;
    redrive_testkit::delete_topic(&kafka, two.as_str()).await;
    ground.topic("b.g.dlq", 1, &[]).await;
    let publisher = Publisher::new(ground.settings(), &redrive::Publishing::default()).unwrap();
    for offset in 0..7 {
        publisher.publish(letter(&two, 0, 100 + offset, "k", "x")).await.unwrap();
    }
    let letters = ground.letters().await;
    assert_eq!(letters.len(), 7);
    assert!(letters.iter().all(|letter| letter.at.topic == two && letter.offset >= Some(100)));
}

#[tokio::test]
async fn on_a_compacted_topic_tombstones_take_letters_back_and_gaps_are_found() {
    let ground = Ground::new().await;
    let settings =
        [("cleanup.policy", "compact"), ("segment.ms", "1"), ("min.cleanable.dirty.ratio", "0.0001")];
    let topic: Topic = ground.topic("orders.billing.dlq", 1, &settings).await;
    let filed = |offset: i64| {
        let letter = letter(&topic, 0, offset, "customer", "x").header("redrive-key", "customer");
        letter.key(format!("orders/0/{offset}"))
    };
    for offset in [1, 2, 3, 2] {
        ground.publish(filed(offset)).await;
    }
    let letters = ground.letters().await;
    assert_eq!(
        letters.iter().map(|letter| letter.offset).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(2), Some(3)]
    );
    assert!(letters.iter().all(|letter| letter.key == Some(bytes("customer"))), "the original key");
    // One is resolved: it leaves at once, whether Kafka has compacted or not.
    ground.publish(Outgoing::to(topic.clone()).partition(0).key("orders/0/1")).await;
    let left: Vec<_> = ground.letters().await.iter().map(|letter| letter.offset).collect();
    assert_eq!(left, [Some(2), Some(2), Some(3)]);
    // The other of the two is gone once Kafka has dropped it.
    let broker = ground.cluster.broker().unwrap();
    until("compacted", async || {
        ground.publish(Outgoing::to(topic.clone()).partition(0).key("filler").value("x")).await;
        broker.compact(i64::MAX / 2);
        ground.letters().await.iter().filter(|letter| letter.offset == Some(2)).count() == 1
    })
    .await;
    let left: Vec<_> = ground.letters().await.iter().filter_map(|letter| letter.offset).collect();
    assert_eq!(left, [2, 3]);
}

#[tokio::test]
async fn one_feeds_at_a_time_and_another_takes_what_is_there() {
    let ground = Ground::new().await;
    let topic = ground.topic("orders.billing.dlq", 1, &[]).await;
    ground.publish(letter(&topic, 0, 1, "k", "x")).await;
    assert_eq!(ground.letters().await.len(), 1);
    ground.publish(letter(&topic, 0, 2, "k", "x")).await;
    let name = ground.files().into_iter().find(|file| file.ends_with(".lock")).unwrap();
    let lock = fs::File::open(ground.folder.path().join(name)).unwrap();
    lock.lock().unwrap();
    let (mut index, fed) = ground.catch_up().await;
    assert!(fed.is_busy && index.count().unwrap() == 1);
    lock.unlock().unwrap();
    assert_eq!(ground.letters().await.len(), 2);
}
