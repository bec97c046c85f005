//! What is kept of a person on shelves, erased with the letters.

use redrive::{Classed, Cluster, Outgoing, Publisher, Publishing, Received, Running, Subscription, Worker};

use crate::ground::{LETTERS, all, cluster, put, run, told};
use crate::lanes::until;

/// A worker to which nothing is ready, ever.
async fn working(cluster: &Cluster) -> Running {
    let subscription = Subscription::new("orders", "billing").auto_create(true).surge_guard("off");
    let orders = subscription
        .followers("hold")
        .handler(|_: Received| async move { Err(Classed::not_ready("no such customer yet")) });
    Worker::new(cluster).subscribe(orders).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_under_a_key_becomes_letters_and_is_erased_and_what_kafka_keeps_is_told() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    let running = working(&cluster).await;
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for key in ["ann", "bob", "ann"] {
        let order = Outgoing::to("orders".parse().unwrap()).partition(0).key(key).value("1");
        publisher.publish(order).await.unwrap();
    }
    let waits = async |key: &str| {
        let list =
            ["delayed", "list", "--topic", "orders", "--group", "billing", "--key", key, "-o", "ndjson"];
        told(&run(&cluster, folder, &list).await).1.lines().count()
    };
    until("they wait", async || waits("ann").await == 2 && waits("bob").await == 1).await;
    let erase = ["dlq", "erase", "--key", "ann", "--reason", "asked by mail"];
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--dry-run"]].concat()).await);
    assert!(code == 0 && said.contains("2 records wait on orders.billing.shelf: cancelled"), "{said}");
    assert_eq!(waits("ann").await, 2, "a dry run changes nothing");
    running.stop().await.unwrap();
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 3 && said.contains("no worker has answered"), "{code} {said}");
    assert!(said.contains("2 records of that key wait on orders.billing.shelf"), "{said}");

    let running = working(&cluster).await;
    let are_letters = async || all(&cluster, LETTERS).await.len() == 2 && waits("ann").await == 0;
    until("they are letters, and nothing else", are_letters).await;
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(
        code == 0 && said.contains("2 letters of that key") && said.contains("2 deleted below"),
        "{said}"
    );
    assert!(said.contains("note: orders has what was produced under that key, until"), "{said}");
    assert!(all(&cluster, LETTERS).await.is_empty());

    // With a worker it is done at once, and another's record waits on.
    publisher
        .publish(Outgoing::to("orders".parse().unwrap()).partition(0).key("ann").value("2"))
        .await
        .unwrap();
    until("it waits", async || waits("ann").await == 1).await;
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 0 && said.contains("0 letters and 1 waiting record of that key"), "{code} {said}");
    assert!(said.contains("1 deleted below"), "{said}");
    assert!(all(&cluster, LETTERS).await.is_empty());
    assert_eq!((waits("ann").await, waits("bob").await), (0, 1));
    // The lane that its letter closed is open: what comes is tried, and waits for its time.
    publisher
        .publish(Outgoing::to("orders".parse().unwrap()).partition(0).key("ann").value("3"))
        .await
        .unwrap();
    let tried = async || {
        let list =
            ["delayed", "list", "--topic", "orders", "--group", "billing", "--key", "ann", "-o", "ndjson"];
        let (_, data, _) = told(&run(&cluster, folder, &list).await);
        data.contains("\"standing\":\"first\"") && !data.contains("\"attempts\":0")
    };
    until("it is tried", tried).await;
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    assert!(!data.contains("ann\""), "the key itself is nowhere: {data}");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_erased_from_among_others_by_writing_those_again_if_that_is_asked_for() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 20).await;
    let erase = ["dlq", "erase", "--key", "k7", "--reason", "asked by mail"];
    // The letters of a partition are k9, k7, .. k1, k9, k7, ..
    let below = format!("{LETTERS}/1/7");
    let (code, _, said) = told(&run(&cluster, folder, &[&erase[..], &["--yes"]].concat()).await);
    assert!(code == 3 && said.contains(&format!("{LETTERS}/1/6 stays, until 20")), "{code} {said}");
    assert!(said.contains("help: --rewrite writes those that lie before them again"), "{said}");
    assert_eq!(all(&cluster, LETTERS).await.len(), 20, "nothing is moved by accident");
    let list = ["dlq", "list", "--state", "all", "--limit", "50", "-o", "ndjson"];
    let fresh = tempfile::tempdir().unwrap();
    for folder in [folder, fresh.path()] {
        let (_, data, _) = told(&run(&cluster, folder, &list).await);
        assert!(data.lines().count() == 18 && !data.contains("\"k7\""), "{data}");
        let (code, data, said) =
            told(&run(&cluster, folder, &["dlq", "show", &format!("{LETTERS}/1/6")]).await);
        assert!(code == 4 && data.is_empty() && said.contains("erased"), "{code} {said}");
    }

    let resolve = ["dlq", "resolve", "--key", "k5", "--reason", "by hand", "--yes"];
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    let rewrite = [&erase[..], &["--rewrite"]].concat();
    let (code, _, said) = told(&run(&cluster, folder, &[&rewrite[..], &["--dry-run"]].concat()).await);
    let would = format!("2 would be deleted below {below}, after 5 other letters would be written again");
    assert!(
        code == 0 && said.contains("2 letters of that key erased before") && said.contains(&would),
        "{said}"
    );
    assert_eq!(all(&cluster, LETTERS).await.len(), 20, "a dry run does nothing");
    let (code, _, said) = told(&run(&cluster, folder, &[&rewrite[..], &["--yes"]].concat()).await);
    assert!(code == 0 && said.contains(&format!("2 deleted below {below}, after 5")), "{code} {said}");
    let left = all(&cluster, LETTERS).await;
    assert!(left.len() == 18 && left.iter().all(|record| record.key.as_deref() != Some(b"k7")), "{left:?}");
    for folder in [folder, fresh.path()] {
        let (_, data, _) = told(&run(&cluster, folder, &list).await);
        let resolved = data.lines().filter(|line| line.contains("\"resolved\""));
        assert!(data.lines().count() == 18 && resolved.clone().count() == 2, "{data}");
        assert!(resolved.clone().all(|line| line.contains("\"k5\"")), "{data}");
    }
    let (code, _, said) = told(&run(&cluster, folder, &[&rewrite[..], &["--yes"]].concat()).await);
    assert!(code == 4 && said.contains("nothing is kept under that key"), "{code} {said}");
    let (code, _, said) = told(&run(&cluster, folder, &["dlq", "erase", "--resume", "--reason", "x"]).await);
    assert!(code == 4 && said.contains("no erasure is left"), "{code} {said}");
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    assert!(
        data.contains("\"moved\":5") && data.contains("key-sha256=") && !data.contains("\"k7\""),
        "{data}"
    );
}
