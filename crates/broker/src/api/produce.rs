//! Produce: batches come in for partitions, offsets go out. Each partition is answered for itself; only
//! the batch's header is read here, and what is acknowledged has been written.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};

use super::{Answer, Call};
use crate::clock;
use crate::log::Appended;
use crate::log::batch::BatchHeader;
use crate::node::Node;
use crate::server::guard::Malformed;
use crate::topics::Topic;

pub(super) fn answer(node: &Node, call: &Call) -> Result<Answer, Malformed> {
    let request: ProduceRequest = call.decode()?;
    let wants_reply = request.acks != 0;
    let response = produce(node, request, call.version);
    if wants_reply {
        return Ok(call.reply::<ProduceRequest>(&response));
    }
    // Nobody reads an answer; a failure shows by the connection's end, as with Kafka.
    let failed = response
        .responses
        .iter()
        .flat_map(|t| &t.partition_responses)
        .any(|p| p.error_code != 0);
    Ok(if failed {
        Answer::Close("a batch without acknowledgement was refused".into())
    } else {
        Answer::Silence
    })
}

fn produce(node: &Node, request: ProduceRequest, version: i16) -> ProduceResponse {
    let has_acks = matches!(request.acks, -1..=1);
    let transactional_id = request.transactional_id.map(|id| id.to_string());
    let topic = |data: TopicProduceData| {
        let topic = node.topics.get(&data.name);
        let partition = |data: PartitionProduceData| {
            let outcome = match (&topic, has_acks) {
                (_, false) => Err(ResponseError::InvalidRequiredAcks),
                (None, true) => Err(ResponseError::UnknownTopicOrPartition),
                (Some(topic), true) => append(node, topic, &data, transactional_id.as_deref(), version),
            };
            describe(data.index, outcome)
        };
        let partitions = data.partition_data.into_iter().map(partition).collect();
        TopicProduceResponse::default()
            .with_name(data.name)
            .with_partition_responses(partitions)
    };
    ProduceResponse::default().with_responses(request.topic_data.into_iter().map(topic).collect())
}

fn append(
    node: &Node,
    topic: &Topic,
    data: &PartitionProduceData,
    transactional_id: Option<&str>,
    version: i16,
) -> Result<Appended, ResponseError> {
    /// The first version whose clients are all known to read it.
    const ZSTD_SINCE: i16 = 7;
    const ZSTD: i16 = 4;
    let partition = topic
        .partition(data.index)
        .ok_or(ResponseError::UnknownTopicOrPartition)?;
    let batch = data
        .records
        .as_ref()
        .filter(|records| !records.is_empty())
        .ok_or(ResponseError::InvalidRecord)?;
    if let Ok(header) = BatchHeader::parse(batch) {
        if header.codec() == ZSTD && version < ZSTD_SINCE {
            return Err(ResponseError::UnsupportedCompressionType);
        }
        if header.is_transactional() {
            node.verify_transaction(transactional_id, &header, (&topic.name, data.index), version)?;
        }
    }
    partition.produce(batch, topic.config().settings(), clock::now_ms())
}

fn describe(index: i32, outcome: Result<Appended, ResponseError>) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default().with_index(index);
    match outcome {
        Ok(appended) => response
            .with_base_offset(appended.base_offset)
            .with_log_append_time_ms(appended.timestamp)
            .with_log_start_offset(appended.log_start),
        Err(error) => response
            .with_error_code(error.code())
            .with_base_offset(-1)
            .with_log_append_time_ms(-1),
    }
}
