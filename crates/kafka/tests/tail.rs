//! Tails that share a client are as separate as if they did not.

mod ground;

use ground::{Ground, soon};
use redrive_core::Topic;
use redrive_kafka::{Tail, Tailed, Tails, What};
use tokio::sync::mpsc;

on_both!(
    each_tail_gets_its_own_records_and_whoever_takes_none_holds_up_nobody,
    a_tail_that_ends_leaves_the_others_and_can_begin_anew,
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
                let What::Records(records) = what else { panic!("{what:?}") };
                for record in records {
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
        let What::Records(records) = &tailed[0].what else { panic!("{tailed:?}") };
        assert_eq!((tailed[0].partition, records[0].at.offset), (1, 0));
        drop(ending);
        staying.takes(&stays, 1, 100 * round, 100).await;
    }
}
