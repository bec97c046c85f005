//! The node over its data: what a topic that is asked for becomes, and endings that one log holds up.

use std::path::Path;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use super::{Node, TopicOutcome};
use crate::config::{BrokerConfig, Data};
use crate::log::batch::check_produced;
use crate::log::testing;
use crate::transactions::{End, Init};

fn open(dir: &Path) -> Node {
    Node::open(BrokerConfig { data: Data::Dir(dir.to_owned()), ..BrokerConfig::default() }).unwrap()
}

#[test]
fn a_topic_that_is_asked_for_again_grows_and_never_shrinks() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path());
    assert_eq!(node.create_topic("q", 2).unwrap(), TopicOutcome::Made);
    assert_eq!(node.create_topic("q", 2).unwrap(), TopicOutcome::Unchanged);
    assert_eq!(node.create_topic("q", 5).unwrap(), TopicOutcome::Grown { from: 2 });
    let refused = node.create_topic("q", 3).unwrap_err().to_string();
    assert!(refused.contains("has 5 partitions"), "{refused}");
    drop(node);
    assert_eq!(open(dir.path()).topics.get("q").unwrap().partitions().len(), 5);
}

/// Writes a record into both partitions of `t` and decides that its transaction is committed, no more.
fn decide(node: &Node) {
    let id = TransactionalId(StrBytes::from_static_str("id"));
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(id.clone()))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let Init::Reply(granted) = node.transactions.init_producer_id(&request, 4) else { panic!("a new id") };
    let topic = AddPartitionsToTxnTopic::default()
        .with_name(TopicName(StrBytes::from_static_str("t")))
        .with_partitions(vec![0, 1]);
    let request = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(id.clone())
        .with_v3_and_below_producer_id(granted.producer_id)
        .with_v3_and_below_producer_epoch(granted.producer_epoch)
        .with_v3_and_below_topics(vec![topic]);
    node.transactions.add_partitions(&request, 3, |_, _| true);
    let topic = node.topics.get("t").unwrap();
    for index in 0..2 {
        let batch = testing::batch(1).sequence(granted.producer_id.0, 0, 0).transactional().build();
        check_produced(&batch).unwrap();
        let config = topic.config();
        topic.partition(index).unwrap().produce(&batch, config.settings(), 0, |_| Ok(())).unwrap();
    }
    let request = EndTxnRequest::default()
        .with_transactional_id(id)
        .with_producer_id(granted.producer_id)
        .with_producer_epoch(granted.producer_epoch)
        .with_committed(true);
    assert!(matches!(node.transactions.end(&request, 3), End::CarryOut(_)));
}

/// How far a read-committed reader may read, and where the log ends.
fn ends(node: &Node, partition: i32) -> (i64, i64) {
    let partition = node.topics.get("t").unwrap().partition(partition).unwrap();
    let log = partition.log().unwrap();
    (log.stable_offset(), log.next_offset())
}

#[test]
fn a_log_that_cannot_be_read_holds_up_its_own_transactions_and_not_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path());
    node.create_topic("t", 2).unwrap();
    decide(&node);
    let log = dir.path().join("logs").join(node.topics.get("t").unwrap().id.to_string()).join("0");
    drop(node);
    let aside = dir.path().join("aside");
    std::fs::rename(&log, &aside).unwrap();
    std::fs::write(&log, "not a folder").unwrap();

    let node = open(dir.path());
    assert_eq!(ends(&node, 1), (2, 2), "the other partition has its marker");
    assert_eq!(node.transactions.unfinished().len(), 1);
    node.finish().unwrap_err();
    assert_eq!(ends(&node, 1), (2, 2), "and gets no second one");

    std::fs::remove_file(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    node.finish().unwrap();
    assert_eq!(ends(&node, 0), (2, 2));
    assert_eq!(node.transactions.unfinished(), []);
}
