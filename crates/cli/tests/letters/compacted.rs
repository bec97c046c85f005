//! Letters in a compacted topic, as a worker writes them; and tombstones into compacted sources.

use std::collections::BTreeMap;
use std::process::Command;

use redrive::{Classed, Cluster, Outgoing, Publisher, Publishing, Received, Subscription, Worker};
use redrive_kafka::Admin;

use crate::ground::{LETTERS, all, run, told};
use crate::lanes::until;

async fn compacted(cluster: &Cluster, topic: &str) {
    let settings = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    let admin = Admin::new(cluster.settings()).unwrap();
    admin.create(&topic.parse().unwrap(), 2, 1, &settings).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_files_letters_under_their_origins_where_their_topic_is_compacted() {
    let (cluster, folder) = (Cluster::open("embedded").await.unwrap(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    cluster.create_topic("orders", 2).await.unwrap();
    compacted(&cluster, LETTERS).await;
    let subscription = Subscription::new("orders", "billing").auto_create(true).surge_guard("off");
    let orders = subscription.handler(|order: Received| async move {
        match order.text() {
            Some("mended") => Ok(()),
            _ => Err(Classed::permanent("no such customer")),
        }
    });
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let order = |n: i32| Outgoing::to("orders".parse().unwrap()).partition(0).value(n.to_string());
    for n in 0..3 {
        publisher.publish(order(n).key("k")).await.unwrap();
    }
    publisher.publish(order(3)).await.unwrap();
    until("letters", async || all(&cluster, LETTERS).await.len() == 4).await;
    let mut letters = all(&cluster, LETTERS).await;
    letters.sort_by(|one, other| one.key.cmp(&other.key));
    for (n, letter) in letters.iter().enumerate() {
        let origin = format!("orders/0/{n}");
        assert_eq!(letter.key.as_deref(), Some(origin.as_bytes()), "no letter removes another");
        let own = if n < 3 { Some("k") } else { None };
        assert_eq!((letter.headers.text("redrive-key"), letter.at.partition), (own, 0));
    }
    let (_, data, _) = told(&run(&cluster, folder, &["dlq", "list", "--key", "k", "-o", "ndjson"]).await);
    assert_eq!(data.lines().count(), 3, "found under the key that they had: {data}");

    // Sent back, it has its own key, or none.
    cluster.create_topic("again", 2).await.unwrap();
    let replay = ["dlq", "replay", "--all", "--to", "again", "--reason", "x", "--yes"];
    let (code, _, said) = told(&run(&cluster, folder, &replay).await);
    assert_eq!(code, 0, "{said}");
    let keys: Vec<_> = all(&cluster, "again").await.into_iter().map(|record| record.key).collect();
    assert_eq!(
        keys.iter().map(|key| key.as_deref()).collect::<Vec<_>>(),
        [Some(&b"k"[..]); 3].into_iter().chain([None]).collect::<Vec<_>>()
    );

    let file = folder.join("redrive.toml");
    let brokers = &cluster.settings().brokers;
    let config = format!(
        "[kafka]\nbrokers = \"{brokers}\"\n\n[[subscription]]\ntopic = \"orders\"\ngroup = \"billing\"\nhandler.http.url = \"http://127.0.0.1:9/\"\n"
    );
    std::fs::write(&file, config).unwrap();
    for command in [&["check"][..], &["topics", "plan"]] {
        let mut asked = Command::new(env!("CARGO_BIN_EXE_redrive"));
        asked.args(command).arg("-c").arg(&file);
        let output = tokio::task::spawn_blocking(move || asked.output().unwrap()).await.unwrap();
        let (_, data, said) = told(&output);
        assert!(
            format!("{data}{said}").contains("cleanup.policy=compact: letters are filed"),
            "{command:?} {data}{said}"
        );
    }
    let day = redrive::Clock::system().now().wall;
    let day = jiff::Timestamp::from_millisecond(day.millis()).unwrap().to_string();
    let resolve = ["dlq", "resolve", "--day", &day[..10], "--state", "all", "--reason", "done", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder, &resolve).await);
    assert_eq!((code, data.as_str()), (0, "4 letters resolved, 4 with a tombstone\n"), "{said}");
    let tombstones = all(&cluster, LETTERS).await.into_iter().filter(|record| record.value.is_none()).count();
    assert_eq!(tombstones, 4);
    let (code, _, _) = told(&run(&cluster, folder, &["dlq", "list", "--state", "all"]).await);
    assert_eq!(code, 4, "Kafka lets them go");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tombstones_go_into_a_compacted_source_only_when_asked_for_and_never_over_a_later_record() {
    let (cluster, folder) = (crate::ground::cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    compacted(&cluster, "prices").await;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for key in ["a", "b", "a", "c"] {
        let price = Outgoing::to("prices".parse().unwrap()).partition(0).key(key).value("1");
        publisher.publish(price).await.unwrap();
    }
    for origin in ["prices/0/0", "prices/0/1", "prices/0/77", "orders/0/1"] {
        let letter = Outgoing::to(LETTERS.parse().unwrap())
            .partition(0)
            .key("x")
            .value("1")
            .header("redrive-origin", origin)
            .header("redrive-group", "billing")
            .header("redrive-reason", "permanent")
            .header("redrive-buried-at", "1700000000000");
        publisher.publish(letter).await.unwrap();
    }
    let resolve = ["dlq", "resolve", "--all", "--tombstone-source", "--reason", "closed"];
    let (code, data, said) = told(&run(&cluster, folder, &[&resolve[..], &["--dry-run"]].concat()).await);
    assert!(code == 0 && said.contains("warning: 1 tombstone goes into prices"), "{data}{said}");
    assert!(said.contains("a later record of their topic has their key"), "{said}");
    assert!(said.contains("gone from their topic") && said.contains("not compacted"), "{said}");
    assert_eq!(all(&cluster, "prices").await.len(), 4);
    let (code, data, said) = told(&run(&cluster, folder, &[&resolve[..], &["--yes"]].concat()).await);
    assert!(code == 0 && data.contains("1 tombstone written to their sources"), "{data}{said}");
    let last = all(&cluster, "prices").await.pop().unwrap();
    assert_eq!((last.key.as_deref(), last.value.is_none(), last.at.partition), (Some(&b"b"[..]), true, 0));
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    assert!(data.contains("\"source-tombstones\":1"), "{data}");
}
