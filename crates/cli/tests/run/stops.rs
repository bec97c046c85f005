//! How a run ends: what runs may end, or nobody waits for it.

use std::thread;
use std::time::Duration;

use redrive::Clock;

use crate::endpoint::Endpoint;
use crate::process::{Process, until};
use crate::stage::{Stage, subscription};

#[allow(clippy::disallowed_methods, reason = "an endpoint that takes its time")]
fn slow(wait: Duration) -> Endpoint {
    Endpoint::new(move |_| {
        thread::sleep(wait);
        200
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_may_end_and_is_not_run_again_by_the_next() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = slow(Duration::from_millis(700));
    let config = format!("{}{}", stage.head(), subscription("orders", "g", &endpoint.url, ""));
    for round in 1..=3 {
        let process = Process::start(stage.folder.path(), &config).await;
        process.until_assigned("orders").await;
        stage.send_many("orders", 0..5, 5).await;
        until("they run", || endpoint.count() == 5 * round).await;
        process.stop().await;
    }
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_assigned("orders").await;
    stage.send("orders", "k", "last").await;
    until("the last", || endpoint.count() > 15).await;
    assert_eq!(endpoint.asked().iter().filter(|asked| asked.body != "last").count(), 15);
    assert_eq!(endpoint.asked()[15].offset, 15);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_ends_at_once() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = slow(Duration::from_secs(120));
    let more = "drain-timeout = \"100s\"";
    let config = format!("{}{}", stage.head(), subscription("orders", "g", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_assigned("orders").await;
    stage.send("orders", "k", "v").await;
    until("it runs", || endpoint.count() == 1).await;
    process.signal("INT");
    process.said("a second Ctrl-C ends at once").await;
    process.signal("INT");
    assert_eq!(process.ended().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_never_ends_is_waited_for_no_longer_than_the_file_says() {
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    let endpoint = slow(Duration::from_secs(120));
    let more = "drain-timeout = \"500ms\"";
    let config = format!("{}{}", stage.head(), subscription("orders", "g", &endpoint.url, more));
    let process = Process::start(stage.folder.path(), &config).await;
    process.until_assigned("orders").await;
    stage.send("orders", "k", "v").await;
    until("it runs", || endpoint.count() == 1).await;
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_stops_in_time_while_its_group_waits_for_another_that_is_gone() {
    let stage = Stage::new().await;
    stage.topic("orders", 4).await;
    let endpoint = Endpoint::new(|_| 200);
    // The group waits for so long for a member that was killed: longer than a stop may take.
    let head = stage.head().replace(
        "\n\n[server]",
        "\nproperties = { \"session.timeout.ms\" = \"45000\", \"heartbeat.interval.ms\" = \"300\" }\n\n[server]",
    );
    let more = "drain-timeout = \"1s\"";
    let config = format!("{head}{}", subscription("orders", "g", &endpoint.url, more));
    let killed = Process::start(stage.folder.path(), &config).await;
    killed.until_assigned("orders").await;
    let second = Process::start(stage.folder.path(), &config).await;
    second.until_assigned("orders").await;
    stage.send_many("orders", 0..100, 20).await;
    until("all are handled", || endpoint.count() >= 100).await;
    drop(killed);
    let third = Process::start(stage.folder.path(), &config).await;
    let clock = Clock::system();
    // The third joins, and the second hears of it with a heartbeat.
    clock.sleep(Duration::from_secs(4)).await;
    let began = clock.now().steady;
    second.stop().await;
    // What it may take by the file, and 20 s beside.
    assert!(clock.now().steady - began < Duration::from_secs(15), "{:?}", clock.now().steady - began);
    drop(third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_handles_records_is_told_to_end_and_waited_for() {
    const PROGRAM: &str = "import json, sys
for line in sys.stdin:
    print(json.dumps({'call': json.loads(line)['call']}), flush=True)
open('ended', 'w').write('its input came to its end')
";
    let stage = Stage::new().await;
    stage.topic("orders", 1).await;
    std::fs::write(stage.folder.path().join("handler.py"), PROGRAM).unwrap();
    let folder = stage.folder.path().display();
    // SIGTERM would end it before it wrote anything.
    let command = "trap '' TERM; exec python3 handler.py";
    let more = format!(
        "handler.command = {{ argv = [\"sh\", \"-c\", \"{command}\"], directory = \"{folder}\", stop-timeout = \"30s\" }}\n"
    );
    let one = subscription("orders", "g", "", &more).replace("handler.http.url = \"\"\n", "");
    let process = Process::start(stage.folder.path(), &format!("{}{one}", stage.head())).await;
    process.until_assigned("orders").await;
    stage.send_many("orders", 0..20, 5).await;
    until("all are handled", || process.subscription("orders")["totals"]["handled"] == 20).await;
    process.stop().await;
    assert!(stage.folder.path().join("ended").exists());
}
