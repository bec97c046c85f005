//! Offsets in transactions, with the group coordinator: visible if and only if committed.

use std::collections::BTreeMap;

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{OffsetFetchRequest, TxnOffsetCommitRequest};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};

use super::*;
use crate::groups::{Groups, GroupsConfig};

#[derive(Debug, Clone, Copy)]
enum Step {
    Commit {
        partition: i32,
        offset: i64,
    },
    /// By the former holder of the id, which does not yet know.
    CommitLate {
        partition: i32,
        offset: i64,
    },
    End {
        commit: bool,
    },
    Expire,
    TakeOver,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3i32, 0..1_000i64).prop_map(|(partition, offset)| Step::Commit { partition, offset }),
        1 => (0..3i32, 0..1_000i64).prop_map(|(partition, offset)| Step::CommitLate { partition, offset }),
        2 => any::<bool>().prop_map(|commit| Step::End { commit }),
        1 => prop_oneof![Just(Step::Expire), Just(Step::TakeOver), Just(Step::Restart)],
    ];
    prop::collection::vec(step, 1..40)
}

struct World {
    dir: tempfile::TempDir,
    transactions: Transactions,
    groups: Groups,
    identity: Identity,
    fenced: Identity,
    held: BTreeMap<i32, i64>,
    visible: BTreeMap<i32, i64>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (transactions, groups) = open(&dir);
        let fenced = producer(&transactions);
        let identity = producer(&transactions);
        Self {
            fenced,
            dir,
            transactions,
            groups,
            identity,
            held: BTreeMap::new(),
            visible: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Commit { partition, offset } => {
                assert_eq!(add_group(&self.transactions, self.identity), 0);
                assert_eq!(self.hold(self.identity, partition, offset), 0);
                self.held.insert(partition, offset);
            }
            Step::CommitLate { partition, offset } => {
                assert_ne!(self.hold(self.fenced, partition, offset), 0);
            }
            Step::End { commit } => {
                if let Ok(ending) = end(&self.transactions, self.identity, commit) {
                    self.carry_out(&ending);
                }
            }
            Step::Expire => {
                for ending in self.transactions.expire(MUCH_LATER) {
                    self.carry_out(&ending);
                }
                self.take_over();
            }
            Step::TakeOver => self.take_over(),
            Step::Restart => (self.transactions, self.groups) = open(&self.dir),
        }
        assert_eq!(self.fetched(), self.visible);
    }

    fn hold(&self, by: Identity, partition: i32, offset: i64) -> i16 {
        let verify = || {
            self.transactions
                .verify_offsets("t", by.producer_id, by.epoch, "g", 4)
        };
        let req = commit_request(by, partition, offset);
        self.groups.txn_offset_commit(&req, |_| true, verify).topics[0].partitions[0].error_code
    }

    fn take_over(&mut self) {
        self.fenced = self.identity;
        self.identity = loop {
            match self.transactions.init_producer_id(&init_request(Some("t")), 5) {
                Init::Reply(response) => break granted(&response),
                Init::EndFirst(ending) => self.carry_out(&ending),
            }
        };
    }

    fn carry_out(&mut self, ending: &Ending) {
        self.groups
            .complete_transaction(ending.producer_id, &ending.groups, ending.commit)
            .unwrap();
        // The process dies before the coordinator learns of it, and the next one repeats it.
        (self.transactions, self.groups) = open(&self.dir);
        assert_eq!(self.transactions.unfinished(), std::slice::from_ref(ending));
        self.groups
            .complete_transaction(ending.producer_id, &ending.groups, ending.commit)
            .unwrap();
        self.transactions.complete(ending).unwrap();
        let held = std::mem::take(&mut self.held);
        if ending.commit {
            self.visible.extend(held);
        }
    }

    fn fetched(&self) -> BTreeMap<i32, i64> {
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(GroupId(text("g")))
            .with_topics(None);
        let response = self
            .groups
            .offset_fetch(&OffsetFetchRequest::default().with_groups(vec![group]), 9);
        let topics = response.groups[0].topics.iter();
        topics
            .flat_map(|topic| &topic.partitions)
            .map(|each| (each.partition_index, each.committed_offset))
            .collect()
    }
}

fn open(dir: &tempfile::TempDir) -> (Transactions, Groups) {
    let transactions = Transactions::open(Some(dir.path()), TransactionsConfig::default()).unwrap();
    (
        transactions,
        Groups::open(Some(dir.path()), GroupsConfig::default()).unwrap(),
    )
}

fn commit_request(identity: Identity, partition: i32, offset: i64) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset);
    let topic = TxnOffsetCommitRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    TxnOffsetCommitRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_producer_id(ProducerId(identity.producer_id))
        .with_producer_epoch(identity.epoch)
        .with_generation_id(-1)
        .with_topics(vec![topic])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn offsets_are_visible_if_and_only_if_their_transaction_committed(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}
