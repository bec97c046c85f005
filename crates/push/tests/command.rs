//! A program as a handler: answers in any order, crashes, noise, and its end.

mod ground;

use std::path::{Path, PathBuf};

use ground::{header, outgoing, publish, run, send, stage, until, until_status};
use redrive_testkit::python;

const QUICK: &str = "retry.transient = \"list(20ms x1)\"\nretry.outage = \"exponential(50ms..100ms x2)\"\n\
                     retry.not-ready = \"list(50ms x1)\"\nsurge-guard = \"off\"\n";

fn keys(notes: &Path, more: &str) -> String {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ground/program.py");
    format!(
        "handler.command = {{ argv = [\"python3\", \"{program}\", \"{}\"]{more} }}\n{QUICK}",
        notes.display()
    )
}

fn notes() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    (folder, notes)
}

fn read(notes: &Path) -> Vec<(String, u32)> {
    let text = std::fs::read_to_string(notes).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(what, pid)| (what.to_owned(), pid.parse().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_come_in_any_order_and_noise_is_harmless() {
    if !python::is_there() {
        return;
    }
    let (_folder, notes) = notes();
    let stage = stage().await;
    send(&stage, &["slow", "bad", "noise", "early", "plain"]).await;
    publish(&stage, outgoing(None, Some(b"\xff\x00"), &[("h", Some(b"\xfe"))])).await;
    publish(&stage, outgoing(None, None, &[])).await;
    for number in 0..100 {
        stage.send("orders", &number.to_string(), "slow").await.unwrap();
    }
    let running = run(&stage, &keys(&notes, "")).await;
    // One after the other, the slow ones alone would take fifty seconds: longer than anything is waited for.
    until_status(&running, "done", |status| status.counts.handled == 106 && status.counts.buried == 1).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    assert_eq!(header(&letters[0], "redrive-error-type"), "no-stock");
    assert_eq!(header(&letters[0], "redrive-handler"), "command python3");
    redrive_push::stopped().await;
    let notes = read(&notes);
    assert_eq!(notes.iter().filter(|(what, _)| what == "start").count(), 1, "{notes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_is_an_outage_for_what_was_in_hand_and_the_program_comes_back() {
    if !python::is_there() {
        return;
    }
    let (_folder, notes) = notes();
    let stage = stage().await;
    let running = run(&stage, &keys(&notes, "")).await;
    // The first has no answer as long as the program lives, so it is in hand when that ends.
    send(&stage, &["hang", "crash", "one", "two", "three"]).await;
    let status = until_status(&running, "all handled", |status| status.counts.handled == 5).await;
    assert_eq!(status.counts.buried, 0);
    // What was in hand with the one that crashed was tried again, too.
    assert!(status.counts.attempts >= 7, "{status:?}");
    running.stop().await.unwrap();
    let starts: Vec<_> = read(&notes).into_iter().filter(|(what, _)| what == "start").collect();
    assert_eq!(starts.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_an_answer_times_out_and_the_late_answer_is_nobodys() {
    if !python::is_there() {
        return;
    }
    let (_folder, notes) = notes();
    let stage = stage().await;
    // Long enough for the program to start.
    let running = run(&stage, &format!("timeout = \"4s\"\n{}", keys(&notes, ""))).await;
    send(&stage, &["hang", "one"]).await;
    let status = until_status(&running, "all handled", |status| status.counts.handled == 2).await;
    assert_eq!((status.counts.buried, read(&notes).len()), (0, 1));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_ended_and_started_again() {
    if !python::is_there() {
        return;
    }
    let (_folder, notes) = notes();
    let stage = stage().await;
    let keys = keys(&notes, ", env = { DEAF = \"1\" }");
    // Three of them have to pass before it counts as hung, and the next one starts and answers within as many.
    let running = run(&stage, &format!("timeout = \"2s\"\nretry-timeout = \"2s\"\n{keys}")).await;
    send(&stage, &["one"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 1 && status.counts.buried == 0).await;
    running.stop().await.unwrap();
    let starts: Vec<_> = read(&notes).into_iter().filter(|(what, _)| what == "start").collect();
    assert_eq!(starts.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_ends_with_the_worker_and_a_stubborn_one_is_made_to() {
    if !python::is_there() {
        return;
    }
    // The stubborn one notes that it was asked: it has the time for that on a machine that is busy.
    for more in ["", ", env = { STUBBORN = \"1\" }, stop-timeout = \"5s\""] {
        let (_folder, notes) = notes();
        let stage = stage().await;
        let running = run(&stage, &keys(&notes, more)).await;
        send(&stage, &["one"]).await;
        until_status(&running, "handled", |status| status.counts.handled == 1).await;
        let pid = read(&notes)[0].1;
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        running.stop().await.unwrap();
        redrive_push::stopped().await;
        until("the program is gone", || !Path::new(&format!("/proc/{pid}")).exists()).await;
        assert!(read(&notes).iter().any(|(what, _)| what != "start"), "it was asked first");
    }
}

#[test]
fn a_program_that_is_not_there_is_refused_before_anything_runs() {
    for (argv, told) in [
        ("argv = [\"no-such-program\"]", "there is no program"),
        ("argv = [\"/no/such/program\"]", "there is no program"),
        ("argv = [\"sh\"], directory = \"/no/such/folder\"", "there is no folder"),
    ] {
        let configured = ground::configured(&format!("handler.command = {{ {argv} }}"));
        let error = redrive_push::handled(&configured).err().unwrap().to_string();
        assert!(error.contains(told), "{error}");
    }
}
