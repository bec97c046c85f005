//! Partitions of several topics are read from any offset on, to the ends they have now.

mod ground;

use std::collections::BTreeMap;
use std::time::Duration;

use ground::{Ground, soon};
use redrive_broker::faults::{ApiKey, Effect, Fault};
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Passage, Picker, Reader, Scan, Scanned, Settings, Walk, read_through};
use tokio::task::spawn_blocking;

on_both!(
    partitions_of_several_topics_are_read_to_their_ends,
    beginnings_and_ends_are_told_after_records_were_deleted,
    an_offset_that_is_gone_is_told_and_the_partition_can_be_read_anew,
);

fn origin(topic: &Topic, partition: i32, offset: i64) -> Origin {
    Origin { topic: topic.clone(), partition, offset }
}

/// What is read from these offsets on until all have ended: the offsets of each, and where they end.
fn read(scan: &mut Scan, from: &[Origin]) -> BTreeMap<(Topic, i32), (Vec<i64>, i64)> {
    let mut read: BTreeMap<(Topic, i32), (Vec<i64>, i64)> = BTreeMap::new();
    for from in from {
        scan.add(from).unwrap();
    }
    let mut ended = 0;
    for _ in 0..600 {
        for scanned in scan.next(Duration::from_millis(100)) {
            match scanned {
                Scanned::Records(records) => {
                    for record in records {
                        let of = (record.at.topic.clone(), record.at.partition);
                        read.entry(of).or_default().0.push(record.at.offset);
                    }
                }
                Scanned::End(at) => {
                    ended += 1;
                    read.entry((at.topic, at.partition)).or_default().1 = at.offset;
                }
                other => panic!("{other:?}"),
            }
        }
        if ended == from.len() {
            return read;
        }
    }
    panic!("not in time: {read:?}");
}

async fn blocking<T: Send + 'static>(settings: Settings, work: impl FnOnce(Scan) -> T + Send + 'static) -> T {
    spawn_blocking(move || work(Scan::new(&settings).unwrap())).await.unwrap()
}

async fn partitions_of_several_topics_are_read_to_their_ends(ground: &Ground) {
    let (one, two) = (ground.topic("one", 2).await, ground.topic("two", 1).await);
    ground.fill(&one, 2, 50).await;
    ground.fill(&two, 1, 7).await;
    let from = [origin(&one, 0, 0), origin(&one, 1, 45), origin(&two, 0, 7)];
    let read = blocking(ground.settings(), move |mut scan| read(&mut scan, &from)).await;
    assert_eq!(read[&(one.clone(), 0)], ((0..50).collect(), 50));
    assert_eq!(read[&(one, 1)], ((45..50).collect(), 50));
    assert_eq!(read[&(two, 0)], (Vec::new(), 7));
}

async fn beginnings_and_ends_are_told_after_records_were_deleted(ground: &Ground) {
    let topic = ground.topic("bounds", 3).await;
    ground.fill(&topic, 2, 20).await;
    let admin = Admin::new(&ground.settings()).unwrap();
    admin.delete_records(&origin(&topic, 1, 12)).await.unwrap();
    let partitions: Vec<_> = (0..3).map(|partition| (topic.clone(), partition)).collect();
    let told = blocking(ground.settings(), move |scan| {
        (scan.begins(&partitions).unwrap(), scan.ends(&partitions).unwrap())
    });
    let (begins, ends) = told.await;
    assert_eq!(begins.into_values().collect::<Vec<_>>(), [0, 12, 0]);
    assert_eq!(ends.into_values().collect::<Vec<_>>(), [20, 20, 0]);
}

async fn an_offset_that_is_gone_is_told_and_the_partition_can_be_read_anew(ground: &Ground) {
    let topic = ground.topic("gone", 1).await;
    ground.fill(&topic, 1, 20).await;
    let admin = Admin::new(&ground.settings()).unwrap();
    admin.delete_records(&origin(&topic, 0, 12)).await.unwrap();
    let again = blocking(ground.settings(), {
        let topic = topic.clone();
        move |mut scan| {
            scan.add(&origin(&topic, 0, 3)).unwrap();
            let told = (0..600).flat_map(|_| scan.next(Duration::from_millis(100))).next();
            assert!(matches!(told, Some(Scanned::OutOfRange { partition: 0, .. })), "{told:?}");
            read(&mut scan, &[origin(&topic, 0, 12)])
        }
    });
    assert_eq!(again.await[&(topic, 0)], ((12..20).collect(), 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_comes_although_connections_break() {
    let ground = Ground::embedded().await;
    let topic = ground.topic("read", 1).await;
    ground.fill(&topic, 1, 10).await;
    let faults = ground.broker.as_ref().unwrap().faults();
    let break_off = || {
        for api in [ApiKey::Fetch, ApiKey::Metadata] {
            faults.order(Fault::next(api, Effect::Drop).times(3));
        }
    };
    let (settings, first) = (ground.settings(), origin(&topic, 0, 0));
    break_off();
    let through = read_through(&settings, topic.clone(), vec![0], 0, |count, passage| {
        *count += i64::from(matches!(passage, Passage::Record(_)));
    });
    assert_eq!(soon(through).await.unwrap(), 10);
    break_off();
    let reader = Reader::from(&settings, first.clone()).unwrap();
    for offset in 0..10 {
        assert_eq!(soon(reader.next()).await.unwrap().at.offset, offset);
    }
    break_off();
    let picked = soon(Picker::new(&settings).unwrap().pick(first.clone(), 9)).await.unwrap();
    assert_eq!(picked.first().map(|record| record.at.offset), Some(0));
    break_off();
    let walked = soon(Walk::new(&settings).unwrap().bring(first, vec![0, 5, 9], 1 << 20)).await.unwrap();
    assert_eq!(walked.records.iter().map(|record| record.at.offset).collect::<Vec<_>>(), [0, 5, 9]);
}
