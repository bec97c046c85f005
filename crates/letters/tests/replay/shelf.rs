//! Back to the retry path, with a worker that handles what comes and tells what became of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::replay::Answers;
use redrive::{Classed, Clock, Cluster, Outgoing, Received, Subscription, Worker};
use redrive_letters::feed::{Feed, PATTERN, Which};
use redrive_letters::jobs::{Options, Whereto};
use redrive_letters::replay::{Ended, Followers, Route, Why, control};

use crate::ground::{all, begin, candidates, put, run, topic, wanted};

const LETTERS: &str = "orders.billing.dlq";

struct Shop {
    cluster: Cluster,
    is_mended: Arc<AtomicBool>,
    handled: Arc<Mutex<Vec<String>>>,
    running: redrive::Running,
}

/// A worker whose handler fails for good until it is mended.
async fn shop(partitions: i32, followers: &str) -> Shop {
    let cluster = Cluster::open("embedded").await.unwrap();
    cluster.create_topic("orders", partitions).await.unwrap();
    let (is_mended, handled) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
    let (mended, seen) = (is_mended.clone(), handled.clone());
    let orders = Subscription::new("orders", "billing")
        .auto_create(true)
        .surge_guard("off")
        .followers(followers)
        .handler(move |order: Received| {
            let (mended, seen) = (mended.clone(), seen.clone());
            async move {
                let text = order.text().unwrap_or("-").to_owned();
                if text.starts_with("hopeless") || text.starts_with("bad") && !mended.load(Ordering::SeqCst) {
                    return Err(Classed::permanent("no such customer"));
                }
                seen.lock().unwrap().push(text);
                Ok(())
            }
        });
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    Shop { cluster, is_mended, handled, running }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now().steady + Duration::from_secs(30);
    while !is_so().await {
        assert!(clock.now().steady < deadline, "not in time: {what}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

fn order(n: usize, what: &str) -> Outgoing {
    Outgoing::to(topic("orders")).key(format!("k{n}")).value(format!("{what} {n}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_go_back_to_the_retry_path_are_handled_and_what_became_of_each_is_told() {
    let shop = shop(2, "pass").await;
    let orders = (0..50).map(|n| order(n, if n % 10 == 0 { "hopeless" } else { "bad" }));
    put(&shop.cluster, orders.collect()).await;
    until("letters", async || all(&shop.cluster, LETTERS, 2).await.len() == 50).await;
    shop.is_mended.store(true, Ordering::SeqCst);

    let candidates = candidates(&shop.cluster, LETTERS, 2).await;
    let options = Options { canary: Some(10), max_failed: Some(60.0), ..Options::default() };
    let wanted = wanted(Whereto::Usual, options);
    let (job, plan) = begin(&shop.cluster, &wanted, &candidates).await;
    let shelf = Route::Shelf { shelf: topic("orders.billing.shelf"), group: "billing".to_owned() };
    assert_eq!(plan.routes.keys().collect::<Vec<_>>(), [&shelf]);
    let job = job.unwrap();
    let id = job.id().clone();
    assert_eq!(run(&shop.cluster, job, &wanted.to).await, Ended::Finished);
    let settings = shop.cluster.settings();
    let wait = Duration::from_secs(30);
    let job = control::listen(settings, &Clock::system(), &id, wait, |_| {}).await.unwrap();
    let counts = job.counts();
    assert_eq!((counts.sent, counts.handled, counts.buried, counts.unheard()), (50, 45, 5, 0));
    assert_eq!(shop.handled.lock().unwrap().len(), 45);

    let again: Vec<_> = all(&shop.cluster, LETTERS, 2).await;
    let again: Vec<_> =
        again.iter().filter(|record| record.headers.text("redrive-replays").is_some()).collect();
    assert_eq!(again.len(), 5, "letters again, and they say so");
    assert!(again.iter().all(|record| record.headers.text("redrive-replays") == Some("1")));
    shop.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_pauses_when_its_first_letters_fail_again() {
    let shop = shop(1, "pass").await;
    put(&shop.cluster, (0..60).map(|n| order(n, "bad")).collect()).await;
    until("letters", async || all(&shop.cluster, LETTERS, 1).await.len() == 60).await;
    let candidates = candidates(&shop.cluster, LETTERS, 1).await;
    let options = Options { canary: Some(5), max_failed: Some(10.0), ..Options::default() };
    let wanted = wanted(Whereto::Usual, options);
    let (job, _) = begin(&shop.cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    let ended = run(&shop.cluster, job, &wanted.to).await;
    assert_eq!(ended, Ended::Paused("5 of the first 5 failed again".to_owned()));

    shop.is_mended.store(true, Ordering::SeqCst);
    let clock = Clock::system();
    let settings = shop.cluster.settings();
    let wish = redrive_letters::jobs::Wish {
        want: redrive_letters::jobs::Want::Run,
        by: "ann".to_owned(),
        at: 0,
        why: "mended".to_owned(),
        canary: false,
    };
    let job = redrive_letters::replay::take_over(settings, &clock, &id, Some(wish), false).await.unwrap();
    assert_eq!(run(&shop.cluster, job, &wanted.to).await, Ended::Finished);
    let job = control::listen(settings, &clock, &id, Duration::from_secs(30), |_| {}).await.unwrap();
    assert_eq!((job.counts().handled, job.counts().buried), (55, 5));
    shop.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_sent_again_is_taken_each_time_until_it_was_sent_too_often() {
    let shop = shop(1, "pass").await;
    put(&shop.cluster, vec![order(0, "bad")]).await;
    until("a letter", async || all(&shop.cluster, LETTERS, 1).await.len() == 1).await;
    shop.is_mended.store(true, Ordering::SeqCst);
    let candidates = candidates(&shop.cluster, LETTERS, 1).await;
    let options = Options { again: true, max_replays: Some(3), ..Options::default() };
    let settings = shop.cluster.settings();
    let mut wanted = wanted(Whereto::Usual, options);
    for time in 1..=3 {
        let (job, _) = begin(&shop.cluster, &wanted, &candidates).await;
        let job = job.unwrap();
        let id = job.id().clone();
        assert_eq!(run(&shop.cluster, job, &wanted.to).await, Ended::Finished);
        let wait = Duration::from_secs(30);
        let job = control::listen(settings, &Clock::system(), &id, wait, |_| {}).await.unwrap();
        assert_eq!((job.counts().handled, job.counts().refused), (1, 0), "the {time}. time");
        assert_eq!(shop.handled.lock().unwrap().len(), time);
    }
    for to in [Whereto::Usual, Whereto::Origin, Whereto::Topic(topic("orders"))] {
        wanted.to = to;
        let (job, plan) = begin(&shop.cluster, &wanted, &candidates).await;
        assert!(job.is_none(), "{:?}", wanted.to);
        assert_eq!(plan.left_out.into_keys().collect::<Vec<_>>(), [Why::TooOften(3)]);
    }
    shop.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_were_announced_are_not_held_for_a_job_that_never_begins() {
    let shop = shop(1, "bury").await;
    let orders = ["bad", "fine"].map(|what| Outgoing::to(topic("orders")).key("k").value(what));
    put(&shop.cluster, orders.into()).await;
    until("letters", async || all(&shop.cluster, LETTERS, 1).await.len() == 2).await;
    shop.is_mended.store(true, Ordering::SeqCst);
    let settings = shop.cluster.settings();
    let folder = tempfile::tempdir().unwrap();
    let which = Which::new(Vec::new(), &[PATTERN.to_owned()]).unwrap();
    let (mut index, _) = Feed::new(settings, folder.path(), which).catch_up(|_| {}).await.unwrap();
    let leader: redrive_core::Origin = "orders/0/0".parse().unwrap();
    let announced = async || {
        let answers = Answers::open(settings, topic("orders.billing.shelf"), &[0]).await.unwrap();
        answers.announced(&leader).is_some()
    };
    // Nothing is left to send when it begins.
    let none = Options { max_replays: Some(0), ..Options::default() };
    let mut wanted = wanted(Whereto::Usual, none);
    let mut candidates = candidates(&shop.cluster, LETTERS, 1).await;
    candidates.truncate(1);
    let mut there = crate::ground::destinations(&shop.cluster, &wanted.to);
    let followers = Followers::of(settings, &mut index, &candidates, &mut there).await.unwrap();
    assert_eq!((followers.lanes.len(), followers.letters.len()), (1, 1));
    let holding = followers.hold(settings, 1, &wanted, None).await.unwrap();
    assert_eq!(holding.held(), 1);
    assert!(announced().await);
    holding.gather(&mut index, &mut candidates, &mut wanted);
    assert_eq!((candidates.len(), wanted.lanes.is_some()), (2, true));
    let (job, plan) = begin(&shop.cluster, &wanted, &candidates).await;
    assert!(job.is_none() && plan.left_out.contains_key(&Why::TooOften(0)), "{plan:?}");
    until("the lane is not held", async || !announced().await).await;
    put(&shop.cluster, vec![Outgoing::to(topic("orders")).key("k").value("later")]).await;
    until("what arrives is handled", async || shop.handled.lock().unwrap().contains(&"later".to_owned()))
        .await;
    shop.running.stop().await.unwrap();
}
