//! `[traces]`: the process sends a span for each attempt, by the rules of the last reload, and the last ones when
//! it stops.

use std::fs;

use crate::endpoint::Endpoint;
use crate::process::{Process, done, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_has_a_span_the_last_ones_are_sent_at_the_end_and_a_reload_changes_rules_but_not_the_collector()
 {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|asked| if asked.attempt == 1 { 500 } else { 200 });
    let collector = Endpoint::new(|_| 200);
    let spans =
        |what: &str| collector.asked().iter().map(|asked| asked.body.matches(what).count()).sum::<usize>();
    let config = |traces: &str, more: &str| {
        let more = format!("retry.transient = \"list(10ms x3)\"\nretry.outage = \"list(10ms x3)\"\n{more}");
        let subscription = subscription("orders", "billing", &endpoint.url, &more);
        format!("{}\n[traces]\nendpoint = \"{}\"\n{traces}\n{subscription}", stage.head(), collector.url)
    };
    let process = Process::start(stage.folder.path(), &config("", "")).await;
    let meant = done(&["check", "-c", process.file.to_str().unwrap()]);
    assert!(meant.contains(&format!("a span of each attempt to {}: ", collector.url)), "{meant}");
    process.said(&format!("a span of each attempt to {}", collector.url)).await;
    process.until_ready().await;
    stage.send("orders", "k", "1").await;
    until("two spans", || spans("process orders") == 2).await;
    assert_eq!((spans("http.500"), spans("transient")), (1, 1));

    fs::write(&process.file, config("sample = 0.5", "")).unwrap();
    process.signal("HUP");
    process.said("traces differs").await;
    fs::write(&process.file, config("", "classify = [{ status = \"500\", class = \"outage\" }]")).unwrap();
    process.signal("HUP");
    process.said("changed=\"orders/billing: ").await;
    stage.send("orders", "k", "2").await;
    until("handled", || process.subscription("orders")["totals"]["handled"] == 2).await;
    assert_eq!(process.metric("redrive_spans_dropped_total", ""), 0.0);
    process.stop().await;
    assert_eq!((spans("process orders"), spans("transient"), spans("outage")), (4, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_is_told_once_and_counted() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|_| 200);
    // No system gives that port out.
    let nobody = "127.0.0.1:1";
    let subscription = subscription("orders", "billing", &endpoint.url, "");
    let config = format!("{}\n[traces]\nendpoint = \"http://{nobody}\"\n{subscription}", stage.head());
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_ready().await;
    stage.send_many("orders", 0..50, 5).await;
    until("handled", || process.subscription("orders")["totals"]["handled"] == 50).await;
    until("dropped", || process.metric("redrive_spans_dropped_total", "") == 50.0).await;
    assert_eq!(process.log().matches("spans are not sent").count(), 1, "{}", process.log());
    assert_eq!(process.json("/readyz").0, 200);
    process.stop().await;
}
