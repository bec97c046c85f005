//! AddPartitionsToTxn, AddOffsetsToTxn and EndTxn as they come over the wire.

use std::collections::BTreeSet;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    EndTxnRequest, EndTxnResponse,
};

use super::init::put;
use super::transaction::{Identity, Touched};
use super::{Ending, Transactions};
use crate::clock;

/// What EndTxn comes to.
#[derive(Debug)]
pub(crate) enum End {
    /// To be sent.
    Reply(EndTxnResponse),
    /// To be carried out and completed, then answered without an error.
    CarryOut(Ending),
}

impl Transactions {
    /// All partitions become part of the transaction, or none.
    pub(crate) fn add_partitions(
        &self,
        req: &AddPartitionsToTxnRequest,
        version: i16,
        exists: impl Fn(&str, i32) -> bool,
    ) -> AddPartitionsToTxnResponse {
        let topics = &req.v3_and_below_topics;
        let named = topics.iter().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|partition| (topic.name.to_string(), *partition))
        });
        let partitions: BTreeSet<(String, i32)> = named.collect();
        if partitions
            .iter()
            .any(|(topic, partition)| !exists(topic, *partition))
        {
            return partitions_response(topics, |topic, partition| match exists(topic, partition) {
                true => ResponseError::OperationNotAttempted.code(),
                false => ResponseError::UnknownTopicOrPartition.code(),
            });
        }
        let identity = Identity {
            producer_id: req.v3_and_below_producer_id.0,
            epoch: req.v3_and_below_producer_epoch,
        };
        let touched = Touched {
            partitions,
            groups: BTreeSet::new(),
        };
        let result = self.add(&req.v3_and_below_transactional_id, identity, &touched);
        let error = code(result, version);
        partitions_response(topics, |_, _| error)
    }

    /// The offsets of a group become part of the transaction.
    pub(crate) fn add_offsets(&self, req: &AddOffsetsToTxnRequest, version: i16) -> AddOffsetsToTxnResponse {
        let identity = Identity {
            producer_id: req.producer_id.0,
            epoch: req.producer_epoch,
        };
        let result = self.add(&req.transactional_id, identity, &Touched::group(&req.group_id));
        AddOffsetsToTxnResponse::default().with_error_code(code(result, version))
    }

    fn add(&self, id: &str, identity: Identity, more: &Touched) -> Result<(), ResponseError> {
        if id.is_empty() {
            return Err(ResponseError::InvalidRequest);
        }
        let now = clock::now_ms();
        let mut book = self.book();
        let transaction = book
            .transactions
            .get(id)
            .ok_or(ResponseError::InvalidProducerIdMapping)?;
        let Some(next) = transaction.add(identity, more, now)? else {
            return Ok(());
        };
        put(&mut book, next, now)?;
        self.0.begun.notify_one();
        Ok(())
    }

    /// Commits or aborts. Asked again after the answer was lost, it answers the same.
    pub(crate) fn end(&self, req: &EndTxnRequest, version: i16) -> End {
        let identity = Identity {
            producer_id: req.producer_id.0,
            epoch: req.producer_epoch,
        };
        match self.prepare(&req.transactional_id, identity, req.committed) {
            Ok(Some(ending)) => End::CarryOut(ending),
            Ok(None) => End::Reply(EndTxnResponse::default()),
            Err(error) => End::Reply(EndTxnResponse::default().with_error_code(code(Err(error), version))),
        }
    }

    fn prepare(&self, id: &str, identity: Identity, commit: bool) -> Result<Option<Ending>, ResponseError> {
        if id.is_empty() {
            return Err(ResponseError::InvalidRequest);
        }
        let now = clock::now_ms();
        let mut book = self.book();
        let transaction = book
            .transactions
            .get(id)
            .ok_or(ResponseError::InvalidProducerIdMapping)?;
        let Some((next, ending)) = transaction.end(identity, commit, now)? else {
            return Ok(None);
        };
        put(&mut book, next, now)?;
        Ok(Some(ending))
    }
}

/// Before version 2 clients knew a fenced producer by another name.
fn code(result: Result<(), ResponseError>, version: i16) -> i16 {
    match result {
        Ok(()) => 0,
        Err(ResponseError::ProducerFenced) if version < 2 => ResponseError::InvalidProducerEpoch.code(),
        Err(error) => error.code(),
    }
}

fn partitions_response(
    topics: &[AddPartitionsToTxnTopic],
    error: impl Fn(&str, i32) -> i16,
) -> AddPartitionsToTxnResponse {
    let results = topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*partition)
                .with_partition_error_code(error(&topic.name, *partition))
        });
        AddPartitionsToTxnTopicResult::default()
            .with_name(topic.name.clone())
            .with_results_by_partition(partitions.collect())
    });
    AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(results.collect())
}
