//! Letters that are sent back to the shelf or to their topic: handled in the order of their lanes, and reported.

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{Seen, header, note, orders, run, seen, stage, until, until_status};
use redrive::replay::{Answers, Letter, Ordered, Report, Shelf, Verdict, What, mark};
use redrive::testkit::Stage;
use redrive::{
    Classed, Clock, Delivery, Outgoing, Publisher, Publishing, Received, Record, Subscription, Timestamp,
};

const LONG: Duration = Duration::from_secs(20);

/// A stage, and a handler that refuses "bad" records until it is mended.
struct Scene {
    stage: Stage,
    seen: Seen,
    is_mended: Arc<AtomicBool>,
    publisher: Publisher,
    shelf: Shelf,
}

impl Scene {
    async fn new() -> Self {
        let stage = stage(1).await;
        let publisher = Publisher::new(stage.cluster().settings(), &Publishing::default()).unwrap();
        let shelf = Shelf::of(&"orders".parse().unwrap(), "g").unwrap();
        Self { stage, seen: seen().0, is_mended: Arc::default(), publisher, shelf }
    }

    fn subscription(&self, followers: &str) -> Subscription {
        let (seen, is_mended) = (self.seen.clone(), self.is_mended.clone());
        orders().followers(followers).handler(move |received: Received| {
            note(&seen, &received);
            let is_bad = received.text().is_some_and(|text| text.starts_with("bad"));
            let fails = is_bad && !is_mended.load(Ordering::SeqCst);
            async move { if fails { Err(Classed::permanent("no such item")) } else { Ok(()) } }
        })
    }

    fn mend(&self) {
        self.is_mended.store(true, Ordering::SeqCst);
        self.seen.lock().unwrap().clear();
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    async fn until_seen(&self, expected: &[&str]) {
        until("all was handled", || self.seen().len() >= expected.len()).await;
        assert_eq!(self.seen(), expected);
    }

    async fn letters(&self, count: usize) -> Vec<Record> {
        self.stage.letters("orders.g.dlq", count).await.unwrap()
    }

    async fn publish(&self, outgoing: Outgoing) {
        self.publisher.publish(outgoing).await.unwrap();
    }

    async fn send_back(&self, letter: &Record, number: u64) {
        let letter = Letter::read(letter).unwrap();
        self.publish(self.shelf.replay(&letter, "job", number, now())).await;
    }

    async fn answers(&self) -> Answers {
        let settings = self.stage.cluster().settings();
        Answers::open(settings, self.shelf.topic().clone(), &[]).await.unwrap()
    }

    async fn ask(&self, ordered: Ordered) -> (Verdict, Option<String>) {
        let mut answers = self.answers().await;
        self.publish(ordered.outgoing).await;
        let clock = Clock::system();
        let outcomes = answers.wait([(0, ordered.id.clone())], LONG, &clock).await.unwrap();
        let outcome = outcomes.get(&ordered.id).expect("it is answered");
        (outcome.verdict, outcome.job.clone())
    }

    async fn reports(&self, count: usize) -> Vec<Report> {
        let records = self.stage.letters("redrive.state", count).await.unwrap();
        records.iter().map(|record| Report::read(record).expect("it is a report")).collect()
    }
}

fn now() -> Timestamp {
    Clock::system().now().wall
}

const WHO: (&str, &str) = ("ann", "fixed");

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_sent_back_goes_before_what_was_held_behind_it() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("hold")).await;
    for value in ["bad", "second", "third"] {
        scene.stage.send("orders", "a", value).await.unwrap();
    }
    scene.stage.send("orders", "b", "other").await.unwrap();
    until_status(&running, "they are held", |status| status.counts.shelved == 2).await;
    let letters = scene.letters(1).await;
    scene.mend();
    scene.send_back(&letters[0], 0).await;
    scene.until_seen(&["bad", "second", "third"]).await;
    let reports = scene.reports(1).await;
    assert_eq!((reports[0].job.as_str(), reports[0].number, reports[0].what), ("job", 0, What::Handled));
    assert_eq!(reports[0].by, "one");
    // Once more, by mistake: it is known.
    let letter = Letter::read(&letters[0]).unwrap();
    let again = scene.shelf.replay(&letter, "job", 1, now());
    let ordered = Ordered { id: "job/1".to_owned(), outgoing: again };
    assert_eq!(scene.ask(ordered).await.0, Verdict::Already);
    running.stop().await.unwrap();
    assert_eq!(scene.seen().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_lane_are_sent_back_in_order_and_what_arrives_meanwhile_goes_after_them() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("bury")).await;
    for value in ["bad", "second", "third"] {
        scene.stage.send("orders", "a", value).await.unwrap();
    }
    let letters = scene.letters(3).await;
    scene.mend();
    let leader = Letter::read(&letters[0]).unwrap().origin;
    let until = now().plus(Duration::from_secs(120));
    let (verdict, _) = scene.ask(scene.shelf.announce(&leader, "job", until, WHO)).await;
    assert_eq!(verdict, Verdict::Announced { deadline: until.millis() });
    let (verdict, holder) = scene.ask(scene.shelf.announce(&leader, "other", until, WHO)).await;
    assert_eq!((verdict, holder.as_deref()), (Verdict::Taken { deadline: until.millis() }, Some("job")));
    let answers = scene.answers().await;
    assert!(answers.closes(&leader) && answers.announced(&leader).unwrap().job == "job");
    scene.stage.send("orders", "a", "fourth").await.unwrap();
    until_status(&running, "it is held", |status| status.counts.shelved == 1).await;
    for (number, letter) in letters.iter().enumerate() {
        scene.send_back(letter, number as u64).await;
    }
    let (verdict, _) = scene.ask(scene.shelf.resolve(&leader, "job", WHO)).await;
    assert_eq!(verdict, Verdict::Opened);
    scene.until_seen(&["bad", "second", "third", "fourth"]).await;
    scene.stage.send("orders", "a", "fifth").await.unwrap();
    scene.until_seen(&["bad", "second", "third", "fourth", "fifth"]).await;
    let reports = scene.reports(3).await;
    let mut numbers: Vec<_> = reports.iter().map(|report| (report.number, report.what)).collect();
    numbers.sort_by_key(|(number, _)| *number);
    assert_eq!(numbers, [(0, What::Handled), (1, What::Handled), (2, What::Handled)]);
    let status = until_status(&running, "it is idle", |status| status.in_memory == 0).await;
    assert_eq!((status.tally.lanes_overdue, status.tally.reports_lost), (0, 0));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_stops_half_way_costs_an_alarm_and_the_lane_is_opened_in_time() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("bury")).await;
    for value in ["bad", "second"] {
        scene.stage.send("orders", "a", value).await.unwrap();
    }
    let letters = scene.letters(2).await;
    scene.mend();
    let leader = Letter::read(&letters[0]).unwrap().origin;
    let until = now().plus(Duration::from_secs(12));
    let (verdict, _) = scene.ask(scene.shelf.announce(&leader, "job", until, WHO)).await;
    assert_eq!(verdict, Verdict::Announced { deadline: until.millis() });
    scene.stage.send("orders", "a", "third").await.unwrap();
    until_status(&running, "it is held", |status| status.counts.shelved == 1).await;
    scene.send_back(&letters[0], 0).await;
    assert!(now() < until && scene.seen().is_empty(), "nothing of the lane runs before it is open");
    scene.until_seen(&["bad", "third"]).await;
    let status = until_status(&running, "it is told", |status| !status.problems.is_empty()).await;
    assert_eq!(status.tally.lanes_overdue, 1);
    let problem = &status.problems[0];
    assert_eq!((problem.kind, problem.partition), ("overdue", Some(0)));
    assert!(problem.what.contains("1 letters of it were not sent back"), "{}", problem.what);
    assert!(problem.remedy.contains("redrive replay show job"), "{}", problem.remedy);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_fails_again_closes_its_lane_again_and_counts_its_replays() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("hold")).await;
    for value in ["bad", "second"] {
        scene.stage.send("orders", "a", value).await.unwrap();
    }
    until_status(&running, "it is held", |status| status.counts.shelved == 1).await;
    let letters = scene.letters(1).await;
    scene.send_back(&letters[0], 7).await;
    let letters = scene.letters(2).await;
    assert_eq!(header(&letters[1], "redrive-replay"), "job/7");
    assert_eq!(header(&letters[1], "redrive-replays"), "1");
    assert!(letters[1].headers.text("redrive-replayed-at").is_some());
    let reports = scene.reports(1).await;
    assert_eq!((reports[0].number, reports[0].what), (7, What::Buried));
    assert_eq!(reports[0].letter.as_ref(), Some(&letters[1].at));
    assert_eq!(scene.seen(), ["bad", "bad"], "the lane is closed again");
    scene.mend();
    scene.send_back(&letters[1], 8).await;
    scene.until_seen(&["bad", "second"]).await;
    running.stop().await.unwrap();
    let reports = scene.reports(2).await;
    assert_eq!((reports[1].number, reports[1].what), (8, What::Handled));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_nobody_was_there_for_is_carried_out_by_whoever_comes() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("hold").delivery(Delivery::ExactlyOnce)).await;
    for value in ["bad", "second"] {
        scene.stage.send("orders", "a", value).await.unwrap();
    }
    until_status(&running, "it is held", |status| status.counts.shelved == 1).await;
    running.stop().await.unwrap();
    let letters = scene.letters(1).await;
    scene.mend();
    scene.send_back(&letters[0], 0).await;
    // What was never read from the source cannot be sent back.
    let mut ahead = Letter::read(&letters[0]).unwrap();
    ahead.origin.offset = 99;
    scene.publish(scene.shelf.replay(&ahead, "job", 1, now())).await;
    let running = run(&scene.stage, scene.subscription("hold").delivery(Delivery::ExactlyOnce)).await;
    scene.until_seen(&["bad", "second"]).await;
    let mut reports = scene.reports(2).await;
    reports.sort_by_key(|report| report.number);
    assert_eq!((reports[0].what, reports[1].what), (What::Handled, What::Refused));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_sent_back_to_its_topic_is_reported_by_its_group_alone() {
    let scene = Scene::new().await;
    let running = run(&scene.stage, scene.subscription("pass")).await;
    for (number, group, value) in [(0, None, "good"), (1, Some("other"), "good"), (2, Some("g"), "bad")] {
        let mut outgoing = Outgoing::to("orders".parse().unwrap()).key("a").value(value).header("x", "y");
        mark(&mut outgoing.headers, ("job", number), 3, now(), group);
        scene.publish(outgoing).await;
    }
    let letters = scene.letters(1).await;
    assert_eq!(header(&letters[0], "redrive-replays"), "3");
    assert_eq!(header(&letters[0], "x"), "y", "what is the user's stays");
    let mut reports = scene.reports(2).await;
    reports.sort_by_key(|report| report.number);
    let told: Vec<_> = reports.iter().map(|report| (report.number, report.what)).collect();
    assert_eq!(told, [(0, What::Handled), (2, What::Buried)]);
    running.stop().await.unwrap();
}
