//! What is in `ops` speaks of metrics that there are.

use std::collections::BTreeSet;
use std::path::Path;

use crate::endpoint::Endpoint;
use crate::process::{Process, until};
use crate::stage::{Stage, subscription};

fn read(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(name);
    std::fs::read_to_string(file).unwrap()
}

/// Every word in a text that is a name as our metrics have them.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_name = |word: &&str| word.starts_with("redrive_") || word.starts_with("messaging_");
    // Labels of the conventions.
    let labels = ["messaging_system", "messaging_destination_name", "messaging_consumer_group_name"];
    words.filter(is_name).filter(|word| !labels.contains(word)).collect()
}

/// The metrics of a page, by their names and the labels that each has.
fn served(page: &str) -> BTreeSet<&str> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_alerts_and_the_dashboard_use_metrics_that_are_served() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|_| 422);
    let config = format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, ""));
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_ready().await;
    stage.send("orders", "k", "v").await;
    until("a letter", || process.subscription("orders")["totals"]["letters"]["permanent"] == 1).await;
    let page = process.get("/metrics", "").1;
    let served = served(&page);
    let (alerts, dashboard) = (read("alerts.yml"), read("dashboard.json"));
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
    for (file, text) in [("alerts.yml", &alerts), ("dashboard.json", &dashboard)] {
        let used = names(text);
        assert!(used.len() > 10, "{file}: {used:?}");
        for name in used {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(served.contains(family), "{file} uses {name}, which is not served");
        }
    }
    // What is selected by a label is told by that label.
    for label in ["due=\"overdue\"", "state=\"taking-over\"", "class=", "error_type=", "reason=", "le="] {
        assert!(page.contains(label), "{label}");
    }
    process.stop().await;
}

#[test]
fn every_alert_says_what_it_is_about() {
    let alerts = read("alerts.yml");
    let each: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(each.len() > 10);
    for alert in each {
        for part in ["expr: ", "labels: {severity: ", "summary: "] {
            assert!(alert.contains(part), "{part} in {alert}");
        }
    }
}
