//! SIGHUP under load: other rules, nothing lost, nothing out of order; a bad file changes nothing.

use std::collections::BTreeMap;
use std::fs;

use crate::endpoint::Endpoint;
use crate::process::{Process, until};
use crate::stage::{Stage, subscription};

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_under_load_loses_and_reorders_nothing() {
    const RECORDS: usize = 2_000;
    const KEYS: usize = 20;
    let stage = Stage::new().await;
    stage.topic("orders", 2).await;
    // Every seventh fails at first, so that rules are asked all the time.
    let endpoint = Endpoint::new(|asked| {
        let number: usize = asked.body.parse().unwrap_or(0);
        if number.is_multiple_of(7) && asked.attempt == 1 { 500 } else { 200 }
    });
    let config = |concurrency: usize, policy: &str| {
        let more = format!(
            "concurrency = {concurrency}\nretry.transient = \"{policy}\"\nsurge-guard = \"off\"\n\
                     handler.http.bearer = \"secret-of-ours\"\nmask.headers = [\"token\"]"
        );
        format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, &more))
    };
    let process = Process::start(stage.folder.path(), &config(4, "list(10ms x3)")).await;
    process.until_ready().await;
    let sending = stage.send_many("orders", 0..RECORDS, KEYS);
    let reloading = async {
        for turn in 1..=6 {
            until("some more", || endpoint.count() > turn * RECORDS / 10).await;
            let bad = turn % 3 == 0;
            let good = config(turn * 3, &format!("list({turn}ms x3)"));
            fs::write(&process.file, if bad { good + "no-such-key = 1\n" } else { good }).unwrap();
            process.signal("HUP");
            let told = if bad { "not reloaded" } else { "reloaded file" };
            until(told, || {
                let log = process.log();
                let count = |what: &str| log.matches(what).count();
                count("not reloaded: ") == turn / 3 && count(" reloaded ") == turn - turn / 3
            })
            .await;
        }
    };
    tokio::join!(sending, reloading);
    until("all are handled", || process.subscription("orders")["totals"]["handled"] == RECORDS).await;
    assert!(process.log().contains("no-such-key"), "the place is told");
    assert_eq!(process.subscription("orders")["totals"]["letters"]["exhausted"], 0);
    process.stop().await;

    let mut by_key: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut first_tries = 0;
    for asked in endpoint.asked() {
        let number: usize = asked.body.parse().unwrap();
        first_tries += usize::from(asked.attempt == 1);
        if !(number.is_multiple_of(7) && asked.attempt == 1) {
            by_key.entry(number % KEYS).or_default().push(number);
        }
    }
    assert_eq!(first_tries, RECORDS, "each once");
    for (key, numbers) in by_key {
        assert_eq!(numbers, (0..RECORDS).filter(|n| n % KEYS == key).collect::<Vec<_>>(), "key {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_only_be_changed_by_a_restart_is_named_and_nothing_is_taken_over() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = Endpoint::new(|asked| if asked.body == "bad" { 500 } else { 200 });
    let one =
        |more: &str| format!("{}{}", stage.head(), subscription("orders", "billing", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &one("retry.transient = \"list(10ms x4)\"")).await;
    process.until_ready().await;
    let tried =
        ["order-by = \"none\"", "followers = \"bury\"", "delivery = \"exactly-once\"", "timeout = \"1s\""];
    for (index, fixed) in tried.iter().enumerate() {
        fs::write(&process.file, one(&format!("{fixed}\nretry.transient = \"never\""))).unwrap();
        process.signal("HUP");
        until(fixed, || process.log().matches("not reloaded").count() == index + 1).await;
        let key = fixed.split(' ').next().unwrap();
        assert!(process.log().contains(&format!("orders/billing: {key} differs")), "{}", process.log());
    }
    let two = one("") + &subscription("more", "g", &endpoint.url, "");
    fs::write(&process.file, two.replace("127.0.0.1:0", "127.0.0.1:1")).unwrap();
    process.signal("HUP");
    process.said("server differs").await;
    stage.send("orders", "k", "bad").await;
    until("a letter", || process.subscription("orders")["totals"]["letters"]["exhausted"] == 1).await;
    assert_eq!(endpoint.count(), 5, "by the policy that it started with");

    fs::write(&process.file, one("retry.transient = \"list(10ms)\"")).unwrap();
    process.signal("HUP");
    process.said("changed=\"orders/billing: retry\"").await;
    stage.send("orders", "k", "bad").await;
    until("a letter", || process.subscription("orders")["totals"]["letters"]["exhausted"] == 2).await;
    assert_eq!(endpoint.count(), 7, "by the new one");
    process.stop().await;
}
