//! Letters that are resolved, deleted, erased or listed as damaged.

use std::collections::BTreeMap;

use redrive::{Cluster, Outgoing, Publisher, Publishing};
use redrive_kafka::Admin;
use redrive_letters::jobs::Followed;

use crate::ground::{LETTERS, all, cluster, put, run, start, told};

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_deleted_only_where_kafka_deletes_nothing_else_with_them() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    // The last origins came first, and all of one partition in order: k9, k7, .. k1, k9, ..
    let (code, data, said) =
        told(&run(&cluster, folder, &["dlq", "purge", "--key", "k9", "--dry-run"]).await);
    assert_eq!((code, data.as_str()), (3, ""), "as it ends when it is done: {said}");
    assert!(said.contains(&format!("everything below {LETTERS}/1/1 would be deleted: 1 letter")), "{said}");
    assert!(said.contains("1 letter that match stay") && said.contains("1 of them are open"), "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 20);

    let purge = ["dlq", "purge", "--key", "k9", "--reason", "archived", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder, &purge).await);
    assert_eq!((code, data), (3, format!("partition 1 of {LETTERS} begins at 1 now\n")), "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 19);
    let up_to = format!("{LETTERS}/0/4");
    let purge = ["dlq", "purge", "--up-to", &up_to, "--reason", "archived", "--yes"];
    let (code, _, said) = told(&run(&cluster, folder, &purge).await);
    assert_eq!(code, 0, "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 15);
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    assert!(data.lines().count() == 2 && data.contains("up-to=") && data.contains("archived"), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn resolved_letters_are_no_longer_open_and_are_listed_as_damaged_all_the_same() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    let resolve = ["dlq", "resolve", "--day", "2023-11-14", "--key", "k1", "--reason", "by hand", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder, &resolve).await);
    assert_eq!((code, data.as_str()), (0, "2 letters resolved\n"), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &resolve).await);
    assert_eq!(code, 4, "none is open: {said}");
    let (code, data, _) = told(&run(&cluster, folder, &["dlq", "replay", "--all", "--dry-run"]).await);
    assert!(code == 0 && data.starts_with("18 letters"), "{data}");

    let damaged = ["dlq", "damaged", "--topic", "orders", "--group", "billing"];
    let (code, data, _) = told(&run(&cluster, folder, &damaged).await);
    let lines: Vec<serde_json::Value> =
        data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, lines.len()), (0, 20));
    assert_eq!(lines[1]["offset"], 2);
    assert_eq!((&lines[1]["topic"], &lines[1]["partition"]), (&"orders".into(), &0.into()));
}

/// Letters of a compacted topic, keyed by their origins.
async fn compacted(cluster: &Cluster) {
    let admin = Admin::new(cluster.settings()).unwrap();
    let settings = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    admin.create(&"shop.billing.dlq".parse().unwrap(), 2, 1, &settings).await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for n in 0..10_i64 {
        let origin = format!("orders/0/{n}");
        let letter = Outgoing::to("shop.billing.dlq".parse().unwrap())
            .partition(0)
            .key(origin.clone())
            .value(n.to_string())
            .header("redrive-origin", origin)
            .header("redrive-key", format!("k{}", n % 2))
            .header("redrive-group", "billing")
            .header("redrive-reason", "permanent")
            .header("redrive-buried-at", "1700000000000");
        publisher.publish(letter).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_compacted_topic_each_letter_gets_a_tombstone_of_its_own_and_the_original_key_is_sent_back() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    compacted(&cluster).await;
    let erase = ["dlq", "erase", "--key", "k1", "--reason", "asked by mail", "--yes"];
    let (code, _, said) = told(&run(&cluster, folder, &erase).await);
    assert!(code == 0 && said.contains("5 have a tombstone"), "{code} {said}");
    let records = all(&cluster, "shop.billing.dlq").await;
    let tombstones: Vec<_> = records.iter().filter(|record| record.value.is_none()).collect();
    assert_eq!((records.len(), tombstones.len()), (15, 5));
    assert_eq!(tombstones[0].key.as_deref(), Some(&b"orders/0/1"[..]));
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    assert!(data.contains("key-sha256=") && !data.contains("\"k1\""), "the key itself is nowhere: {data}");

    let replay = ["dlq", "replay", "--all", "--reason", "fixed", "--yes"];
    let (_, data, said) = told(&run(&cluster, folder, &replay).await);
    assert!(data.contains("5 sent"), "{data}{said}");
    let sent = all(&cluster, "orders").await;
    assert!(sent.len() == 5 && sent.iter().all(|record| record.key.as_deref() == Some(b"k0")), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_up_to_an_offset_but_from_a_letter_topic_and_within_a_partition() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 4).await;
    cluster.create_topic("orders.billing.shelf", 2).await.unwrap();
    cluster.create_topic("stray", 2).await.unwrap();
    cluster.create_topic("orders-dlt", 2).await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for topic in ["orders", "orders.billing.shelf", "stray", "orders-dlt"] {
        let record = Outgoing::to(topic.parse().unwrap()).partition(0).value("1");
        publisher.publish(record).await.unwrap();
    }
    let resolve = ["dlq", "resolve", "--key", "k0", "--reason", "so that there is a journal", "--yes"];
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    let beyond = format!("{LETTERS}/0/3");
    let nowhere = format!("{LETTERS}/7/1");
    for (up_to, named, why) in [
        ("orders/0/1", "orders", "orders.billing.dlq belongs to who consumes it"),
        ("orders.billing.shelf/0/1", "orders.billing.shelf", "records wait there"),
        ("redrive.state/0/1", "redrive.state", "Redrive keeps there"),
        ("redrive.journal/0/1", "redrive.journal", "Redrive keeps there"),
        ("stray/0/1", LETTERS, "not a letter topic"),
        ("nothing.dlq/0/1", LETTERS, "no such topic"),
        (&nowhere, LETTERS, "it has 2 partitions"),
        (&beyond, LETTERS, "ends at 2"),
    ] {
        for last in [&["--yes"][..], &["--dry-run"]] {
            let purge = ["dlq", "purge", "--up-to", up_to, "--letters", named, "--reason", "x"];
            let (code, data, said) = told(&run(&cluster, folder, &[&purge, last].concat()).await);
            assert!(code == 1 && data.is_empty() && said.contains(why), "{up_to}: {code} {said}");
            assert!(said.contains("help: "), "{said}");
            // Nor without its name.
            let (code, data, said) =
                told(&run(&cluster, folder, &[&purge[..4], &purge[6..], last].concat()).await);
            assert!(code == 1 && data.is_empty() && said.contains("help: "), "{up_to}: {code} {said}");
        }
    }
    for (topic, records) in [("orders", 1), ("orders.billing.shelf", 1), ("stray", 1), (LETTERS, 4)] {
        assert_eq!(all(&cluster, topic).await.len(), records, "{topic}");
    }
    let purge = ["dlq", "purge", "--up-to", "orders-dlt/0/1", "--reason", "x", "--yes"];
    assert_eq!(told(&run(&cluster, folder, &purge).await).0, 1, "it is not called as letter topics are");
    let (code, _, said) =
        told(&run(&cluster, folder, &[&purge[..], &["--letters", "orders-dlt"]].concat()).await);
    assert!(code == 0 && all(&cluster, "orders-dlt").await.is_empty(), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &[&purge[..], &["--key", "k1"]].concat()).await);
    assert_eq!(code, 2, "an offset and a question are two things: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_about_the_letter_topics_that_are_meant_whatever_the_index_has_seen() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 4).await;
    cluster.create_topic("orders-dlt", 2).await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let other = Outgoing::to("orders-dlt".parse().unwrap()).partition(0).key("k1").value("other");
    publisher.publish(other.header("redrive-origin", "orders/0/77")).await.unwrap();
    let list = ["dlq", "list", "-o", "ndjson"];
    let lines = async |args: &[&str]| told(&run(&cluster, folder, args).await).1.lines().count();
    assert_eq!(lines(&list).await, 4);
    // Now the index has seen both.
    assert_eq!(lines(&[&list[..], &["--letters", "orders-dlt"]].concat()).await, 1);
    assert_eq!(lines(&list).await, 4);
    assert_eq!(lines(&["dlq", "export", "--letters", "orders-dlt"]).await, 1);
    assert_eq!(lines(&["dlq", "export", "--letters-like", ".*-dlt"]).await, 1);
    assert_eq!(lines(&["dlq", "damaged"]).await, 4);
    assert_eq!(lines(&["dlq", "damaged", "--letters", "orders-dlt"]).await, 1);
    for command in ["stats", "groups"] {
        let (code, data, said) = told(&run(&cluster, folder, &["dlq", command, "-o", "json"]).await);
        assert!(code == 0 && !data.contains("orders-dlt"), "{command}: {data} {said}");
    }
    for deed in ["replay", "purge", "resolve"] {
        let asked = ["dlq", deed, "--key", "k1", "--dry-run"];
        let (_, data, said) = told(&run(&cluster, folder, &asked).await);
        assert!(!said.contains("orders-dlt") && !data.contains("2 letters"), "{deed}: {data}{said}");
        for missing in
            [&["--letters", "nothing-dlt"][..], &["--letters", LETTERS, "--letters", "nothing-dlt"]]
        {
            let (code, data, said) = told(&run(&cluster, folder, &[&asked[..], missing].concat()).await);
            assert!(code == 1 && data.is_empty() && said.contains("no topic nothing-dlt"), "{deed}: {said}");
        }
        let none = ["--letters-like", "nothing.*"];
        assert_eq!(told(&run(&cluster, folder, &[&asked[..], &none].concat()).await).0, 4, "{deed}");
    }
    let erase = ["dlq", "erase", "--key", "k1", "--reason", "asked", "--yes", "--letters", LETTERS];
    let (_, _, said) = told(&run(&cluster, folder, &erase).await);
    assert!(said.contains("1 letter of that key"), "{said}");
    assert_eq!(all(&cluster, "orders-dlt").await.len(), 1);
    let id = "orders-dlt/0/0";
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "resolve", id, "--reason", "x"]).await);
    assert_eq!(code, 4, "not even by its place: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_kafka_keeps_is_told_with_its_place_each_time_and_leaves_the_index_all_the_same() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    compacted(&cluster).await;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let odd = Outgoing::to("shop.billing.dlq".parse().unwrap()).partition(1).key("k1").value("a secret");
    publisher.publish(odd.header("redrive-origin", "orders/1/7")).await.unwrap();
    let erase = ["dlq", "erase", "--key", "k1", "--reason", "asked by mail"];
    let rest = "shop.billing.dlq/1/0 stays, for ever, as its topic is set up: its topic is compacted";
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--dry-run"]].concat()).await);
    assert!(code == 3 && said.contains("5 would get a tombstone") && said.contains(rest), "{code} {said}");
    assert_eq!(all(&cluster, "shop.billing.dlq").await.len(), 11, "a dry run does nothing");
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 3 && said.contains("5 have a tombstone") && said.contains(rest), "{code} {said}");
    assert_eq!(all(&cluster, "shop.billing.dlq").await.len(), 16);
    let list = ["dlq", "list", "--key", "k1", "--state", "all", "-o", "ndjson"];
    let (code, data, _) = told(&run(&cluster, folder, &list).await);
    assert!(code == 4 && data.is_empty(), "{data}");
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 3 && said.contains(rest) && !said.contains("have a tombstone"), "again: {code} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_kafka_deletes_beginnings_each_letter_that_is_not_erased_is_told() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    let erase = ["dlq", "erase", "--key", "k9", "--reason", "asked by mail"];
    let rest = format!("{LETTERS}/1/5 stays, until 20");
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--dry-run"]].concat()).await);
    assert!(code == 3 && said.contains(&format!("1 would be deleted below {LETTERS}/1/1")), "{code} {said}");
    assert!(said.contains(&rest) && said.contains("other letters lie before it"), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 3 && said.contains(&format!("1 deleted below {LETTERS}/1/1")), "{code} {said}");
    assert!(said.contains(&rest), "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 19);
    let (_, data, _) = told(&run(&cluster, folder, &["dlq", "list", "--key", "k9", "-o", "ndjson"]).await);
    assert!(data.is_empty(), "what Kafka keeps is not shown: {data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_letters_are_deleted_unless_another_state_is_named_and_none_that_a_replay_holds() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    // k9 is the first of its partition.
    let resolve = ["dlq", "resolve", "--key", "k9", "--reason", "by hand", "--yes"];
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    let purge = ["dlq", "purge", "--key", "k9", "--reason", "archived", "--yes"];
    for last in [&[][..], &["--dry-run"], &["--state", "open"]] {
        let (code, data, said) = told(&run(&cluster, folder, &[&purge[..], last].concat()).await);
        assert!(code == 4 && data.is_empty() && said.contains("no letter matches"), "{last:?}: {said}");
    }
    // Open letters behind a resolved one stay with it.
    let open = ["dlq", "purge", "--all", "--reason", "archived", "--dry-run"];
    let (code, _, said) = told(&run(&cluster, folder, &open).await);
    assert!(code == 3 && said.contains("8 letters that match stay") && !said.contains("/1/"), "{said}");
    let (code, _, said) = told(&run(&cluster, folder, &[&open[..], &["--state", "all"]].concat()).await);
    assert!(code == 0 && said.contains(&format!("below {LETTERS}/1/10 would be")), "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 20);
    let (code, _, said) =
        told(&run(&cluster, folder, &[&purge[..], &["--state", "resolved"]].concat()).await);
    assert_eq!((code, all(&cluster, LETTERS).await.len()), (3, 19), "{said}");

    let mut slow =
        start(&cluster, folder, &["dlq", "replay", "--all", "--rate", "1/m", "--reason", "x", "--yes"]);
    while Followed::read(cluster.settings()).await.unwrap().state.jobs().iter().all(|job| job.end.is_some()) {
        redrive::Clock::system().sleep(std::time::Duration::from_millis(100)).await;
    }
    for last in ["--yes", "--dry-run"] {
        let held = ["dlq", "purge", "--all", "--state", "all", "--reason", "archived", last];
        let (code, data, said) = told(&run(&cluster, folder, &held).await);
        assert!(code == 1 && data.is_empty() && said.contains("a replay is about to send"), "{last}: {said}");
    }
    assert_eq!(all(&cluster, LETTERS).await.len(), 19);
    slow.kill().unwrap();
    slow.wait().unwrap();
}
