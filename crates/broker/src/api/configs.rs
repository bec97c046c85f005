//! DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: the configurations of topics, and what can be
//! seen of the broker's. A change is taken whole or not at all.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    incremental_alter_configs_request as incremental, incremental_alter_configs_response,
};
use kafka_protocol::protocol::StrBytes;

use super::{NODE, text, topics::bad_config};
use crate::config::Data;
use crate::node::Node;
use crate::topics::config::{BadConfig, Config};
use crate::topics::known::{self, Kind, Known};
use crate::topics::partition::storage_error;

pub(super) const TOPIC_SOURCE: i8 = 1;
const BROKER_SOURCE: i8 = 4;
pub(super) const DEFAULT_SOURCE: i8 = 5;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

type Refusal = (ResponseError, String);

/// What has no default is shown only where it was set.
pub(super) fn is_shown(known: &Known, config: &Config) -> bool {
    known.name != "internal.segment.bytes" || config.overrides().contains_key(known.name)
}

pub(super) fn describe(node: &Node, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let synonyms = request.include_synonyms;
    let one = |wanted: DescribeConfigsResource| {
        let result = DescribeConfigsResult::default().with_resource_type(wanted.resource_type);
        let asked = |name: &str| {
            wanted.configuration_keys.as_ref().is_none_or(|keys| keys.iter().any(|key| **key == *name))
        };
        let result = match described(node, &wanted, synonyms) {
            Ok(configs) => {
                result.with_configs(configs.into_iter().filter(|config| asked(&config.name)).collect())
            }
            Err((error, reason)) => {
                result.with_error_code(error.code()).with_error_message(Some(text(reason)))
            }
        };
        result.with_resource_name(wanted.resource_name.clone())
    };
    DescribeConfigsResponse::default().with_results(request.resources.into_iter().map(one).collect())
}

fn described(
    node: &Node,
    wanted: &DescribeConfigsResource,
    synonyms: bool,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    match wanted.resource_type {
        TOPIC => {
            let topic =
                node.topics.get(&wanted.resource_name).ok_or_else(|| unknown_topic(&wanted.resource_name))?;
            let config = topic.config();
            let shown = known::all().into_iter().filter(|known| is_shown(known, &config));
            Ok(shown.map(|known| topic_entry(&known, &config, synonyms)).collect())
        }
        BROKER => match wanted.resource_name.as_str() {
            "" => Ok(Vec::new()),
            name if name == NODE.to_string() => Ok(broker_entries(node)),
            name => Err((
                ResponseError::InvalidRequest,
                format!("Unexpected broker id, expected {NODE}, but received {name}"),
            )),
        },
        other => Err((ResponseError::InvalidRequest, format!("Unsupported resource type: {other}"))),
    }
}

fn topic_entry(known: &Known, config: &Config, synonyms: bool) -> DescribeConfigsResourceResult {
    let (value, is_set) = config.value(known);
    let synonym = |value: &str, source| {
        DescribeConfigsSynonym::default()
            .with_name(text(known.name))
            .with_value(Some(text(value)))
            .with_source(source)
    };
    let set = is_set.then(|| synonym(value, TOPIC_SOURCE));
    let all = set.into_iter().chain([synonym(known.default, DEFAULT_SOURCE)]);
    DescribeConfigsResourceResult::default()
        .with_name(text(known.name))
        .with_value(Some(text(value)))
        .with_config_source(if is_set { TOPIC_SOURCE } else { DEFAULT_SOURCE })
        .with_config_type(known.kind.wire_type())
        .with_synonyms(if synonyms { all.collect() } else { Vec::new() })
}

fn broker_entries(node: &Node) -> Vec<DescribeConfigsResourceResult> {
    let dir = match &node.config.data {
        Data::Memory => "memory".to_owned(),
        Data::Dir(path) => path.display().to_string(),
    };
    let entries = [
        ("auto.create.topics.enable", node.config.auto_create_topics.to_string(), 1),
        ("default.replication.factor", "1".to_owned(), 3),
        ("log.dirs", dir, 2),
        ("min.insync.replicas", "1".to_owned(), 3),
        ("node.id", NODE.to_string(), 3),
        ("num.partitions", node.config.default_partitions.to_string(), 3),
        ("socket.request.max.bytes", node.config.max_request_bytes.to_string(), 3),
    ];
    let entry = |(name, value, kind): (&str, String, i8)| {
        DescribeConfigsResourceResult::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
            .with_read_only(true)
            .with_config_source(BROKER_SOURCE)
            .with_config_type(kind)
    };
    entries.into_iter().map(entry).collect()
}

/// Replaces all that was set, as the old API does.
pub(super) fn alter(node: &Node, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let one = |wanted: AlterConfigsResource| {
        let outcome =
            change(node, wanted.resource_type, &wanted.resource_name, request.validate_only, |_| {
                let mut overrides = BTreeMap::new();
                for entry in &wanted.configs {
                    let value =
                        entry.value.as_ref().ok_or_else(|| BadConfig::Null(entry.name.to_string()))?;
                    overrides.insert(entry.name.to_string(), value.to_string());
                }
                Ok(overrides)
            });
        let (code, message) = told(outcome);
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(wanted.resource_type)
            .with_resource_name(wanted.resource_name)
    };
    AlterConfigsResponse::default().with_responses(request.resources.into_iter().map(one).collect())
}

/// Sets, removes, appends to and subtracts from what was set.
pub(super) fn alter_incrementally(
    node: &Node,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let one = |wanted: incremental::AlterConfigsResource| {
        let change_all = |mut overrides| {
            for entry in &wanted.configs {
                apply(&mut overrides, entry)?;
            }
            Ok(overrides)
        };
        let outcome = unrepeated(&wanted.configs).and_then(|()| {
            change(node, wanted.resource_type, &wanted.resource_name, request.validate_only, change_all)
        });
        let (code, message) = told(outcome);
        incremental_alter_configs_response::AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(wanted.resource_type)
            .with_resource_name(wanted.resource_name)
    };
    IncrementalAlterConfigsResponse::default()
        .with_responses(request.resources.into_iter().map(one).collect())
}

/// What is named twice has no one meaning.
fn unrepeated(entries: &[incremental::AlterableConfig]) -> Result<(), Refusal> {
    let repeats = |(index, entry): (usize, &incremental::AlterableConfig)| {
        entries[..index].iter().any(|earlier| earlier.name == entry.name)
    };
    match entries.iter().enumerate().any(repeats) {
        true => Err((ResponseError::InvalidRequest, "Error due to duplicate config keys".into())),
        false => Ok(()),
    }
}

fn apply(
    overrides: &mut BTreeMap<String, String>,
    entry: &incremental::AlterableConfig,
) -> Result<(), BadConfig> {
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    const APPEND: i8 = 2;
    const SUBTRACT: i8 = 3;
    let name = entry.name.to_string();
    let known = known::find(&name).ok_or_else(|| BadConfig::Unknown(name.clone()))?;
    let value = || entry.value.as_ref().map(ToString::to_string).ok_or_else(|| BadConfig::Null(name.clone()));
    let fault = |fault: &str| BadConfig::Value {
        name: name.clone(),
        value: entry.config_operation.to_string(),
        fault: fault.into(),
    };
    let is_list = matches!(known.kind, Kind::List | Kind::Several(_));
    match entry.config_operation {
        SET => drop(overrides.insert(name.clone(), value()?)),
        DELETE => drop(overrides.remove(&name)),
        APPEND | SUBTRACT if !is_list => {
            return Err(fault("only lists can be appended to or subtracted from"));
        }
        APPEND | SUBTRACT => {
            let value = value()?;
            let current = overrides.get(&name).cloned().unwrap_or_else(|| known.default.into());
            let mut items: Vec<&str> =
                known::list(&current).filter(|item| !known::list(&value).any(|v| v == *item)).collect();
            if entry.config_operation == APPEND {
                items.extend(known::list(&value));
            }
            overrides.insert(name.clone(), items.join(","));
        }
        _ => return Err(fault("this operation is not known")),
    }
    Ok(())
}

fn change(
    node: &Node,
    resource_type: i8,
    name: &StrBytes,
    validate_only: bool,
    edit: impl FnOnce(BTreeMap<String, String>) -> Result<BTreeMap<String, String>, BadConfig>,
) -> Result<(), Refusal> {
    if resource_type != TOPIC {
        let reason = "The broker's own configuration is given at its start; only topics can be altered.";
        return Err((ResponseError::InvalidRequest, reason.into()));
    }
    // Before the present configuration is read: what two clients set at once must both be there.
    let changing = node.topics.changing();
    let topic = node.topics.get(name).ok_or_else(|| unknown_topic(name))?;
    let edited = edit(topic.config().overrides().clone()).map_err(|bad| bad_config(&bad))?;
    let config = Config::new(edited).map_err(|bad| bad_config(&bad))?;
    if validate_only {
        return Ok(());
    }
    node.topics.configure(&changing, &topic, config).map_err(|e| (storage_error(&e), e.to_string()))
}

fn unknown_topic(name: &StrBytes) -> Refusal {
    (ResponseError::UnknownTopicOrPartition, format!("The topic '{name}' does not exist."))
}

fn told(outcome: Result<(), Refusal>) -> (i16, Option<StrBytes>) {
    match outcome {
        Ok(()) => (0, None),
        Err((error, reason)) => (error.code(), Some(text(reason))),
    }
}
