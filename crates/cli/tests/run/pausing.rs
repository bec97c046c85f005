//! Pauses: on two instances, across a restart, until somebody resumes.

use std::time::Duration;

use redrive::Clock;

use crate::endpoint::Endpoint;
use crate::process::{Process, done, redrive, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_on_every_instance_and_across_restarts() {
    let stage = Stage::new().await;
    stage.topic("orders", 2).await;
    // What is not ready waits on the shelf, which has to wait, too.
    let endpoint = Endpoint::new(|asked| if asked.body == "0" && asked.attempt == 1 { 425 } else { 200 });
    let more = "name = \"bills\"\nretry.not-ready = \"list(15s x9)\"";
    let config = format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, more));
    let first = Process::start(stage.folder.path(), &config).await;
    first.until_assigned("orders").await;
    let second = Process::start_file(&first.file).await;
    second.until_assigned("orders").await;
    let file = first.file.display().to_string();
    stage.send("orders", "key-0", "0").await;
    until("it waits", || endpoint.count() == 1).await;

    let said = done(&["pause", "bills", "--reason", "the ledger moves", "--by", "ann", "-c", &file]);
    assert!(said.starts_with("orders/billing is paused by ann since "), "{said}");
    assert!(said.contains("the ledger moves"), "{said}");
    for instance in [&first, &second] {
        until("paused", || instance.subscription("orders")["paused"]["by"] == "ann").await;
        assert_eq!(instance.metric("redrive_paused", "topic=\"orders\""), 1.0);
        assert_eq!(instance.json("/readyz").0, 200, "somebody wants it so");
    }
    stage.send_many("orders", 1..50, 10).await;
    // Longer than what is shelved has to wait.
    Clock::system().sleep(Duration::from_secs(16)).await;
    assert_eq!(endpoint.count(), 1, "nothing starts");

    second.stop().await;
    let second = Process::start_file(&first.file).await;
    second.until_assigned("orders").await;
    assert_eq!(second.subscription("orders")["paused"]["reason"], "the ledger moves");
    first.stop().await;
    until("all partitions", || second.subscription("orders")["partitions"].as_array().unwrap().len() == 2)
        .await;
    Clock::system().sleep(Duration::from_secs(1)).await;
    assert_eq!(endpoint.count(), 1, "nothing starts after a restart, either");

    assert_eq!(done(&["resume", "orders/billing", "-c", &file]), "orders/billing goes on\n");
    until("all are handled", || second.subscription("orders")["totals"]["handled"] == 50).await;
    assert_eq!(second.subscription("orders")["paused"], serde_json::Value::Null);
    let mut seen: Vec<usize> = endpoint.asked().iter().map(|asked| asked.body.parse().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen.len(), 51, "each once, and the one that was early twice");
    assert_eq!(done(&["resume", "bills", "-c", &file]), "orders/billing was not paused\n");

    let none = redrive(&["pause", "orders/biling", "-c", &file]);
    assert_eq!(none.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&none.stderr).contains("did you mean orders/billing?"));
    second.stop().await;
}
