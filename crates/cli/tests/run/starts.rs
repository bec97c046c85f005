//! How a run begins: with nothing else there, or not at all.

use std::net::TcpListener;

use crate::endpoint::Endpoint;
use crate::process::{Process, done, redrive, until};
use crate::stage::{Stage, subscription};

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_broker_inside_nothing_else_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::new(|asked| match (asked.body.as_str(), asked.attempt) {
        ("flaky", 1) => 500,
        ("bad", _) => 422,
        ("early", 1) => 425,
        _ => 200,
    });
    let broker = free_address();
    let config = format!(
        "[kafka]\nbrokers = \"embedded\"\nlisten = \"{broker}\"\n[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n{}",
        subscription("orders", "billing", &endpoint.url, "retry.not-ready = \"list(200ms x3)\"")
    );
    let process = Process::start(folder.path(), &config).await;
    assert_eq!(process.json("/healthz").0, 200);
    let file = process.file.display().to_string();
    for value in ["good", "flaky", "bad", "early"] {
        done(&["send", "orders", "--key", value, "--value", value, "-c", &file]);
    }
    let of = "topic=\"orders\",group=\"billing\"";
    until("three are handled", || process.metric("redrive_handled_total", of) == 3.0).await;
    until("a letter", || process.metric("redrive_letters_total", "reason=\"permanent\"") == 1.0).await;
    assert_eq!(process.metric("redrive_attempts_total", of), 6.0);
    assert_eq!(process.metric("redrive_failures_total", "class=\"not-ready\""), 1.0);
    assert_eq!(process.metric("redrive_shelved_total", of), 1.0);
    assert_eq!(process.metric("redrive_lateness_seconds_count", of), 1.0);
    let consumed = "messaging_client_consumed_messages_total";
    assert_eq!(process.metric(consumed, "messaging_consumer_group_name=\"billing\""), 4.0);
    assert_eq!(process.metric("messaging_process_duration_seconds_count", "messaging_system=\"kafka\""), 6.0);
    assert_eq!(process.metric("redrive_build_info", "version=\""), 1.0);
    until("no lag", || process.metric("redrive_lag_records", of) == 0.0).await;
    let state = process.subscription("orders");
    assert_eq!((&state["ready"], &state["totals"]["letters"]["permanent"]), (&true.into(), &1.into()));
    let log = process.log();
    for decision in ["routed", "shelved", "buried"] {
        let event = log.lines().find(|line| line.contains(&format!("\"message\":\"{decision}\"")));
        let event: serde_json::Value =
            serde_json::from_str(event.unwrap_or_else(|| panic!("{log}"))).unwrap();
        assert_eq!(event["span"]["group"], "billing", "{event}");
    }
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anything_starts() {
    let stage = Stage::new().await;
    let file = stage.folder.path().join("redrive.toml");
    let refused = |config: &str, code: i32, said: &str| {
        std::fs::write(&file, config).unwrap();
        let output = redrive(&["run", "-c", &file.display().to_string()]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(said), "{told}");
        assert!(!told.contains("metrics at"), "{told}");
    };
    let one = subscription("orders", "billing", "http://127.0.0.1:1/", "");
    refused(&format!("{}{one}x = 1\n", stage.head()), 78, "x");
    refused(&stage.head(), 78, "no subscription");
    let nobody = one.replace("handler.http.url", "# handler.http.url");
    refused(&format!("{}{nobody}", stage.head()), 78, "handler");
    refused(&format!("{}{one}delay = \"ladder\"\norder-by = \"none\"\n", stage.head()), 78, "ladder");
    let open = stage.head().replace("127.0.0.1:0\"\n", "0.0.0.0:0\"\n");
    refused(&format!("{open}{one}"), 78, "token");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let busy = stage.head().replace("127.0.0.1:0\"\n", &format!("{address}\"\n"));
    refused(&format!("{busy}{one}"), 1, "server.listen");
    let embedded = format!(
        "[kafka]\nbrokers = \"embedded\"\nlisten = \"{address}\"\n[server]\nlisten = \"127.0.0.1:0\"\n"
    );
    refused(&format!("{embedded}{one}"), 1, "kafka.listen");
}
