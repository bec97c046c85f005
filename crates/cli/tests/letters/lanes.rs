//! Letters of closed lanes, with a worker that runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::{Classed, Clock, Cluster, Outgoing, Publisher, Publishing, Received, Subscription, Worker};

use crate::ground::{LETTERS, all, cluster, run, told};

async fn send(cluster: &Cluster, numbers: std::ops::Range<usize>) {
    let publisher = Publisher::new(cluster.settings(), &Publishing::default()).unwrap();
    for n in numbers {
        let key = format!("k{}", n % 2);
        let order =
            Outgoing::to("orders".parse().unwrap()).partition(0).key(key.clone()).value(format!("{key} {n}"));
        publisher.publish(order).await.unwrap();
    }
}

pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now().steady + Duration::from_secs(30);
    while !is_so().await {
        assert!(clock.now().steady < deadline, "not in time: {what}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

fn subscription(followers: &str, mended: Arc<AtomicBool>, seen: Arc<Mutex<Vec<String>>>) -> Subscription {
    Subscription::new("orders", "billing").auto_create(true).surge_guard("off").followers(followers).handler(
        move |order: Received| {
            let (mended, seen) = (mended.clone(), seen.clone());
            async move {
                let text = order.text().unwrap_or("-").to_owned();
                if text == "k1 1" && !mended.load(Ordering::SeqCst) {
                    return Err(Classed::permanent("no such customer"));
                }
                seen.lock().unwrap().push(text);
                Ok(())
            }
        },
    )
}

fn of_k1(seen: &Mutex<Vec<String>>) -> Vec<String> {
    seen.lock().unwrap().iter().filter(|text| text.starts_with("k1")).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_sent_back_with_the_letters_that_followed_it_and_the_lane_is_open_behind_them() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("bury", mended.clone(), seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..10).await;
    until("letters", async || all(&cluster, LETTERS).await.len() == 5).await;
    let closed = "one lane, however many letters close it";
    until(closed, async || {
        let (_, _, said) =
            told(&run(&cluster, folder.path(), &["delayed", "list", "--topic", "orders"]).await);
        said.contains("1 lane is closed")
    })
    .await;
    let status = running.statuses()[0].clone();
    until(closed, async || status.borrow().shelf.lanes_closed == 1).await;
    mended.store(true, Ordering::SeqCst);

    let (leader, follower) = (format!("{LETTERS}/0/0"), format!("{LETTERS}/0/1"));
    // A selection holds each letter once, however often it is named.
    let asked = ["dlq", "replay", &leader, &follower, &leader, "--dry-run"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
    assert!(code == 0 && data.starts_with("5 letters would be sent"), "{data}{said}");
    let asked = ["dlq", "replay", &leader, &follower];
    let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
    assert!(!said.contains("has changed"), "{said}");
    assert!(said.contains("4 followers after their leaders") && said.contains("1 lane is held"), "{said}");
    assert!(code == 0 && data.contains("5 sent, 5 succeeded"), "{data}{said}");
    let (_, data, _) = told(&run(&cluster, folder.path(), &["dlq", "groups", "--all", "-o", "json"]).await);
    let resolved = data.matches("\"state\": \"resolved\"").count();
    assert_eq!(resolved, data.matches("\"id\"").count(), "the causes of letters that succeeded: {data}");
    send(&cluster, 10..12).await;
    let wanted: Vec<String> = (1..12).step_by(2).map(|n| format!("k1 {n}")).collect();
    until("the lane is open", async || of_k1(&seen).len() == 6).await;
    assert_eq!(of_k1(&seen), wanted, "in order");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_behind_a_letter_that_is_resolved_is_handled() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("hold", mended, seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..10).await;
    until("a letter", async || all(&cluster, LETTERS).await.len() == 1).await;
    until("the others", async || seen.lock().unwrap().len() == 5).await;
    assert!(of_k1(&seen).is_empty());
    let resolve = ["dlq", "resolve", "--all", "--reason", "booked by hand", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &resolve).await);
    assert!(
        code == 0 && data.contains("1 letter resolved") && said.contains("lane of orders/0/1"),
        "{data}{said}"
    );
    until("the followers", async || of_k1(&seen).len() == 4).await;
    assert_eq!(of_k1(&seen), ["k1 3", "k1 5", "k1 7", "k1 9"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_behind_a_letter_becomes_letters_if_that_is_wanted_and_the_lane_is_open_behind_them() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("hold", mended, seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..10).await;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.buried == 1 && status.shelf.waiting == 4).await.unwrap();
    let resolve = ["dlq", "resolve", "--all", "--bury-followers", "--reason", "booked by hand", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &resolve).await);
    assert!(code == 0 && data.contains("1 letter resolved"), "{data}{said}");
    until("letters", async || all(&cluster, LETTERS).await.len() == 5).await;
    send(&cluster, 10..12).await;
    until("the lane is open", async || of_k1(&seen).len() == 1).await;
    assert_eq!(of_k1(&seen), ["k1 11"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_another_letter_closes_is_not_told_as_open() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let running =
        Worker::new(&cluster).subscribe(subscription("hold", mended, seen.clone())).start().await.unwrap();
    send(&cluster, 0..6).await;
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.buried == 1 && status.shelf.waiting == 2).await.unwrap();
    let (code, data, said) = told(&run(&cluster, folder.path(), &["delayed", "cancel", "orders/0/3"]).await);
    assert_eq!(code, 0, "{data}{said}");
    until("both letters close it", async || {
        let list = ["delayed", "list", "--topic", "orders", "--count", "-o", "json"];
        told(&run(&cluster, folder.path(), &list).await).1.matches("\"letter\"").count() == 2
    })
    .await;
    let (code, data, said) = told(&run(&cluster, folder.path(), &["delayed", "resolve", "orders/0/1"]).await);
    assert!(code == 0 && data.contains("still closed by orders/0/3"), "{data}{said}");
    let (code, data, said) = told(&run(&cluster, folder.path(), &["delayed", "resolve", "orders/0/3"]).await);
    assert!(code == 0 && data.contains("the lane is open"), "{data}{said}");
    until("it is", async || of_k1(&seen) == ["k1 5"]).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_stay_where_they_are_while_no_worker_holds_the_lane_of_their_leader() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("bury", mended.clone(), seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..10).await;
    until("letters", async || all(&cluster, LETTERS).await.len() == 5).await;
    running.stop().await.unwrap();

    let replay = ["dlq", "replay", "--all", "--reason", "mended", "--yes"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &replay).await);
    assert!(said.contains("left out with its followers: no worker has answered"), "{said}");
    assert!(code == 4 && data.is_empty(), "nothing of them is sent: {code} {data}{said}");

    mended.store(true, Ordering::SeqCst);
    let orders = subscription("bury", mended, seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 10..12).await;
    until("the lane is not held", async || of_k1(&seen) == ["k1 11"]).await;
    let (code, data, said) = told(&run(&cluster, folder.path(), &replay).await);
    assert!(code == 0 && data.contains("5 sent, 5 succeeded"), "{data}{said}");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_is_not_sent_back_while_its_leader_is_a_letter_unless_it_is_asked_for() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("bury", mended.clone(), seen.clone());
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..10).await;
    until("letters", async || all(&cluster, LETTERS).await.len() == 5).await;
    mended.store(true, Ordering::SeqCst);
    let (leader, follower) = (format!("{LETTERS}/0/0"), format!("{LETTERS}/0/1"));
    for last in [&["--dry-run"][..], &[], &["--to", "origin"]] {
        let asked = [&["dlq", "replay", follower.as_str()][..], last].concat();
        let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
        let told = format!("{data}{said}");
        assert!(code == 4 && told.contains("1 letter left out: the letters that they followed"), "{told}");
        assert!(told.contains(&format!("redrive dlq replay {leader} sends it")), "{told}");
    }
    assert_eq!(all(&cluster, LETTERS).await.len(), 5, "no replay is spent on it");
    // Nor ahead of a leader that is left out itself.
    let asked = ["dlq", "replay", "--all", "--max-replays", "1", "--why", "follower", "--dry-run"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
    assert!(code == 4 && data.starts_with("4 letters left out"), "{data}{said}");
    let asked = ["dlq", "replay", &follower, "--ahead"];
    let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
    assert!(said.contains("warning: 1 letter ahead of the letter"), "{said}");
    assert!(
        code == 3 && data.contains("1 sent, 0 succeeded, 1 failed again, 0 waiting"),
        "it is a letter again: {data}{said}"
    );
    let asked = ["dlq", "replay", &leader];
    let (code, data, said) = told(&run(&cluster, folder.path(), &asked).await);
    assert!(code == 0 && data.contains("5 sent, 5 succeeded"), "{data}{said}");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn why_letters_failed_again_and_where_they_are_is_shown_with_the_job() {
    let (cluster, folder) = (cluster().await, tempfile::tempdir().unwrap());
    let (mended, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let orders = subscription("pass", mended, seen);
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    send(&cluster, 0..2).await;
    until("a letter", async || all(&cluster, LETTERS).await.len() == 1).await;
    let one = format!("{LETTERS}/0/0");
    let (code, data, said) = told(&run(&cluster, folder.path(), &["dlq", "replay", &one]).await);
    assert!(
        code == 3 && data.contains("1 failed again") && said.contains("no such customer"),
        "{data}{said}"
    );
    let id = data.split([' ', ':']).nth(1).unwrap().to_owned();
    let (_, data, _) = told(&run(&cluster, folder.path(), &["replay", "show", &id, "-o", "json"]).await);
    let job: serde_json::Value = serde_json::from_str(&data).unwrap();
    let letter = &job["not_well"][0];
    assert_eq!((&letter["letter"], &letter["outcome"]), (&one.into(), &"buried".into()), "{data}");
    assert_eq!(letter["again"], format!("{LETTERS}/0/1"));
    assert!(letter["why"].as_str().unwrap().contains("no such customer"), "{data}");
    running.stop().await.unwrap();
}
