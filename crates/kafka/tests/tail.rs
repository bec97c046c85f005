//! Tails that share a client are as separate as if they did not.

mod ground;

use ground::{Ground, soon};
use redrive_core::Topic;
use redrive_kafka::{Line, Outgoing, Publisher, Publishing, Tail, Tailed, Tails, What};
use tokio::sync::mpsc;

on_both!(
    each_tail_gets_its_own_records_and_whoever_takes_none_holds_up_nobody,
    a_tail_that_ends_leaves_the_others_and_can_begin_anew,
    the_payload_of_what_waits_stays_where_it_is_and_is_counted,
);

struct Follower {
    tail: Tail,
    tailed: mpsc::Receiver<Vec<Tailed>>,
}

fn follow(tails: &Tails, topic: &Topic, partitions: i32) -> Follower {
    let (tail, tailed) = tails.follow(topic.clone(), partitions).unwrap();
    for partition in 0..partitions {
        tail.add(partition, 7).unwrap();
    }
    Follower { tail, tailed }
}

impl Follower {
    /// Takes so many records and checks that each partition's come in order, from this offset on.
    async fn takes(&mut self, topic: &Topic, partitions: i32, from: i64, each: i64) {
        let mut next = vec![from; partitions as usize];
        while next.iter().any(|next| *next < from + each) {
            for Tailed { partition, turn, what } in soon(self.tailed.recv()).await.unwrap() {
                assert_eq!(turn, 7);
                let What::Records(lines) = what else { panic!("{what:?}") };
                for Line { record, .. } in lines {
                    assert_eq!((&record.at.topic, record.at.partition), (topic, partition));
                    assert_eq!(record.at.offset, next[partition as usize]);
                    next[partition as usize] += 1;
                }
            }
        }
        assert_eq!(next, vec![from + each; partitions as usize]);
    }
}

async fn each_tail_gets_its_own_records_and_whoever_takes_none_holds_up_nobody(ground: &Ground) {
    let tails = Tails::new(&ground.settings());
    let topics =
        [ground.topic("tail", 2).await, ground.topic("tail", 3).await, ground.topic("tail", 1).await];
    let [mut first, mut second, mut stuck] =
        [(&topics[0], 2), (&topics[1], 3), (&topics[2], 1)].map(|(topic, many)| follow(&tails, topic, many));
    // More than what may wait for it.
    ground.fill(&topics[2], 1, 10_000).await;
    for round in 0..3 {
        ground.fill(&topics[0], 2, 500).await;
        ground.fill(&topics[1], 3, 500).await;
        first.takes(&topics[0], 2, round * 500, 500).await;
        second.takes(&topics[1], 3, round * 500, 500).await;
    }
    stuck.takes(&topics[2], 1, 0, 10_000).await;
}

async fn a_tail_that_ends_leaves_the_others_and_can_begin_anew(ground: &Ground) {
    let tails = Tails::new(&ground.settings());
    let (stays, ends) = (ground.topic("stays", 1).await, ground.topic("ends", 2).await);
    let mut staying = follow(&tails, &stays, 1);
    for round in 0..3 {
        ground.fill(&ends, 2, 100).await;
        ground.fill(&stays, 1, 100).await;
        let mut ending = follow(&tails, &ends, 2);
        ending.takes(&ends, 2, 0, 100 * (round + 1)).await;
        // One partition again, from its first record on; then all end.
        ending.tail.remove(1);
        ending.tail.add(1, 7).unwrap();
        let tailed = soon(ending.tailed.recv()).await.unwrap();
        let What::Records(lines) = &tailed[0].what else { panic!("{tailed:?}") };
        assert_eq!((tailed[0].partition, lines[0].record.at.offset), (1, 0));
        drop(ending);
        staying.takes(&stays, 1, 100 * round, 100).await;
    }
}

async fn the_payload_of_what_waits_stays_where_it_is_and_is_counted(ground: &Ground) {
    let topic = ground.topic("entries", 1).await;
    let publisher = Publisher::new(&ground.settings(), &Publishing::default()).unwrap();
    let entry = |head: &'static str| {
        Outgoing::to(topic.clone()).key("key").value("value").header("redrive-entry", head)
    };
    for head in ["1 wait 00000000000000ff-3 7 9", "1 replay", "2 wait 00000000000000ff-3 7 9"] {
        soon(publisher.publish(entry(head))).await.unwrap();
    }
    let mut follower = follow(&Tails::new(&ground.settings()), &topic, 1);
    let mut lines = Vec::new();
    while lines.len() < 3 {
        for Tailed { what, .. } in soon(follower.tailed.recv()).await.unwrap() {
            let What::Records(more) = what else { panic!("{what:?}") };
            lines.extend(more);
        }
    }
    let payloads: Vec<_> =
        lines.iter().map(|line| (line.record.key.as_deref(), line.record.value.as_deref())).collect();
    let whole = (Some(&b"key"[..]), Some(&b"value"[..]));
    assert_eq!(payloads, [(None, None), whole, whole]);
    assert_eq!(lines[0].record.headers.text("redrive-entry"), Some("1 wait 00000000000000ff-3 7 9"));
    assert_eq!((lines[0].size, lines[1].size), (3 + 5 + 13 + 29, lines[1].record.size()));
}
