//! Transactions by hand: every request that librdkafka makes for itself, with any id and epoch.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, ProducerId, TxnOffsetCommitRequest,
};

use crate::by_hand::Voice;
use crate::clock::eventually;
use crate::raw::{Connection, error, group_id, records, text, topic_name, transactional_id};
use crate::target::Target;

/// A transactional producer whose every step is the test's.
#[derive(Debug)]
pub struct HandProducer {
    /// The connection that it speaks over.
    pub connection: Connection,
    /// Its transactional id.
    pub id: String,
    /// The producer id that the coordinator gave it.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: i16,
}

impl Target {
    /// A producer by hand, initialised once the coordinator is ready.
    ///
    /// # Panics
    /// If the coordinator refuses.
    #[must_use]
    pub fn hand_producer(&self, id: &str) -> HandProducer {
        let mut connection = self.transaction_coordinator(id);
        let given = connection.init_producer(Some(id));
        assert_eq!(error(given.error_code), None);
        HandProducer {
            connection,
            id: id.to_owned(),
            producer: given.producer_id,
            epoch: given.producer_epoch,
        }
    }
}

impl HandProducer {
    /// Adds partition 0 of a topic to the transaction. Asked again while the last one is still being ended.
    pub fn add_partition(&mut self, topic: &str) -> Option<ResponseError> {
        let topic = AddPartitionsToTxnTopic::default().with_name(topic_name(topic)).with_partitions(vec![0]);
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(transactional_id(&self.id))
            .with_v3_and_below_producer_id(self.producer)
            .with_v3_and_below_producer_epoch(self.epoch)
            .with_v3_and_below_topics(vec![topic]);
        eventually("the last transaction has ended", || {
            let answer = self.connection.ask(&request, 3);
            let code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code;
            let refused = error(code);
            (refused != Some(ResponseError::ConcurrentTransactions)).then_some(refused)
        })
    }

    /// Produces one record to partition 0 in the transaction.
    pub fn produce(&mut self, topic: &str, sequence: i32) -> Option<ResponseError> {
        let batch = self.batch(sequence);
        let id = self.id.clone();
        error(self.connection.produce_in(Some(&id), topic, -1, batch).error_code)
    }

    fn batch(&self, sequence: i32) -> Bytes {
        records(&["in a transaction"], |_, record| {
            record.transactional = true;
            record.producer_id = self.producer.0;
            record.producer_epoch = self.epoch;
            record.sequence = sequence;
        })
    }

    /// Adds a group's offsets to the transaction.
    pub fn add_offsets(&mut self, group: &str) -> Option<ResponseError> {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(transactional_id(&self.id))
            .with_producer_id(self.producer)
            .with_producer_epoch(self.epoch)
            .with_group_id(group_id(group));
        eventually("the last transaction has ended", || {
            let refused = error(self.connection.ask(&request, 3).error_code);
            (refused != Some(ResponseError::ConcurrentTransactions)).then_some(refused)
        })
    }

    /// Commits an offset of partition 0 in the transaction, as this voice.
    pub fn commit_offset(
        &mut self,
        (group, voice): (&str, &Voice),
        topic: &str,
        offset: i64,
        metadata: &str,
    ) -> Option<ResponseError> {
        let partition = TxnOffsetCommitRequestPartition::default()
            .with_partition_index(0)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(text(metadata)));
        let topic = TxnOffsetCommitRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request = TxnOffsetCommitRequest::default()
            .with_transactional_id(transactional_id(&self.id))
            .with_group_id(group_id(group))
            .with_producer_id(self.producer)
            .with_producer_epoch(self.epoch)
            .with_generation_id(voice.generation)
            .with_member_id(voice.member.clone())
            .with_topics(vec![topic]);
        error(self.connection.ask(&request, 3).topics[0].partitions[0].error_code)
    }

    /// Commits or aborts.
    pub fn end(&mut self, committed: bool) -> Option<ResponseError> {
        let request = EndTxnRequest::default()
            .with_transactional_id(transactional_id(&self.id))
            .with_producer_id(self.producer)
            .with_producer_epoch(self.epoch)
            .with_committed(committed);
        eventually("the last transaction has ended", || {
            let refused = error(self.connection.ask(&request, 3).error_code);
            (refused != Some(ResponseError::ConcurrentTransactions)).then_some(refused)
        })
    }
}
