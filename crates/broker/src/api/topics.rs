//! CreateTopics, DeleteTopics, CreatePartitions: changes to the list of topics, each judged for itself,
//! with Kafka's codes and reasons for what is refused.

use std::collections::{BTreeMap, HashMap};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse, TopicName,
};
use uuid::Uuid;

use super::{NODE, text, topic_name};
use crate::node::Node;
use crate::topics::config::{BadConfig, Config};
use crate::topics::{CreateError, Topic, known, name};

/// More would only be a mistake: each partition is a directory.
const MOST_PARTITIONS: i32 = 10_000;

/// A refusal: the code and the reason that is sent with it.
type Refusal = (ResponseError, String);

/// A topic that may be made.
struct Checked {
    partitions: i32,
    config: Config,
}

pub(super) fn create(node: &Node, request: CreateTopicsRequest, version: i16) -> CreateTopicsResponse {
    let mut seen: HashMap<String, usize> = HashMap::new();
    request.topics.iter().for_each(|topic| *seen.entry(topic.name.to_string()).or_default() += 1);
    let one = |wanted: CreatableTopic| {
        let outcome = match seen.get(wanted.name.as_str()) {
            Some(1) => create_one(node, &wanted, request.validate_only),
            _ => Err((ResponseError::InvalidRequest, "Duplicate topic name.".into())),
        };
        created(wanted.name, outcome, version)
    };
    let mut wanted = request.topics;
    // Named twice, refused once.
    let mut named = std::collections::HashSet::new();
    wanted.retain(|topic| named.insert(topic.name.clone()));
    CreateTopicsResponse::default().with_topics(wanted.into_iter().map(one).collect())
}

fn create_one(node: &Node, wanted: &CreatableTopic, validate_only: bool) -> Result<(Uuid, Checked), Refusal> {
    let checked = check(node, wanted)?;
    if validate_only {
        return Ok((Uuid::nil(), checked));
    }
    let topic = node
        .topics
        .create(&wanted.name, checked.partitions, checked.config.clone())
        .map_err(|error| refused(&error))?;
    Ok((topic.id, checked))
}

fn check(node: &Node, wanted: &CreatableTopic) -> Result<Checked, Refusal> {
    if let Some(fault) = name::fault(&wanted.name) {
        return Err((ResponseError::InvalidTopicException, fault.into()));
    }
    node.topics.check_free(&wanted.name).map_err(|error| refused(&error))?;
    let partitions = match wanted.assignments.is_empty() {
        true => count(node, wanted)?,
        false => assigned(wanted)?,
    };
    let mut overrides = BTreeMap::new();
    for entry in &wanted.configs {
        let value =
            entry.value.as_ref().ok_or_else(|| bad_config(&BadConfig::Null(entry.name.to_string())))?;
        overrides.insert(entry.name.to_string(), value.to_string());
    }
    let config = Config::new(overrides).map_err(|bad| bad_config(&bad))?;
    Ok(Checked { partitions, config })
}

fn count(node: &Node, wanted: &CreatableTopic) -> Result<i32, Refusal> {
    let factor = wanted.replication_factor;
    if factor != -1 && factor < 1 {
        return Err((
            ResponseError::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.".into(),
        ));
    }
    if factor > 1 {
        let reason = format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be reached because only 1 broker(s) are registered."
        );
        return Err((ResponseError::InvalidReplicationFactor, reason));
    }
    match wanted.num_partitions {
        -1 => Ok(node.config.default_partitions),
        n if n < 1 => {
            let reason = "Number of partitions was set to an invalid non-positive value.";
            Err((ResponseError::InvalidPartitions, reason.into()))
        }
        n if n > MOST_PARTITIONS => {
            Err((ResponseError::InvalidPartitions, format!("At most {MOST_PARTITIONS} partitions a topic.")))
        }
        n => Ok(n),
    }
}

/// The number of partitions that a manual assignment makes; every one must name this node.
fn assigned(wanted: &CreatableTopic) -> Result<i32, Refusal> {
    if wanted.num_partitions != -1 || wanted.replication_factor != -1 {
        let reason = "A manual partition assignment was specified, but a number of partitions or replicas was set too.";
        return Err((ResponseError::InvalidRequest, reason.into()));
    }
    let mut indexes: Vec<i32> = wanted.assignments.iter().map(|one| one.partition_index).collect();
    indexes.sort_unstable();
    let here = |one: &CreatableReplicaAssignment| one.broker_ids == [BrokerId(NODE)];
    if !indexes.iter().copied().eq(0..indexes.len() as i32) || !wanted.assignments.iter().all(here) {
        let reason = format!("Partitions are numbered from 0 on and assigned to broker {NODE} alone.");
        return Err((ResponseError::InvalidReplicaAssignment, reason));
    }
    Ok(indexes.len() as i32)
}

fn created(name: TopicName, outcome: Result<(Uuid, Checked), Refusal>, version: i16) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(name);
    match outcome {
        // The counts and the configuration came with version 5.
        Ok((id, checked)) if version >= 5 => result
            .with_topic_id(id)
            .with_num_partitions(checked.partitions)
            .with_replication_factor(1)
            .with_configs(Some(configs(&checked.config))),
        Ok(_) => result,
        Err((error, reason)) => result.with_error_code(error.code()).with_error_message(Some(text(reason))),
    }
}

fn configs(config: &Config) -> Vec<CreatableTopicConfigs> {
    let one = |known: known::Known| {
        let (value, is_set) = config.value(&known);
        CreatableTopicConfigs::default()
            .with_name(text(known.name))
            .with_value(Some(text(value)))
            .with_config_source(if is_set {
                super::configs::TOPIC_SOURCE
            } else {
                super::configs::DEFAULT_SOURCE
            })
    };
    known::all().into_iter().filter(|known| super::configs::is_shown(known, config)).map(one).collect()
}

fn refused(error: &CreateError) -> Refusal {
    let code = match error {
        CreateError::Exists => ResponseError::TopicAlreadyExists,
        CreateError::Collides(_) => ResponseError::InvalidTopicException,
        CreateError::Io(_) => ResponseError::KafkaStorageError,
    };
    (code, error.to_string())
}

pub(super) fn bad_config(bad: &BadConfig) -> Refusal {
    (ResponseError::InvalidConfig, bad.to_string())
}

pub(super) fn delete(node: &Node, request: DeleteTopicsRequest, version: i16) -> DeleteTopicsResponse {
    let by_name = |name: TopicName| DeleteTopicState::default().with_name(Some(name));
    // Ids came with version 6, in another field.
    let wanted: Vec<DeleteTopicState> = match version >= 6 {
        true => request.topics,
        false => request.topic_names.into_iter().map(by_name).collect(),
    };
    DeleteTopicsResponse::default()
        .with_responses(wanted.iter().map(|wanted| delete_one(node, wanted, version)).collect())
}

fn delete_one(node: &Node, wanted: &DeleteTopicState, version: i16) -> DeletableTopicResult {
    let (topic, missing) = match &wanted.name {
        Some(name) => (node.topics.get(name), ResponseError::UnknownTopicOrPartition),
        None => (node.topics.by_id(wanted.topic_id), ResponseError::UnknownTopicId),
    };
    let result =
        DeletableTopicResult::default().with_name(wanted.name.clone()).with_topic_id(wanted.topic_id);
    let Some(topic) = topic else {
        return result.with_error_code(missing.code());
    };
    let result = result.with_name(Some(topic_name(&topic.name)));
    let result = if version >= 6 { result.with_topic_id(topic.id) } else { result };
    match delete_whole(node, &topic) {
        Ok(()) => result,
        Err(error) => result.with_error_code(error.code()),
    }
}

fn delete_whole(node: &Node, topic: &Topic) -> Result<(), ResponseError> {
    let done = node.topics.delete(topic).and_then(|()| node.topic_deleted(&topic.name));
    done.map_err(|e| crate::topics::partition::storage_error(&e))
}

pub(super) fn create_partitions(node: &Node, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
    let one = |wanted: CreatePartitionsTopic| {
        let result = CreatePartitionsTopicResult::default();
        let outcome = grow(node, &wanted, request.validate_only);
        let result = match outcome {
            Ok(()) => result,
            Err((error, reason)) => {
                result.with_error_code(error.code()).with_error_message(Some(text(reason)))
            }
        };
        result.with_name(wanted.name)
    };
    CreatePartitionsResponse::default().with_results(request.topics.into_iter().map(one).collect())
}

fn grow(node: &Node, wanted: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    let missing = || {
        (ResponseError::UnknownTopicOrPartition, "This server does not host this topic-partition.".to_owned())
    };
    let changing = node.topics.changing();
    let topic = node.topics.get(&wanted.name).ok_or_else(missing)?;
    let have = topic.partitions().len() as i32;
    if wanted.count <= have {
        let reason = match wanted.count == have {
            true => format!("Topic already has {have} partition(s)."),
            false => format!(
                "The topic {} currently has {have} partition(s); {} would not be an increase.",
                topic.name, wanted.count
            ),
        };
        return Err((ResponseError::InvalidPartitions, reason));
    }
    if wanted.count > MOST_PARTITIONS {
        return Err((
            ResponseError::InvalidPartitions,
            format!("At most {MOST_PARTITIONS} partitions a topic."),
        ));
    }
    if let Some(assignments) = &wanted.assignments {
        let here = assignments.iter().all(|one| one.broker_ids == [BrokerId(NODE)]);
        if !here || assignments.len() as i32 != wanted.count - have {
            let reason = format!(
                "Each of the {} new partitions is assigned to broker {NODE} alone.",
                wanted.count - have
            );
            return Err((ResponseError::InvalidReplicaAssignment, reason));
        }
    }
    if validate_only {
        return Ok(());
    }
    let failed = |e: std::io::Error| (crate::topics::partition::storage_error(&e), e.to_string());
    node.topics.grow(&changing, &topic, wanted.count).map_err(failed)
}

/// One node: nothing is ever moved.
pub(super) fn no_reassignments(_: &ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default()
}
