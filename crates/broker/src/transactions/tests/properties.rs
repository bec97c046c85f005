//! Random lives of a transactional id: two producers fight for it, answers are late, time passes.

use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

use crate::transactions::Ending;
use crate::transactions::transaction::{Identity, Initialised, Phase, Touched, Transaction};

const PRODUCERS: usize = 2;
const TIMEOUT_MS: i32 = 1_000;

#[derive(Debug, Clone, Copy)]
enum Step {
    Init {
        producer: usize,
        claims: bool,
    },
    Add {
        producer: usize,
        partition: i32,
    },
    End {
        producer: usize,
        commit: bool,
    },
    /// The caller finishes carrying out what it was given.
    Complete,
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let producer = 0..PRODUCERS;
    let step = prop_oneof![
        2 => (producer.clone(), any::<bool>()).prop_map(|(producer, claims)| Step::Init { producer, claims }),
        4 => (producer.clone(), 0..3i32).prop_map(|(producer, partition)| Step::Add { producer, partition }),
        3 => (producer, any::<bool>()).prop_map(|(producer, commit)| Step::End { producer, commit }),
        3 => proptest::prelude::Just(Step::Complete),
        1 => (1..1_500i64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

struct World {
    transaction: Transaction,
    now: i64,
    identities: Vec<Option<Identity>>,
    under_way: Option<Ending>,
    next_producer_id: i64,
    /// The highest epoch a producer was given, or a marker carried, by producer id.
    highest: BTreeMap<i64, i16>,
    begun: u32,
    ended: u32,
}

impl World {
    fn new(epoch: i16) -> Self {
        let transaction = Transaction {
            epoch,
            ..Transaction::first("t", 0, TIMEOUT_MS, 0)
        };
        let first = Identity {
            producer_id: 0,
            epoch,
        };
        Self {
            transaction,
            now: 0,
            identities: vec![Some(first), None],
            under_way: None,
            next_producer_id: 1,
            highest: BTreeMap::from([(0, epoch)]),
            begun: 0,
            ended: 0,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Init { producer, claims } => self.init(producer, claims),
            Step::Add { producer, partition } => self.add(producer, partition),
            Step::End { producer, commit } => self.end(producer, commit),
            Step::Complete => self.complete(),
            Step::Pass(ms) => self.pass(ms),
        }
    }

    fn holds(&self, producer: usize) -> bool {
        let held = Identity {
            producer_id: self.transaction.producer_id,
            epoch: self.transaction.epoch,
        };
        self.identities[producer] == Some(held)
    }

    fn init(&mut self, producer: usize, claims: bool) {
        let claimed = self.identities[producer].filter(|_| claims);
        match self.transaction.init(claimed, TIMEOUT_MS, self.now) {
            Err(_) => {}
            Ok(Initialised::Ready(next)) => self.grant(producer, next),
            Ok(Initialised::NeedsProducerId) => {
                let next = self
                    .transaction
                    .rotate(self.next_producer_id, claimed, TIMEOUT_MS, self.now);
                self.next_producer_id += 1;
                self.grant(producer, next);
            }
            Ok(Initialised::Fenced(next, ending)) => self.begin_ending(next, ending),
        }
    }

    fn grant(&mut self, producer: usize, next: Transaction) {
        assert!(
            self.under_way.is_none(),
            "nobody begins while markers are on their way"
        );
        assert!(next.epoch < i16::MAX, "one epoch is left to fence with");
        self.transaction = next;
        let highest = self.highest.entry(self.transaction.producer_id).or_insert(-1);
        assert!(self.transaction.epoch >= *highest, "epochs grow");
        *highest = self.transaction.epoch;
        let identity = Identity {
            producer_id: self.transaction.producer_id,
            epoch: self.transaction.epoch,
        };
        self.identities[producer] = Some(identity);
    }

    fn add(&mut self, producer: usize, partition: i32) {
        let Some(identity) = self.identities[producer] else {
            return;
        };
        let was_open = matches!(self.transaction.phase, Phase::Ongoing { .. });
        match self
            .transaction
            .add(identity, &Touched::partition("orders", partition), self.now)
        {
            Ok(Some(next)) => {
                assert!(self.holds(producer), "only the holder adds");
                self.begun += u32::from(!was_open);
                self.transaction = next;
            }
            Ok(None) => assert!(self.holds(producer) && was_open),
            Err(_) => {}
        }
    }

    fn end(&mut self, producer: usize, commit: bool) {
        let Some(identity) = self.identities[producer] else {
            return;
        };
        if let Ok(Some((next, ending))) = self.transaction.end(identity, commit, self.now) {
            assert!(self.holds(producer), "only the holder ends");
            assert_eq!(ending.commit, commit);
            self.begin_ending(next, ending);
        }
    }

    fn begin_ending(&mut self, next: Transaction, ending: Ending) {
        assert!(self.under_way.is_none(), "one ending per transaction");
        let highest = self.highest.entry(ending.producer_id).or_insert(-1);
        assert!(
            ending.epoch >= *highest,
            "no marker with an epoch from before the fence"
        );
        *highest = ending.epoch;
        self.ended += 1;
        assert_eq!(self.ended, self.begun, "one ending per transaction");
        assert_eq!(
            next.ending(),
            Some(ending.clone()),
            "a restart finds the same ending"
        );
        self.transaction = next;
        self.under_way = Some(ending);
    }

    fn complete(&mut self) {
        let Some(ending) = self.under_way.take() else {
            return;
        };
        self.transaction = self
            .transaction
            .complete(&ending, self.now)
            .expect("what is under way completes");
        assert_eq!(self.transaction.complete(&ending, self.now), None, "once");
    }

    fn pass(&mut self, ms: i64) {
        self.now += ms;
        let before = self.transaction.epoch;
        if let Some((next, ending)) = self.transaction.expire(self.now) {
            assert!(
                !ending.commit && ending.epoch == before + 1,
                "aborted, and the producer shut out"
            );
            self.begin_ending(next, ending);
        }
        assert!(
            self.transaction.expires_ms().is_none_or(|at| at > self.now),
            "nothing stays open for ever"
        );
    }
}

proptest! {
    #[test]
    fn whoever_fights_for_an_id_each_transaction_ends_once_and_epochs_grow(
        steps in steps(),
        nearly_exhausted in any::<bool>(),
    ) {
        let mut world = World::new(if nearly_exhausted { i16::MAX - 3 } else { 0 });
        for step in steps {
            world.step(step);
        }
    }
}
