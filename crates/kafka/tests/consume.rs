//! A consumer hands over each record once and in order, and keeps its word to the group.

mod ground;

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ground::{Ground, assigned, event, new_group, numbered, soon};
use redrive_core::{Timestamp, Topic};
use redrive_kafka::{
    Committed, Consumer, ConsumerSettings, Error, Event, Events, Mark, Outgoing, Turn, join,
};

on_both!(
    records_come_once_and_in_order_with_their_turn,
    two_members_share_while_records_flow_and_nothing_is_lost_or_seen_twice,
    a_slow_receiver_keeps_its_membership,
    what_waits_for_a_slow_receiver_is_bounded_in_bytes,
    an_offset_that_is_not_there_is_reported_and_begun_elsewhere,
    what_never_began_is_given_up_all_the_same,
    pausing_and_resuming_loses_and_repeats_nothing,
    a_group_is_asked_and_told,
    a_topic_that_is_missing_is_trouble_and_then_none,
);

/// Takes records of one partition until this many have come.
async fn take(events: &mut Events, partition: i32, turn: Turn, many: usize) -> Vec<i64> {
    let mut offsets = Vec::new();
    while offsets.len() < many {
        match event(events).await {
            Event::Records(batch) if (batch.partition, batch.turn) == (partition, turn) => {
                offsets.extend(batch.records.iter().map(|record| record.at.offset));
            }
            Event::Records(_) => {}
            other => panic!("not records: {other:?}"),
        }
    }
    offsets
}

async fn records_come_once_and_in_order_with_their_turn(ground: &Ground) {
    let topic = ground.topic("order", 3).await;
    ground.fill(&topic, 3, 2_000).await;
    let (consumer, mut events) = ground.join(&topic, &new_group());
    assert_eq!(assigned(&mut events).await, [0, 1, 2]);
    assert!(matches!(consumer.begin(3, 0), Err(Error::NotOurs { partition: 3, .. })));
    // All at once, and the one that is not ours keeps none of them from beginning.
    let mut begun = consumer.begin_all(&[(0, 0), (1, 0), (3, 0), (2, 0)]);
    assert!(matches!(begun.remove(2), (3, Err(Error::NotOurs { partition: 3, .. }))));
    let turns: Vec<Turn> = begun.into_iter().map(|(_, turn)| turn.unwrap()).collect();
    assert!(turns.is_sorted());

    let mut seen = BTreeMap::<i32, Vec<i64>>::new();
    while seen.values().map(Vec::len).sum::<usize>() < 6_000 {
        let Event::Records(batch) = event(&mut events).await else { panic!("only records are there") };
        assert_eq!(batch.turn, turns[usize::try_from(batch.partition).unwrap()]);
        for record in &batch.records {
            assert_eq!((&record.at.topic, record.at.partition), (&topic, batch.partition));
            assert_eq!(record.key.as_deref(), Some(record.at.offset.to_string().as_bytes()));
        }
        let offsets = batch.records.iter().map(|record| record.at.offset);
        seen.entry(batch.partition).or_default().extend(offsets);
    }
    for offsets in seen.values() {
        assert_eq!(*offsets, (0..2_000).collect::<Vec<_>>());
    }

    // Back, while it is being read: a new turn, and nothing of the old one in it.
    let turn = consumer.begin(1, 1_500).unwrap();
    assert!(turn > turns[2]);
    assert_eq!(take(&mut events, 1, turn, 500).await, (1_500..2_000).collect::<Vec<_>>());
    consumer.leave().await;
    assert!(soon(events.next()).await.is_none());
}

/// A worker in miniature: begins where the group stands, commits and gives up what is asked back.
async fn work(
    consumer: Consumer,
    mut events: Events,
    seen: Arc<Mutex<Vec<(i32, i64)>>>,
    until: Arc<tokio::sync::Notify>,
) {
    let mut turns = BTreeMap::<i32, (Turn, i64)>::new();
    loop {
        let event = tokio::select! {
            event = event(&mut events) => event,
            () = until.notified() => break,
        };
        match event {
            Event::Assigned(partitions) => {
                let committed = consumer.committed(&partitions, Duration::from_secs(30)).await.unwrap();
                for Committed { partition, offset, .. } in committed {
                    let offset = offset.unwrap_or(0);
                    // It may be asked back by now.
                    if let Ok(turn) = consumer.begin(partition, offset) {
                        turns.insert(partition, (turn, offset));
                    }
                }
            }
            Event::Records(batch) => {
                let Some((turn, next)) = turns.get_mut(&batch.partition) else { continue };
                if *turn != batch.turn {
                    continue;
                }
                *next = batch.records.last().unwrap().at.offset + 1;
                seen.lock().unwrap().extend(batch.records.iter().map(|r| (r.at.partition, r.at.offset)));
            }
            Event::Revoked(partitions) => {
                commit(&consumer, &partitions, &turns).await;
                turns.retain(|partition, _| !partitions.contains(partition));
                consumer.give_up(&partitions).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    let all: Vec<i32> = turns.keys().copied().collect();
    commit(&consumer, &all, &turns).await;
    consumer.leave().await;
}

async fn commit(consumer: &Consumer, partitions: &[i32], turns: &BTreeMap<i32, (Turn, i64)>) {
    let marks = partitions.iter().filter_map(|partition| {
        let (_, offset) = turns.get(partition)?;
        Some(Mark { partition: *partition, offset: *offset, metadata: "done".to_owned() })
    });
    consumer.commit(marks.collect()).await.unwrap();
}

async fn two_members_share_while_records_flow_and_nothing_is_lost_or_seen_twice(ground: &Ground) {
    const PARTITIONS: i32 = 6;
    let (topic, group) = (ground.topic("share", PARTITIONS).await, new_group());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let member = |stop: &Arc<tokio::sync::Notify>| {
        let (consumer, events) = ground.join(&topic, &group);
        tokio::spawn(work(consumer, events, seen.clone(), stop.clone()))
    };
    let publisher = ground.publisher();
    let mut published = 0;
    let mut publish = async |many: i64| {
        for number in published..published + many {
            for partition in 0..PARTITIONS {
                soon(publisher.publish(numbered(&topic, partition, number))).await.unwrap();
            }
        }
        published += many;
        published * i64::from(PARTITIONS)
    };
    let all = async |many: i64| {
        let many = usize::try_from(many).unwrap();
        soon(async {
            while seen.lock().unwrap().len() < many {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    let stops: Vec<_> = (0..3).map(|_| Arc::new(tokio::sync::Notify::new())).collect();

    let first = member(&stops[0]);
    let many = publish(50).await;
    all(many).await;
    // Others come while records flow, and go again.
    let second = member(&stops[1]);
    publish(150).await;
    let third = member(&stops[2]);
    let many = publish(150).await;
    all(many).await;
    stops[0].notify_one();
    publish(150).await;
    stops[1].notify_one();
    let many = publish(50).await;
    all(many).await;
    stops[2].notify_one();
    for member in [first, second, third] {
        soon(member).await.unwrap();
    }
    let seen = seen.lock().unwrap();
    let once: BTreeSet<_> = seen.iter().copied().collect();
    assert_eq!((seen.len(), once.len()), (usize::try_from(many).unwrap(), usize::try_from(many).unwrap()));
}

async fn a_slow_receiver_keeps_its_membership(ground: &Ground) {
    let (topic, group) = (ground.topic("slow", 1).await, new_group());
    ground.fill(&topic, 1, 5_000).await;
    let mut settings = ground.settings();
    let intervals =
        [("session.timeout.ms", "6000"), ("max.poll.interval.ms", "7000"), ("heartbeat.interval.ms", "500")];
    for (name, value) in intervals {
        settings.properties.push((name.to_owned(), value.to_owned()));
    }
    let settings =
        ConsumerSettings { batch: 10, queue_batches: 1, ..ConsumerSettings::of(settings, topic, group) };
    let (consumer, mut events) = join(settings).unwrap();
    assigned(&mut events).await;
    let turn = consumer.begin(0, 0).unwrap();
    // A handler that takes longer than any interval, with everything full.
    let _ = tokio::time::timeout(Duration::from_secs(10), pending::<()>()).await;
    assert!(!consumer.is_lost());
    assert_eq!(take(&mut events, 0, turn, 5_000).await, (0..5_000).collect::<Vec<_>>());
    consumer.commit(vec![Mark { partition: 0, offset: 5_000, metadata: String::new() }]).await.unwrap();
    consumer.leave().await;
}

async fn what_waits_for_a_slow_receiver_is_bounded_in_bytes(ground: &Ground) {
    let topic = ground.topic("bytes", 1).await;
    ground.fill(&topic, 1, 2_000).await;
    let mut settings = ConsumerSettings::of(ground.settings(), topic, new_group());
    (settings.batch, settings.queue_batches, settings.queue_bytes) = (10, 1_000, 2_000);
    let (consumer, mut events) = join(settings).unwrap();
    assert_eq!(assigned(&mut events).await, [0]);
    let turn = consumer.begin(0, 0).unwrap();
    let mut most = 0;
    let mut seen = 0;
    while seen < 2_000 {
        let Event::Records(batch) = event(&mut events).await else { panic!("only records are there") };
        assert_eq!(batch.turn, turn);
        seen += batch.records.len();
        most = most.max(events.waiting_bytes());
        tokio::task::yield_now().await;
    }
    // At most one handful more than it may be: ten records of a hundred bytes and a short key.
    assert!((1..3_100).contains(&most), "{most}");
    assert_eq!(events.waiting_bytes(), 0);
    consumer.leave().await;
}

async fn an_offset_that_is_not_there_is_reported_and_begun_elsewhere(ground: &Ground) {
    let topic = ground.topic("range", 2).await;
    ground.fill(&topic, 2, 100).await;
    let (consumer, mut events) = ground.join(&topic, &new_group());
    assigned(&mut events).await;
    let lost = consumer.begin(0, 1_000).unwrap();
    match event(&mut events).await {
        Event::OutOfRange { partition, turn } => assert_eq!((partition, turn), (0, lost)),
        other => panic!("{other:?}"),
    }
    assert_eq!(consumer.bounds(0).await.unwrap(), (0, 100));
    let turn = consumer.begin(0, 40).unwrap();
    assert_eq!(take(&mut events, 0, turn, 60).await, (40..100).collect::<Vec<_>>());
    let turn = consumer.begin(1, 90).unwrap();
    assert_eq!(take(&mut events, 1, turn, 10).await, (90..100).collect::<Vec<_>>());
    consumer.leave().await;
}

async fn what_never_began_is_given_up_all_the_same(ground: &Ground) {
    let (topic, group) = (ground.topic("never", 4).await, new_group());
    ground.fill(&topic, 4, 10).await;
    let (first, mut events) = ground.join(&topic, &group);
    assert_eq!(assigned(&mut events).await, [0, 1, 2, 3]);
    let (second, mut others) = ground.join(&topic, &group);
    let Event::Revoked(mut revoked) = event(&mut events).await else { panic!("a revocation") };
    revoked.sort_unstable();
    assert_eq!(revoked.len(), 2);
    assert!(first.begin(revoked[0], 0).is_err(), "it is asked back");
    // One by one: the group waits for the last.
    for partition in &revoked {
        first.give_up(&[*partition]).unwrap();
    }
    let mut given = assigned(&mut others).await;
    given.sort_unstable();
    assert_eq!(given, revoked);
    let turn = second.begin(given[0], 3).unwrap();
    assert_eq!(take(&mut others, given[0], turn, 7).await, (3..10).collect::<Vec<_>>());
    let kept = (0..4).find(|partition| !revoked.contains(partition)).unwrap();
    let turn = first.begin(kept, 0).unwrap();
    loop {
        match event(&mut events).await {
            Event::Assigned(none) => assert!(none.is_empty()),
            Event::Records(batch) => break assert_eq!((batch.partition, batch.turn), (kept, turn)),
            other => panic!("{other:?}"),
        }
    }
    first.leave().await;
    second.leave().await;
}

async fn pausing_and_resuming_loses_and_repeats_nothing(ground: &Ground) {
    let topic = ground.topic("pause", 1).await;
    ground.fill(&topic, 1, 20_000).await;
    let settings = ConsumerSettings::of(ground.settings(), topic, new_group());
    let (consumer, mut events) = join(ConsumerSettings { batch: 50, queue_batches: 2, ..settings }).unwrap();
    assigned(&mut events).await;
    consumer.begin(0, 0).unwrap();
    let mut offsets = Vec::new();
    let mut pauses = 0;
    while offsets.len() < 20_000 {
        let Event::Records(batch) = event(&mut events).await else { panic!("only records are there") };
        offsets.extend(batch.records.iter().map(|record| record.at.offset));
        if offsets.len() / 1_000 > pauses {
            pauses += 1;
            consumer.pause(0).unwrap();
            consumer.resume(0).unwrap();
        }
    }
    assert_eq!(offsets, (0..20_000).collect::<Vec<_>>());
    consumer.pause(0).unwrap();
    assert!(matches!(consumer.pause(1), Err(Error::NotOurs { .. })));
    consumer.leave().await;
}

async fn a_group_is_asked_and_told(ground: &Ground) {
    let (topic, group) = (ground.topic_with("asked", 2, &[("retention.ms", "-1")]).await, new_group());
    let publisher = ground.publisher();
    for (number, millis) in [(0, 1_700_000_000_000), (1, 1_700_000_001_000)] {
        let timestamp = Some(Timestamp::from_millis(millis));
        soon(publisher.publish(Outgoing { timestamp, ..numbered(&topic, 1, number) })).await.unwrap();
    }
    let (consumer, mut events) = ground.join(&topic, &group);
    assigned(&mut events).await;
    assert_eq!(consumer.partitions().await.unwrap(), 2);
    assert_eq!(consumer.bounds(1).await.unwrap(), (0, 2));
    let at = async |millis| consumer.offset_at(1, Timestamp::from_millis(millis)).await.unwrap();
    assert_eq!(at(1_700_000_000_500).await, Some(1));
    assert_eq!(at(1_700_000_009_000).await, None);
    let timeout = Duration::from_secs(30);
    consumer.commit(Vec::new()).await.unwrap();
    consumer.commit(vec![Mark { partition: 1, offset: 2, metadata: "ranges".to_owned() }]).await.unwrap();
    let committed = consumer.committed(&[0, 1], timeout).await.unwrap();
    let expected = [(0, None, ""), (1, Some(2), "ranges")];
    let expected = expected.map(|(partition, offset, metadata)| Committed {
        partition,
        offset,
        metadata: metadata.to_owned(),
    });
    assert_eq!(committed, expected);
    assert!(consumer.group_metadata().is_some());
    consumer.leave().await;
}

async fn a_topic_that_is_missing_is_trouble_and_then_none(ground: &Ground) {
    let topic: Topic = redrive_testkit::new_name("missing").parse().unwrap();
    let mut settings = ground.settings();
    settings.properties.push(("topic.metadata.refresh.interval.ms".to_owned(), "500".to_owned()));
    let (consumer, mut events) = join(ConsumerSettings::of(settings, topic.clone(), new_group())).unwrap();
    let trouble = loop {
        match soon(events.next()).await.unwrap() {
            Event::Trouble(error) => break error,
            Event::Assigned(none) => assert!(none.is_empty()),
            other => panic!("{other:?}"),
        }
    };
    assert!(trouble.to_string().contains(topic.as_str()), "{trouble}");
    assert!(consumer.partitions().await.is_err());
    if let Some(broker) = &ground.broker {
        broker.create_topic(topic.as_str(), 1).unwrap();
        assert_eq!(assigned(&mut events).await, [0]);
    }
    consumer.leave().await;
}

/// Whatever the coordinator does: a program whose brokers are away must be able to end.
#[test]
fn a_runtime_ends_while_a_commit_waits_for_a_broker_that_is_gone() {
    let broker_side = tokio::runtime::Runtime::new().unwrap();
    let client_side = tokio::runtime::Runtime::new().unwrap();
    let ground = broker_side.block_on(Ground::embedded());
    let (consumer, _events) = client_side.block_on(async {
        let topic = ground.topic("gone", 1).await;
        let (consumer, mut events) = ground.join(&topic, &new_group());
        assert_eq!(assigned(&mut events).await, [0]);
        (consumer, events)
    });
    drop(ground);
    broker_side.shutdown_background();
    let mark = Mark { partition: 0, offset: 0, metadata: String::new() };
    let (began, begins) = std::sync::mpsc::channel();
    client_side.spawn(async move {
        let mut commit = std::pin::pin!(consumer.commit(vec![mark]));
        let answer = std::future::poll_fn(|context| {
            let polled = commit.as_mut().poll(context);
            let _ = began.send(());
            polled
        });
        let _ = answer.await;
    });
    begins.recv().unwrap();
    let (ended, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(client_side);
        let _ = ended.send(());
    });
    // Much less than librdkafka would wait for its coordinator.
    ends.recv_timeout(Duration::from_secs(20)).expect("the runtime ends");
}
