//! What waits on a shelf, seen and changed from outside, with a worker and without, on the embedded broker
//! and on real Kafka.

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{header, note, run, seen, until, until_status};
use redrive::delayed::{Answer, Counts, Deed, Error, Keep, Standing, Verdict, View, Wait, Wish};
use redrive::testkit::Stage;
use redrive::{
    Class, Classed, Clock, Cluster, Delivery, Origin, Received, Record, Running, Subscription, Topic,
};
use redrive_testkit::{kafka, new_name};

const HOUR: Duration = Duration::from_secs(3_600);
const LONG: Duration = Duration::from_secs(20);

/// A cluster with a source topic of one partition.
struct Scene {
    stage: Stage,
    source: String,
    group: String,
}

impl Scene {
    async fn on(stage: Stage) -> Self {
        let source = new_name("orders");
        stage.topic(&source, 1).await.unwrap();
        Self { stage, source, group: new_name("g") }
    }

    async fn embedded() -> Self {
        Self::on(Stage::new().await.unwrap()).await
    }

    async fn real() -> Option<Self> {
        let found = kafka()?;
        let cluster = Cluster::with(&found.brokers, found.properties).await.unwrap();
        Some(Self::on(Stage::on(cluster).unwrap()).await)
    }

    fn orders(&self) -> Subscription {
        Subscription::new(&self.source, &self.group).auto_create(true)
    }

    async fn run(&self, subscription: Subscription) -> Running {
        run(&self.stage, subscription).await
    }

    async fn send(&self, key: &str, value: &str) -> Origin {
        self.stage.send(&self.source, key, value).await.unwrap()
    }

    fn shelf(&self) -> Topic {
        format!("{}.{}.shelf", self.source, self.group).parse().unwrap()
    }

    async fn letters(&self, count: usize) -> Vec<Record> {
        self.stage.letters(&format!("{}.{}.dlq", self.source, self.group), count).await.unwrap()
    }

    fn origin(&self, offset: i64) -> Origin {
        Origin { topic: self.source.parse().unwrap(), partition: 0, offset }
    }

    async fn read(&self, only: &[i32], keep: Keep) -> Result<View, Error> {
        View::read(self.stage.cluster().settings(), self.shelf(), only, keep, |_| {}).await
    }

    async fn view(&self) -> View {
        self.read(&[], Arc::new(|_| true)).await.unwrap()
    }

    async fn give(&self, offset: i64, deed: Deed, wait: Duration) -> Answer {
        let wish = Wish { origin: self.origin(offset), deed };
        let given = self.view().await.give(&[wish], ("test", "why not"), wait, &Clock::system()).await;
        given.unwrap().remove(0)
    }
}

/// Not ready for an hour, unless it was tried before.
fn waits_once(scene: &Scene) -> (Subscription, ground::Seen) {
    let (all, handler_saw) = seen();
    let subscription =
        scene.orders().retry(Class::NotReady, "list(1h x3)").handler(move |received: Received| {
            note(&handler_saw, &received);
            async move {
                match (received.text(), received.attempt()) {
                    (Some("later"), 1) => Err(Classed::not_ready("no such item")),
                    _ => Ok(()),
                }
            }
        });
    (subscription, all)
}

async fn what_waits_is_seen_while_the_worker_runs_and_after_it_has_ended(scene: &Scene) {
    let (subscription, _) = waits_once(scene);
    let running = scene.run(subscription).await;
    let first = scene.send("a", "later").await;
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let second = scene.send("a", "behind").await;
    until_status(&running, "followed", |status| status.counts.shelved == 2).await;
    let mut running = Some(running);
    for _ in ["with a worker", "without"] {
        let view = scene.view().await;
        let records = view.records();
        // The follower has no delay of its own.
        let leader = records.iter().find(|one| one.origin == first).expect("the leader");
        let follower = records.iter().find(|one| one.origin == second).expect("the follower");
        assert_eq!(records.len(), 2, "{records:?}");
        assert_eq!(
            (leader.standing, leader.attempts, leader.class),
            (Standing::First, 1, Some(Class::NotReady))
        );
        assert_eq!(leader.error_type.as_deref(), Some("redrive::NotReady"));
        assert_eq!(leader.error_message.as_deref(), Some("not-ready: no such item"));
        assert_eq!((leader.key.as_deref(), leader.lane.as_deref()), (Some(&b"a"[..]), Some(&b"a"[..])));
        assert_eq!(follower.standing, Standing::Behind { leader: first.offset });
        assert_eq!((follower.attempts, follower.class), (0, None));
        assert_eq!((leader.earliest, follower.earliest), (Some(leader.due), Some(leader.due)));
        assert_eq!(records[0].origin, first, "what can be handled first comes first");
        assert_eq!(view.lane_of(&first), [first.offset, second.offset]);
        let identity = view.identity().expect("an owner");
        assert_eq!(
            (identity.topic.as_str(), identity.group.as_str()),
            (scene.source.as_str(), scene.group.as_str())
        );
        let now = Clock::system().now().wall;
        assert!(leader.due.since(now) > HOUR - LONG && leader.due.since(now) <= HOUR);
        let counts = Counts::of(&records, now);
        assert_eq!((counts.total, counts.due_now, counts.behind), (2, 0, 1));
        assert_eq!(counts.next_due, Some(leader.due));
        let whole = view.whole(&first).await.unwrap().expect("the record");
        assert_eq!(whole.record.value.as_deref(), Some(&b"later"[..]));
        assert_eq!(whole.trail.history.len(), 1);
        if let Some(running) = running.take() {
            running.stop().await.unwrap();
        }
    }
}

async fn a_record_that_is_released_is_handled_and_then_it_is_finished(scene: &Scene) {
    let (subscription, all) = waits_once(scene);
    let running = scene.run(subscription).await;
    scene.send("a", "later").await;
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let answer = scene.give(0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Due { .. })) && answer.is_done(), "{answer:?}");
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "later"]);
    let answer = scene.give(0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Finished)) && !answer.is_done(), "{answer:?}");
    let answer = scene.give(77, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Unknown)), "{answer:?}");
    running.stop().await.unwrap();
    assert!(scene.view().await.records().is_empty());
    // Nobody has to be asked about what is not there.
    let answer = scene.give(0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Finished)), "{answer:?}");
    assert!(scene.view().await.orders().is_empty());
}

async fn a_record_can_be_due_at_another_time(scene: &Scene) {
    let (subscription, all) = waits_once(scene);
    let running = scene.run(subscription).await;
    scene.send("a", "later").await;
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let later = Clock::system().now().wall.plus(HOUR * 24);
    let answer = scene.give(0, Deed::Reschedule { due: later.millis() }, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Due { due }) if due == later.millis()), "{answer:?}");
    assert_eq!(scene.view().await.records()[0].due, later);
    let soon = Clock::system().now().wall.plus(Duration::from_millis(200));
    scene.give(0, Deed::Reschedule { due: soon.millis() }, LONG).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert!(Clock::system().now().wall >= soon);
    assert_eq!(all.lock().unwrap().len(), 2);
    running.stop().await.unwrap();
}

async fn a_cancelled_record_becomes_a_letter(scene: &Scene, delivery: Delivery) {
    let (subscription, all) = waits_once(scene);
    let running = scene.run(subscription.delivery(delivery)).await;
    scene.send("a", "later").await;
    scene.send("a", "behind").await;
    until_status(&running, "shelved", |status| status.counts.shelved == 2).await;
    let answer = scene.give(0, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Cancelled)), "{answer:?}");
    let letters = scene.letters(1).await;
    assert_eq!(letters[0].value.as_deref(), Some(&b"later"[..]));
    assert_eq!(header(&letters[0], "redrive-reason"), "cancelled");
    assert_eq!(header(&letters[0], "redrive-origin"), scene.origin(0).to_string());
    until_status(&running, "the follower goes on", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "behind"]);
    running.stop().await.unwrap();
    assert!(scene.view().await.records().is_empty());
}

async fn a_cancelled_record_becomes_a_letter_at_least_once(scene: &Scene) {
    a_cancelled_record_becomes_a_letter(scene, Delivery::AtLeastOnce).await;
}

async fn a_cancelled_record_becomes_a_letter_exactly_once(scene: &Scene) {
    a_cancelled_record_becomes_a_letter(scene, Delivery::ExactlyOnce).await;
}

async fn an_order_that_no_worker_sees_is_carried_out_by_the_next_one(scene: &Scene) {
    let (subscription, all) = waits_once(scene);
    let running = scene.run(subscription.clone()).await;
    scene.send("a", "later").await;
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    running.stop().await.unwrap();
    let answer = scene.give(0, Deed::Release, HOUR).await;
    assert!(matches!(answer, Answer::Queued), "{answer:?}");
    let queued = scene.view().await;
    let (partition, order) = &queued.orders()[0];
    assert_eq!((*partition, order.origin, order.deed), (0, 0, Deed::Release));
    assert_eq!((order.by.as_str(), order.reason.as_str()), ("test", "why not"));
    assert_eq!(queued.records().len(), 1, "an order changes nothing by itself");
    let running = scene.run(subscription).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "later"]);
    running.stop().await.unwrap();
    let done = scene.view().await;
    assert!(done.orders().is_empty() && done.records().is_empty());
}

async fn a_record_that_is_with_the_handler_is_too_late_for_an_order(scene: &Scene) {
    let entered = Arc::new(AtomicBool::new(false));
    let may_end = Arc::new(AtomicBool::new(false));
    let subscription = scene.orders().retry(Class::NotReady, "list(10ms)").handler({
        let (entered, may_end) = (entered.clone(), may_end.clone());
        move |received: Received| {
            let (entered, may_end) = (entered.clone(), may_end.clone());
            async move {
                if received.attempt() == 1 {
                    return Err(Classed::not_ready("not yet"));
                }
                entered.store(true, Ordering::SeqCst);
                until("it may end", || may_end.load(Ordering::SeqCst)).await;
                Ok(())
            }
        }
    });
    let running = scene.run(subscription).await;
    scene.send("a", "slow").await;
    until("with the handler", || entered.load(Ordering::SeqCst)).await;
    let answer = scene.give(0, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::TooLate)), "{answer:?}");
    may_end.store(true, Ordering::SeqCst);
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
}

async fn only_what_is_wanted_is_kept_and_a_missing_shelf_is_told(scene: &Scene) {
    let missing = scene.read(&[], Arc::new(|_| true)).await;
    assert!(matches!(missing, Err(Error::NoShelf(name)) if name == scene.shelf()));
    let (subscription, _) = waits_once(scene);
    let running = scene.run(subscription).await;
    for key in ["a", "b", "c"] {
        scene.send(key, "later").await;
    }
    until_status(&running, "shelved", |status| status.counts.shelved == 3).await;
    let keep = Arc::new(|wait: &Wait| wait.record.key.as_deref() == Some(b"b"));
    let view = scene.read(&[0], keep).await.unwrap();
    assert_eq!(view.records().iter().map(|one| one.origin.offset).collect::<Vec<_>>(), [1]);
    let none = scene.read(&[7], Arc::new(|_| true)).await;
    assert!(matches!(none, Err(Error::NoPartition { partition: 7, partitions: 1, .. })));
    running.stop().await.unwrap();
}

async fn a_closed_lane_is_seen_with_its_letter_and_can_be_opened(scene: &Scene) {
    let text = format!(
        "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"{}\"\ngroup = \"{}\"\nfollowers = \"hold\"\nauto-create = true\n",
        scene.source, scene.group
    );
    let surroundings = redrive_config::Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    let config = redrive_config::read("redrive.toml", &text, surroundings).unwrap();
    let subscription =
        Subscription::configured(config.subscriptions[0].clone()).handler(async |received: Received| {
            match received.text() {
                Some("poison") => Err(Classed::permanent("never")),
                _ => Ok(()),
            }
        });
    let running = scene.run(subscription).await;
    for value in ["poison", "held"] {
        scene.send("a", value).await;
    }
    until_status(&running, "held", |status| status.counts.shelved == 1).await;
    let closed = scene.view().await;
    let closures = closed.closures();
    assert_eq!(
        (closures.len(), closures[0].lane.as_ref(), &closures[0].letter),
        (1, &b"a"[..], &scene.origin(0))
    );
    let records = closed.records();
    assert_eq!((records[0].standing, records[0].earliest), (Standing::Closed { letter: 0 }, None));
    assert_eq!(Counts::of(&records, Clock::system().now().wall).held, 1);
    let answer = scene.give(0, Deed::Resolve, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Opened)), "{answer:?}");
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
    let open = scene.view().await;
    assert!(open.closures().is_empty() && open.records().is_empty());
}

macro_rules! on_both {
    ($($case:ident)*) => {$(
        mod $case {
            #[tokio::test(flavor = "multi_thread")]
            async fn on_the_embedded_broker() {
                super::$case(&super::Scene::embedded().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_real_kafka() {
                let Some(scene) = super::Scene::real().await else { return };
                super::$case(&scene).await;
            }
        }
    )*};
}

on_both! {
    what_waits_is_seen_while_the_worker_runs_and_after_it_has_ended
    a_record_that_is_released_is_handled_and_then_it_is_finished
    a_record_can_be_due_at_another_time
    a_cancelled_record_becomes_a_letter_at_least_once
    a_cancelled_record_becomes_a_letter_exactly_once
    an_order_that_no_worker_sees_is_carried_out_by_the_next_one
    a_record_that_is_with_the_handler_is_too_late_for_an_order
    only_what_is_wanted_is_kept_and_a_missing_shelf_is_told
    a_closed_lane_is_seen_with_its_letter_and_can_be_opened
}
