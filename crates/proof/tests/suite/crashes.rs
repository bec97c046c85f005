//! Killed at random moments, again and again.

use crate::on_both;
use crate::place::{Place, Sent};

const ROUNDS: u64 = 8;

on_both!(killed_at_random_moments_again_and_again_it_loses_nothing_and_keeps_the_order);

async fn killed_at_random_moments_again_and_again_it_loses_nothing_and_keeps_the_order(place: Place) {
    place.topics(3).await;
    let sent = place.send((0..5_000).map(|n| (format!("key-{}", n % 20), value(n)))).await;
    let mut chance = Chance::new();
    for round in 0..ROUNDS {
        let before = place.calls().starts();
        let worker = worker(&place);
        let enough = before + chance.below(1_200) as usize;
        place.until_progress(&format!("round {round}"), enough, sent.len()).await;
        worker.kill();
    }
    let worker = worker(&place);
    let verdict = place.judge(&sent, 3).await;
    worker.stop_well().await;
    let permanent = (0..5_000).filter(|n| value(*n) == "permanent").count();
    let buried: std::collections::BTreeSet<_> = verdict.letters.iter().map(crate::calls::origin).collect();
    assert_eq!(buried.len(), permanent, "each of the bad records, and no other, is a letter");
}

/// With a name of its own in the group it takes its partitions back at once, not after a session.
fn worker(place: &Place) -> crate::subject::Subject {
    place.worker().property("group.instance.id", "one").start()
}

fn value(n: u32) -> String {
    match n.wrapping_mul(2_654_435_761) >> 16 {
        chance if chance % 20 == 0 => "permanent".to_owned(),
        chance if chance % 20 == 1 => "transient:2".to_owned(),
        chance => format!("slow:{}", chance % 3),
    }
}

/// Numbers by chance, from a seed that is told when the test fails.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new() -> Self {
        use std::hash::{BuildHasher, Hasher};
        let seed = std::hash::RandomState::new().build_hasher().finish() | 1;
        println!("seed {seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// So many records of so many keys.
pub(crate) async fn send_many(place: &Place, records: u32, keys: u32, value: &str) -> Vec<Sent> {
    place.send((0..records).map(|n| (format!("key-{}", n % keys), value))).await
}
