//! Readiness with its reasons, and who may ask for what.

use crate::endpoint::Endpoint;
use crate::process::{Process, done, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_makes_one_subscription_unready_until_it_is_there_and_no_other() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    stage.topic("prices", 1).await;
    let endpoint = Endpoint::new(|_| 200);
    let config = format!(
        "{}{}{}",
        stage.head(),
        subscription("orders", "billing", &endpoint.url, "").replace("auto-create = true", ""),
        subscription("prices", "shop", &endpoint.url, ""),
    );
    let process = Process::start(stage.folder.path(), &config).await;
    until("a reason", || process.json("/readyz").1["reasons"][0]["kind"] == "topics").await;
    let (status, body) = process.json("/readyz");
    assert_eq!((status, &body["ready"]), (503, &false.into()), "{body}");
    let reason = &body["reasons"][0];
    assert_eq!((&reason["topic"], &reason["group"]), (&"orders".into(), &"billing".into()), "{body}");
    assert!(reason["what"].as_str().unwrap().contains("orders.billing.dlq does not exist"), "{body}");
    assert!(reason["remedy"].as_str().unwrap().contains("redrive topics apply"), "{body}");
    assert_eq!(process.json("/healthz").0, 200);
    assert_eq!(process.metric("redrive_failed", "topic=\"orders\""), 1.0);

    stage.send("prices", "k", "v").await;
    until("the other one works", || process.subscription("prices")["totals"]["handled"] == 1).await;
    assert_eq!(process.subscription("orders")["state"], "failed");

    let file = process.file.display().to_string();
    done(&["topics", "apply", "--yes", "-c", &file]);
    process.until_ready().await;
    stage.send("orders", "k", "v").await;
    until("this one works, too", || process.subscription("orders")["totals"]["handled"] == 1).await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_a_reason_until_it_is_over() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let (up, is_up) =
        (std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)), std::sync::atomic::Ordering::SeqCst);
    let endpoint = Endpoint::new({
        let up = up.clone();
        move |_| if up.load(is_up) { 200 } else { 503 }
    });
    let more = "retry.outage = \"exponential(50ms..100ms x2)\"";
    let config = format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &config).await;
    stage.send_many("orders", 0..20, 20).await;
    until("blocked", || process.json("/readyz").1["reasons"][0]["kind"] == "blocked").await;
    assert_eq!(process.metric("redrive_blocked", "topic=\"orders\""), 1.0);
    up.store(true, is_up);
    process.until_ready().await;
    until("all are handled", || process.subscription("orders")["totals"]["handled"] == 20).await;
    assert_eq!(process.metric("redrive_blocked", "topic=\"orders\""), 0.0);
    let log = process.log();
    assert!(log.contains("blocked") && log.contains("opened"), "{log}");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_token_learns_only_whether_it_is_ready() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|_| 200);
    let head = stage
        .head()
        .replace("listen = \"127.0.0.1:0\"", "listen = \"0.0.0.0:0\"\ntoken = \"a-secret-token\"");
    let url = endpoint.url.replace("http://", "http://me:hunter2@");
    let more = "handler.http.headers = { x-api-key = \"hunter2\" }";
    let config = format!(
        "{head}[log]\nlevel = \"debug\"\n{}",
        subscription("orders", "billing", &url, more).replace("auto-create = true", "")
    );
    let mut process = Process::start(stage.folder.path(), &config).await;
    process.address = process.address.replace("0.0.0.0", "127.0.0.1");
    until("not ready", || {
        process.get("/readyz", "authorization: Bearer a-secret-token\r\n").1.contains("dlq")
    })
    .await;
    assert_eq!(process.get("/readyz", ""), (503, "{\"ready\":false}\n".to_owned()));
    assert_eq!(process.get("/healthz", "").0, 200);
    for path in ["/metrics", "/api/v1/subscriptions", "/api/v1/subscriptions/orders/billing"] {
        for wrong in
            ["", "authorization: Bearer a-secret-toke\r\n", "authorization: Basic a-secret-token\r\n"]
        {
            let (status, body) = process.get(path, wrong);
            assert_eq!(status, 401, "{body}");
            assert!(body.contains("\"status\":401"), "{body}");
        }
        let (status, body) = process.get(path, "authorization: Bearer a-secret-token\r\n");
        assert!(status == 200 && !body.contains("hunter2"), "{body}");
    }
    let (status, body) =
        process.get("/api/v1/subscriptions/orders/other", "authorization: Bearer a-secret-token\r\n");
    assert_eq!((status, body.contains("problem") || body.contains("\"status\":404")), (404, true));
    let log = process.log();
    assert!(!log.contains("a-secret-token") && !log.contains("hunter2"), "{log}");
    process.stop().await;
}
