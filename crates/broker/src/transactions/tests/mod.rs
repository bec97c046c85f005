//! The transaction coordinator as producers see it.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, GroupId, InitProducerIdRequest,
    InitProducerIdResponse, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use super::transaction::Identity;
use super::{End, Ending, Init, Transactions, TransactionsConfig};

mod ending;
mod fencing;
mod offsets;
mod properties;
mod restart;
mod versions;

/// So far in the future that every open transaction has expired.
const MUCH_LATER: i64 = i64::MAX;
const MAX_TIMEOUT_MS: i32 = 900_000;

fn transactions() -> Transactions {
    Transactions::open(None, TransactionsConfig::default()).unwrap()
}

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn id(value: &str) -> TransactionalId {
    TransactionalId(text(value))
}

fn init_request(transactional_id: Option<&str>) -> InitProducerIdRequest {
    InitProducerIdRequest::default()
        .with_transactional_id(transactional_id.map(id))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1)
}

fn claiming(identity: Identity) -> InitProducerIdRequest {
    init_request(Some("t"))
        .with_producer_id(ProducerId(identity.producer_id))
        .with_producer_epoch(identity.epoch)
}

/// The answer, where there is nothing to end first.
fn answer(transactions: &Transactions, req: &InitProducerIdRequest) -> InitProducerIdResponse {
    match transactions.init_producer_id(req, 5) {
        Init::Reply(response) => response,
        Init::EndFirst(ending) => panic!("unexpected: {ending:?}"),
    }
}

fn granted(response: &InitProducerIdResponse) -> Identity {
    assert_eq!(response.error_code, 0);
    Identity {
        producer_id: response.producer_id.0,
        epoch: response.producer_epoch,
    }
}

/// A producer of the id `t`, with nothing open.
fn producer(transactions: &Transactions) -> Identity {
    granted(&answer(transactions, &init_request(Some("t"))))
}

fn partitions_request(identity: Identity, partition: i32) -> AddPartitionsToTxnRequest {
    let topic = AddPartitionsToTxnTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(id("t"))
        .with_v3_and_below_producer_id(ProducerId(identity.producer_id))
        .with_v3_and_below_producer_epoch(identity.epoch)
        .with_v3_and_below_topics(vec![topic])
}

fn add_partition(transactions: &Transactions, identity: Identity, partition: i32) -> i16 {
    let response = transactions.add_partitions(&partitions_request(identity, partition), 3, |_, _| true);
    response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
}

fn add_group(transactions: &Transactions, identity: Identity) -> i16 {
    let req = AddOffsetsToTxnRequest::default()
        .with_transactional_id(id("t"))
        .with_producer_id(ProducerId(identity.producer_id))
        .with_producer_epoch(identity.epoch)
        .with_group_id(GroupId(text("g")));
    transactions.add_offsets(&req, 4).error_code
}

fn end_request(identity: Identity, commit: bool) -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(id("t"))
        .with_producer_id(ProducerId(identity.producer_id))
        .with_producer_epoch(identity.epoch)
        .with_committed(commit)
}

/// What is to be carried out, or the error.
fn end(transactions: &Transactions, identity: Identity, commit: bool) -> Result<Ending, i16> {
    match transactions.end(&end_request(identity, commit), 4) {
        End::CarryOut(ending) => Ok(ending),
        End::Reply(response) => Err(response.error_code),
    }
}

/// A producer with one partition in its open transaction.
fn open_transaction(transactions: &Transactions) -> Identity {
    let identity = producer(transactions);
    assert_eq!(add_partition(transactions, identity, 0), 0);
    identity
}
