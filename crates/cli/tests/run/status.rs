//! `redrive status` beside a process that runs: what that says of itself is told, too.

use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::process::{Process, redrive, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn what_the_process_says_of_itself_is_told_with_its_remedy() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|asked| if asked.body == "0" { 200 } else { 503 });
    let more = "retry.outage = \"exponential(50ms..100ms x2)\"";
    let config = format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &config).await;
    stage.send("orders", "a", "0").await;
    until("one is handled", || process.subscription("orders")["totals"]["handled"] == 1).await;
    stage.send("orders", "a", "1").await;
    until("blocked", || process.json("/readyz").1["reasons"][0]["kind"] == "blocked").await;

    // The same file, but for the port that was free and what was added since.
    let file = stage.folder.path().join("now.toml");
    let added = subscription("prices", "shop", &endpoint.url, "");
    stage.topic("prices", 1).await;
    let config = format!("{}{added}", config.replace("127.0.0.1:0", &process.address));
    std::fs::write(&file, config).unwrap();
    let (file, state) = (file.display().to_string(), stage.folder.path().display().to_string());
    let args = ["status", "-c", &file, "--state-folder", &state, "-o", "json"];
    let ran = redrive(&args);
    let seen: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let wrong = |kind: &str| {
        let mut all = seen["wrong"].as_array().unwrap().iter();
        all.find(|one| one["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {seen:#}")).clone()
    };
    assert_eq!((ran.status.code(), &seen["process"]["answers"]), (Some(0), &true.into()), "{seen:#}");
    let blocked = wrong("blocked");
    assert!(blocked["where"].as_str().unwrap().starts_with("orders/billing"), "{seen:#}");
    assert!(!blocked["remedy"].as_str().unwrap().is_empty(), "{seen:#}");
    assert_eq!(wrong("not-run")["where"], "prices/shop", "{seen:#}");
    let is_nobody = |one: &Value| one["kind"] == "nobody" && one["where"] == "orders/billing";
    assert!(!seen["wrong"].as_array().unwrap().iter().any(is_nobody), "{seen:#}");

    let impatient = [&args[..], &["--patience", "0s"]].concat();
    let is_behind = || {
        let seen: Value = serde_json::from_slice(&redrive(&impatient).stdout).unwrap();
        let mut all = seen["wrong"].as_array().unwrap().iter();
        all.any(|one| {
            one["kind"] == "behind" && one["what"].as_str().unwrap().starts_with("1 record is behind")
        })
    };
    until("the one that is handled is committed", is_behind).await;
    process.stop().await;
}
