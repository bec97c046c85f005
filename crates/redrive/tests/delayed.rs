//! What waits on a shelf, seen and changed from outside, with a worker and without.

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{header, note, orders, run, seen, stage, until, until_status};
use redrive::delayed::{Answer, Counts, Deed, Standing, Verdict, View, Wish};
use redrive::testkit::Stage;
use redrive::{Class, Classed, Clock, Delivery, Origin, Received, Subscription};

const HOUR: Duration = Duration::from_secs(3_600);
const LONG: Duration = Duration::from_secs(20);

async fn view(stage: &Stage) -> View {
    let shelf = "orders.g.shelf".parse().unwrap();
    View::read(stage.cluster().settings(), shelf, &[], Arc::new(|_| true), |_| {}).await.unwrap()
}

fn origin(offset: i64) -> Origin {
    Origin { topic: "orders".parse().unwrap(), partition: 0, offset }
}

async fn give(stage: &Stage, offset: i64, deed: Deed, wait: Duration) -> Answer {
    let wish = Wish { origin: origin(offset), deed };
    let mut answers =
        view(stage).await.give(&[wish], ("test", "why not"), wait, &Clock::system()).await.unwrap();
    answers.remove(0)
}

/// Not ready for an hour, unless it was tried before.
fn waits_once() -> (Subscription, ground::Seen) {
    let (all, handler_saw) = seen();
    let subscription = orders().retry(Class::NotReady, "list(1h x3)").handler(move |received: Received| {
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

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_seen_while_the_worker_runs_and_after_it_has_ended() {
    let stage = stage(2).await;
    let (subscription, _) = waits_once();
    let running = run(&stage, subscription).await;
    let first = stage.send("orders", "a", "later").await.unwrap();
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let second = stage.send("orders", "a", "behind").await.unwrap();
    until_status(&running, "followed", |status| status.counts.shelved == 2).await;
    let mut running = Some(running);
    for _ in ["with a worker", "without"] {
        let view = view(&stage).await;
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
        assert_eq!(view.lane_of(&first), [first.offset, second.offset]);
        let identity = view.identity().expect("an owner");
        assert_eq!((identity.topic.as_str(), identity.group.as_str()), ("orders", "g"));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_released_is_handled_and_then_it_is_finished() {
    let stage = stage(1).await;
    let (subscription, all) = waits_once();
    let running = run(&stage, subscription).await;
    stage.send("orders", "a", "later").await.unwrap();
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let answer = give(&stage, 0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Due { .. })) && answer.is_done(), "{answer:?}");
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "later"]);
    let answer = give(&stage, 0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Finished)) && !answer.is_done(), "{answer:?}");
    let answer = give(&stage, 77, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Unknown)), "{answer:?}");
    running.stop().await.unwrap();
    assert!(view(&stage).await.records().is_empty());
    // Nobody has to be asked about what is not there.
    let answer = give(&stage, 0, Deed::Release, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Finished)), "{answer:?}");
    assert!(view(&stage).await.orders().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_can_be_due_at_another_time() {
    let stage = stage(1).await;
    let (subscription, all) = waits_once();
    let running = run(&stage, subscription).await;
    stage.send("orders", "a", "later").await.unwrap();
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    let later = Clock::system().now().wall.plus(HOUR * 24);
    let answer = give(&stage, 0, Deed::Reschedule { due: later.millis() }, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Due { due }) if due == later.millis()), "{answer:?}");
    assert_eq!(view(&stage).await.records()[0].due, later);
    let soon = Clock::system().now().wall.plus(Duration::from_millis(200));
    give(&stage, 0, Deed::Reschedule { due: soon.millis() }, LONG).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert!(Clock::system().now().wall >= soon);
    assert_eq!(all.lock().unwrap().len(), 2);
    running.stop().await.unwrap();
}

async fn a_cancelled_record_becomes_a_letter(delivery: Delivery) {
    let stage = stage(1).await;
    let (subscription, all) = waits_once();
    let running = run(&stage, subscription.delivery(delivery)).await;
    stage.send("orders", "a", "later").await.unwrap();
    stage.send("orders", "a", "behind").await.unwrap();
    until_status(&running, "shelved", |status| status.counts.shelved == 2).await;
    let answer = give(&stage, 0, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Cancelled)), "{answer:?}");
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    assert_eq!(letters[0].value.as_deref(), Some(&b"later"[..]));
    assert_eq!(header(&letters[0], "redrive-reason"), "cancelled");
    assert_eq!(header(&letters[0], "redrive-origin"), "orders/0/0");
    until_status(&running, "the follower goes on", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "behind"]);
    running.stop().await.unwrap();
    assert!(view(&stage).await.records().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_record_becomes_a_letter_at_least_once() {
    a_cancelled_record_becomes_a_letter(Delivery::AtLeastOnce).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_record_becomes_a_letter_exactly_once() {
    a_cancelled_record_becomes_a_letter(Delivery::ExactlyOnce).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_no_worker_sees_is_carried_out_by_the_next_one() {
    let stage = stage(1).await;
    let (subscription, all) = waits_once();
    let running = run(&stage, subscription.clone()).await;
    stage.send("orders", "a", "later").await.unwrap();
    until_status(&running, "shelved", |status| status.counts.shelved == 1).await;
    running.stop().await.unwrap();
    let answer = give(&stage, 0, Deed::Release, HOUR).await;
    assert!(matches!(answer, Answer::Queued), "{answer:?}");
    let queued = view(&stage).await;
    let (partition, order) = &queued.orders()[0];
    assert_eq!((*partition, order.origin, order.deed), (0, 0, Deed::Release));
    assert_eq!((order.by.as_str(), order.reason.as_str()), ("test", "why not"));
    assert_eq!(queued.records().len(), 1, "an order changes nothing by itself");
    let running = run(&stage, subscription).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    assert_eq!(*all.lock().unwrap(), ["later", "later"]);
    running.stop().await.unwrap();
    let done = view(&stage).await;
    assert!(done.orders().is_empty() && done.records().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_with_the_handler_is_too_late_for_an_order() {
    let stage = stage(1).await;
    let entered = Arc::new(AtomicBool::new(false));
    let may_end = Arc::new(AtomicBool::new(false));
    let subscription = orders().retry(Class::NotReady, "list(10ms)").handler({
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
    let running = run(&stage, subscription).await;
    stage.send("orders", "a", "slow").await.unwrap();
    until("with the handler", || entered.load(Ordering::SeqCst)).await;
    let answer = give(&stage, 0, Deed::Cancel, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::TooLate)), "{answer:?}");
    may_end.store(true, Ordering::SeqCst);
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_wanted_is_kept_and_a_missing_shelf_is_told() {
    let stage = stage(1).await;
    let settings = stage.cluster().settings();
    let shelf: redrive::Topic = "orders.g.shelf".parse().unwrap();
    let missing = View::read(settings, shelf.clone(), &[], Arc::new(|_| true), |_| {}).await;
    assert!(matches!(missing, Err(redrive::delayed::Error::NoShelf(name)) if name == shelf));
    let (subscription, _) = waits_once();
    let running = run(&stage, subscription).await;
    for key in ["a", "b", "c"] {
        stage.send("orders", key, "later").await.unwrap();
    }
    until_status(&running, "shelved", |status| status.counts.shelved == 3).await;
    let keep = Arc::new(|wait: &redrive::delayed::Wait| wait.record.key.as_deref() == Some(b"b"));
    let view = View::read(settings, shelf.clone(), &[0], keep, |_| {}).await.unwrap();
    assert_eq!(view.records().iter().map(|one| one.origin.offset).collect::<Vec<_>>(), [1]);
    let none = View::read(settings, shelf, &[7], Arc::new(|_| true), |_| {}).await;
    assert!(matches!(none, Err(redrive::delayed::Error::NoPartition { partition: 7, partitions: 1, .. })));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_lane_is_seen_with_its_letter_and_can_be_opened() {
    let stage = stage(1).await;
    let text = "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"orders\"\ngroup = \"g\"\nfollowers = \"hold\"\nauto-create = true\n";
    let surroundings = redrive_config::Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    let config = redrive_config::read("redrive.toml", text, surroundings).unwrap();
    let subscription =
        Subscription::configured(config.subscriptions[0].clone()).handler(async |received: Received| {
            match received.text() {
                Some("poison") => Err(Classed::permanent("never")),
                _ => Ok(()),
            }
        });
    let running = run(&stage, subscription).await;
    for value in ["poison", "held"] {
        stage.send("orders", "a", value).await.unwrap();
    }
    until_status(&running, "held", |status| status.counts.shelved == 1).await;
    let closed = view(&stage).await;
    let closures = closed.closures();
    assert_eq!((closures.len(), closures[0].lane.as_ref(), &closures[0].letter), (1, &b"a"[..], &origin(0)));
    let records = closed.records();
    assert_eq!(records[0].standing, Standing::Closed { letter: 0 });
    assert_eq!(Counts::of(&records, Clock::system().now().wall).held, 1);
    let answer = give(&stage, 0, Deed::Resolve, LONG).await;
    assert!(matches!(answer, Answer::Said(Verdict::Opened)), "{answer:?}");
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
    let open = view(&stage).await;
    assert!(open.closures().is_empty() && open.records().is_empty());
}
