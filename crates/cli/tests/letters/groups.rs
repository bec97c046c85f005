//! Failure groups: what people say of them, and what becomes of them with their letters.

use std::path::Path;

use redrive::{Clock, Cluster, Outgoing, Publisher, Publishing};
use serde_json::Value;

use crate::ground::{LETTERS, cluster, put, run, told};

/// The only group there is.
async fn group(cluster: &Cluster, folder: &Path) -> Value {
    let (code, data, said) = told(&run(cluster, folder, &["dlq", "groups", "--all", "-o", "json"]).await);
    assert_eq!(code, 0, "{said}");
    let mut document: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(document["groups"].as_array().unwrap().len(), 1, "{data}");
    document["groups"][0].take()
}

/// One more letter of the same cause, now.
async fn one_more(cluster: &Cluster) {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    let letter = Outgoing::to(LETTERS.parse().unwrap())
        .partition(0)
        .key("late")
        .value("late")
        .header("redrive-origin", "orders/0/99")
        .header("redrive-group", "billing")
        .header("redrive-reason", "permanent")
        .header("redrive-error-type", "NoSuchCustomer")
        .header("redrive-error-message", "no such customer")
        .header("redrive-buried-at", Clock::system().now().wall.millis().to_string());
    publisher.publish(letter).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_group_is_muted_resolved_and_opened_and_regresses_when_it_is_seen_again() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 6).await;
    let first = group(&cluster, folder).await;
    let id = first["id"].as_str().unwrap();
    assert_eq!(first["state"], "ongoing");

    let mute = ["dlq", "groups", "mute", id, "--reason", "known"];
    let (code, data, said) = told(&run(&cluster, folder, &[&mute[..], &["--dry-run"]].concat()).await);
    assert_eq!((code, data), (0, format!("{id} would be muted, was ongoing\n")), "{said}");
    assert_eq!(group(&cluster, folder).await["state"], "ongoing");
    let (code, _, said) = told(&run(&cluster, folder, &mute[..4]).await);
    assert!(code == 2 && said.contains("--reason"), "{said}");
    let (code, data, said) = told(&run(&cluster, folder, &mute).await);
    assert_eq!((code, data), (0, format!("{id} is muted, was ongoing\n")), "{said}");
    let muted = group(&cluster, folder).await;
    assert_eq!((&muted["state"], &muted["said"]["why"]), (&"muted".into(), &"known".into()));

    let nobody = "f1-kz56nyes2xse";
    let open = ["dlq", "groups", "open", id, nobody, "--reason", "look again"];
    let (code, data, said) = told(&run(&cluster, folder, &open).await);
    assert!(code == 3 && data.contains("is open, was muted") && said.contains(nobody), "{data}{said}");
    assert_eq!(group(&cluster, folder).await["state"], "ongoing");
    let (code, _, said) =
        told(&run(&cluster, folder, &["dlq", "groups", "resolve", nobody, "--reason", "x"]).await);
    assert!(code == 4 && said.contains("help: "), "{said}");
    let resolve = ["dlq", "groups", "resolve", id, "--reason", "fixed in 1.4"];
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    let resolved = group(&cluster, folder).await;
    assert_eq!((&resolved["state"], &resolved["open"]), (&"resolved".into(), &6.into()));
    one_more(&cluster).await;
    assert_eq!(group(&cluster, folder).await["state"], "regressed");

    // The reason of letters still narrows the list.
    for (reason, code) in [("permanent", 0), ("expired", 4)] {
        assert_eq!(told(&run(&cluster, folder, &["dlq", "groups", "--reason", reason]).await).0, code);
    }
    let (_, data, _) = told(&run(&cluster, folder, &["journal", "-o", "ndjson"]).await);
    let entries: Vec<Value> = data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<_> = entries.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["group muted", "group open", "group resolved"], "a dry run is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_letters_are_all_resolved_is_so_itself_until_another_comes() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(&cluster, 6).await;
    let first = group(&cluster, folder).await;
    let id = first["id"].as_str().unwrap();
    let resolve = ["dlq", "resolve", "--group", id, "--reason", "booked by hand", "--yes"];
    assert_eq!(told(&run(&cluster, folder, &[&resolve[..], &["--key", "k1"]].concat()).await).0, 0);
    assert_eq!(group(&cluster, folder).await["state"], "ongoing", "others are left");
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    assert_eq!(group(&cluster, folder).await["state"], "resolved");
    one_more(&cluster).await;
    assert_eq!(group(&cluster, folder).await["state"], "regressed");
    assert_eq!(told(&run(&cluster, folder, &resolve).await).0, 0);
    assert_eq!(group(&cluster, folder).await["state"], "resolved");
    // Another machine, or an index that was built anew, comes to the same.
    let elsewhere = tempfile::tempdir().unwrap();
    let asked =
        ["dlq", "groups", "--all", "-o", "json", "--state-folder", elsewhere.path().to_str().unwrap()];
    let (_, data, _) = told(&run(&cluster, folder, &asked).await);
    assert!(data.contains("\"state\": \"resolved\""), "{data}");
}
