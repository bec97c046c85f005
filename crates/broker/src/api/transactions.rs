//! The APIs of transactional and idempotent producers: the coordinator decides, and where it decides
//! that a transaction ends, the node carries that out before anyone is told.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, ApiKey, EndTxnRequest, EndTxnResponse,
    InitProducerIdRequest, InitProducerIdResponse, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};

use super::{Answer, Call};
use crate::node::Node;
use crate::server::guard::Malformed;
use crate::transactions::{End, Init};

pub(super) fn answer(node: &Node, api: ApiKey, call: &Call) -> Result<Answer, Malformed> {
    let transactions = &node.transactions;
    match api {
        ApiKey::InitProducerId => call.plain(|req, version| init(node, &req, version)),
        ApiKey::AddPartitionsToTxn => call.plain(|req: AddPartitionsToTxnRequest, version| {
            transactions
                .add_partitions(&req, version, |topic, partition| node.topics.has_partition(topic, partition))
        }),
        ApiKey::AddOffsetsToTxn => {
            call.plain(|req: AddOffsetsToTxnRequest, version| transactions.add_offsets(&req, version))
        }
        ApiKey::TxnOffsetCommit => call.plain(|req, version| commit_offsets(node, &req, version)),
        ApiKey::EndTxn => call.plain(|req, version| end(node, &req, version)),
        other => Ok(Answer::Close(format!("{other:?} is not answered"))),
    }
}

/// A new producer id or epoch. An open transaction of the same id is aborted first, which takes one turn.
fn init(node: &Node, request: &InitProducerIdRequest, version: i16) -> InitProducerIdResponse {
    const TURNS: usize = 3;
    for _ in 0..TURNS {
        match node.transactions.init_producer_id(request, version) {
            Init::Reply(response) => return response,
            Init::EndFirst(ending) => {
                if node.carry_out(&ending).is_err() {
                    break;
                }
            }
        }
    }
    InitProducerIdResponse::default().with_error_code(ResponseError::ConcurrentTransactions.code())
}

fn end(node: &Node, request: &EndTxnRequest, version: i16) -> EndTxnResponse {
    match node.transactions.end(request, version) {
        End::Reply(response) => response,
        End::CarryOut(ending) => {
            // Decided, whether or not all of it could be done at once: the rest follows in the background, and
            // until then the producer is told to wait when it begins anew.
            let _ = node.carry_out(&ending);
            EndTxnResponse::default()
        }
    }
}

fn commit_offsets(node: &Node, request: &TxnOffsetCommitRequest, version: i16) -> TxnOffsetCommitResponse {
    let (id, producer, epoch) = (&request.transactional_id, request.producer_id.0, request.producer_epoch);
    // Asked by the groups at the moment of writing: a transaction may end while its offsets arrive.
    let verify = || node.transactions.verify_offsets(id, producer, epoch, &request.group_id, version);
    node.groups.txn_offset_commit(request, |topic| node.topics.get(topic).is_some(), verify)
}
