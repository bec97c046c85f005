//! Letters that are sent back to the shelf while workers are killed: handled in the order of their lanes, none lost,
//! and reported.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive::replay::{Answers, Letter, Report, Shelf, Verdict, What};
use redrive::{Clock, Origin, Outgoing, Publisher, Publishing, Reader, Record, Settings, Timestamp, Topic};
use redrive_testkit::new_name;

use crate::on_both;
use crate::place::{PATIENCE, Place, Sent, until};
use crate::subject::Subject;

on_both!(
    leaders_that_are_sent_back_go_before_what_was_held_whoever_dies,
    letters_of_lanes_are_sent_back_in_order_whoever_dies,
);

const LANES: usize = 12;

async fn leaders_that_are_sent_back_go_before_what_was_held_whoever_dies(place: Place) {
    place.topics(1).await;
    let sent = place.send(lanes(5)).await;
    let worker = worker_of(&place, "hold");
    place.until_complete(&sent, 1).await;
    let tool = Tool::new(&place);
    let letters = tool.letters(LANES).await;
    worker.kill();
    std::fs::write(place.file("mended"), "").expect("a file");

    let mut worker = worker_of(&place, "hold");
    for (number, letter) in letters.iter().enumerate() {
        tool.publish(tool.shelf.replay(letter, &tool.job, number as u64, now())).await;
        if number % 5 == 3 {
            worker.kill();
            worker = worker_of(&place, "hold");
        }
    }
    place.until_progress("some are handled", LANES + 20, sent.len()).await;
    worker.kill();
    let worker = worker_of(&place, "hold");
    place.until_done(sent.len()).await;
    in_order(&place, &sent);
    let reports = tool.reports(letters.len()).await;
    assert!(reports.values().all(|what| *what == What::Handled), "{reports:?}");
    worker.stop_well().await;
    assert_eq!(place.letters(1).await.len(), LANES, "none failed again");
}

async fn letters_of_lanes_are_sent_back_in_order_whoever_dies(place: Place) {
    place.topics(1).await;
    let sent = place.send(lanes(3)).await;
    let worker = worker_of(&place, "bury");
    place.until_complete(&sent, 1).await;
    let tool = Tool::new(&place);
    let letters = tool.letters(sent.len()).await;
    let leaders = &letters[..LANES];
    std::fs::write(place.file("mended"), "").expect("a file");
    let mut answers = tool.answers().await;
    let deadline = now().plus(Duration::from_secs(90));
    let mut ids = Vec::new();
    for leader in leaders {
        let announce = tool.shelf.announce(&leader.origin, &tool.job, deadline, ("the test", "mended"));
        tool.publish(announce.outgoing).await;
        ids.push((0, announce.id));
    }
    let outcomes = answers.wait(ids, PATIENCE, &Clock::system()).await.expect("the shelf is read");
    let announced = |verdict: Verdict| matches!(verdict, Verdict::Announced { .. });
    assert!(outcomes.len() == LANES && outcomes.values().all(|one| announced(one.verdict)), "{outcomes:?}");
    // What arrives now is held, by whoever owns the partition.
    worker.kill();
    let more = place.send(lanes(1)).await;
    let mut worker = worker_of(&place, "bury");
    place.until_complete(&more, 1).await;
    assert_eq!(place.letters(1).await.len(), sent.len(), "no letter is added to them");
    for (number, letter) in letters.iter().enumerate() {
        tool.publish(tool.shelf.replay(letter, &tool.job, number as u64, now())).await;
        if number % 13 == 7 {
            worker.kill();
            worker = worker_of(&place, "bury");
        }
    }
    for leader in leaders {
        tool.publish(tool.shelf.resolve(&leader.origin, &tool.job, ("the test", "mended")).outgoing).await;
    }
    place.until_progress("some are handled", LANES + 10, sent.len()).await;
    worker.kill();
    let worker = worker_of(&place, "bury");
    let all = [sent.clone(), more].concat();
    place.until_done(all.len()).await;
    in_order(&place, &all);
    let reports = tool.reports(letters.len()).await;
    assert!(reports.values().all(|what| *what == What::Handled), "{reports:?}");
    worker.stop_well().await;
    assert_eq!(place.letters(1).await.len(), sent.len(), "none failed again");
}

/// So many records of each lane, in turns.
fn lanes(each: usize) -> impl Iterator<Item = (String, &'static str)> {
    (0..each).flat_map(|_| (0..LANES).map(|lane| (format!("lane-{lane}"), "slow:3")))
}

fn worker_of(place: &Place, followers: &str) -> Subject {
    let command = place.worker().with("--followers", followers).property("group.instance.id", "one");
    command.with("--surge-guard", "off").with("--broken-until", place.file("mended")).start()
}

/// Each lane was handled in the order of its records; after a crash maybe once more, and in order again.
fn in_order(place: &Place, sent: &[Sent]) {
    let order = place.calls().order();
    let mut lanes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for one in sent {
        let first = order.iter().position(|spot| *spot == (one.partition, one.offset));
        lanes.entry(&one.key).or_default().push(first.expect("it was handled"));
    }
    for (lane, firsts) in lanes {
        assert!(firsts.is_sorted(), "{lane} was handled in the order {firsts:?}");
    }
}

fn now() -> Timestamp {
    Clock::system().now().wall
}

/// What sends letters back.
struct Tool {
    settings: Settings,
    publisher: Publisher,
    shelf: Shelf,
    dlq: Topic,
    job: String,
}

impl Tool {
    fn new(place: &Place) -> Self {
        let cluster = &place.cluster;
        let settings = Settings { brokers: cluster.brokers.clone(), properties: cluster.properties.clone() };
        let topic = place.topic.parse().expect("the name of a topic");
        Self {
            publisher: Publisher::new(&settings, &Publishing::default()).expect("a publisher"),
            shelf: Shelf::of(&topic, &place.group).expect("the name of a topic"),
            dlq: place.dlq().parse().expect("the name of a topic"),
            job: new_name("job"),
            settings,
        }
    }

    async fn publish(&self, outgoing: Outgoing) {
        self.publisher.publish(outgoing).await.expect("it is published");
    }

    async fn answers(&self) -> Answers {
        let shelf = self.shelf.topic().clone();
        Answers::open(&self.settings, shelf, &[]).await.expect("the shelf is read")
    }

    /// The first so many letters, in the order of their origins.
    async fn letters(&self, count: usize) -> Vec<Letter> {
        let from = Origin { topic: self.dlq.clone(), partition: 0, offset: 0 };
        let records = read(&self.settings, from, |records| records.len() >= count).await;
        let letters = records.iter().map(|record| Letter::read(record).expect("a letter of ours"));
        // One may be there twice, after a crash.
        let letters: BTreeMap<_, _> = letters.map(|letter| (letter.origin.clone(), letter)).collect();
        assert_eq!(letters.len(), count);
        letters.into_values().collect()
    }

    /// What is reported of each letter of the job, once it is of so many.
    async fn reports(&self, count: usize) -> BTreeMap<u64, What> {
        let from = Origin { topic: "redrive.state".parse().expect("a topic"), partition: 0, offset: 0 };
        let of_job = |records: &[Record]| {
            let reports = records.iter().filter_map(Report::read).filter(|report| report.job == self.job);
            reports.map(|report| (report.number, report.what)).collect::<BTreeMap<_, _>>()
        };
        of_job(&read(&self.settings, from, |records| of_job(records).len() >= count).await)
    }
}

/// Reads a partition until it is enough.
async fn read(settings: &Settings, from: Origin, is_enough: impl Fn(&[Record]) -> bool) -> Vec<Record> {
    let topic = from.topic.clone();
    let reader = until("the topic is there", async || Reader::from(settings, from.clone()).ok()).await;
    let (clock, mut records) = (Clock::system(), Vec::new());
    while !is_enough(&records) {
        tokio::select! {
            record = reader.next() => records.push(record.expect("the topic is read")),
            () = clock.sleep(PATIENCE) => panic!("not in time: {topic} has {} records", records.len()),
        }
    }
    records
}
