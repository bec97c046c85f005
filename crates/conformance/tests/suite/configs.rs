//! Topic configurations: set, described, altered as a whole and in parts; refused where they are wrong.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_configs_request::{
    AlterConfigsResource as WholeResource, AlterableConfig as WholeConfig,
};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::{AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use rdkafka::admin::{
    AlterConfig, ConfigResource, ConfigSource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::error::RDKafkaErrorCode;
use redrive_conformance::{Target, error, eventually, on_both, text};

on_both!(
    settings_given_at_birth_are_described_beside_the_defaults,
    unknown_settings_and_wrong_values_are_refused,
    every_setting_that_kafka_describes_is_described,
    altering_as_a_whole_forgets_what_is_not_named,
    altering_in_parts_leaves_the_rest,
    an_alteration_that_is_only_validated_changes_nothing,
    what_is_not_there_has_no_settings,
);

fn describe(broker: &Target, topic: &str) -> Result<ConfigResource, RDKafkaErrorCode> {
    let topic = ResourceSpecifier::Topic(topic);
    broker.wait(broker.admin().describe_configs([&topic], &broker.options())).expect("an answer").remove(0)
}

fn value(broker: &Target, topic: &str, setting: &str) -> String {
    let described = describe(broker, topic).expect("settings");
    described.get(setting).expect("a known setting").value.clone().expect("a value")
}

/// Kafka applies an alteration shortly after it has answered.
fn becomes(broker: &Target, topic: &str, setting: &str, expected: &str) {
    eventually(setting, || (value(broker, topic, setting) == expected).then_some(()));
}

fn settings_given_at_birth_are_described_beside_the_defaults(broker: &Target) {
    let given = [("retention.ms", "123456"), ("cleanup.policy", "compact"), ("max.message.bytes", "2000000")];
    let topic = broker.topic_with("configured", 1, &given);
    let described = describe(broker, &topic).expect("settings");
    for (name, value) in given {
        let entry = described.get(name).expect("a known setting");
        assert_eq!(
            (entry.value.as_deref(), &entry.source),
            (Some(value), &ConfigSource::DynamicTopic),
            "{name}"
        );
        assert!(!entry.is_default && !entry.is_read_only && !entry.is_sensitive, "{entry:?}");
    }
    for (name, value) in [
        ("compression.type", "producer"),
        ("delete.retention.ms", "86400000"),
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "3600000"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("min.compaction.lag.ms", "0"),
        ("retention.bytes", "-1"),
        ("segment.bytes", "1073741824"),
        ("segment.ms", "604800000"),
    ] {
        let entry = described.get(name).expect("a known setting");
        assert_eq!(entry.value.as_deref(), Some(value), "{name}");
        assert_eq!((entry.is_default, &entry.source), (true, &ConfigSource::Default), "{name}");
    }
}

fn unknown_settings_and_wrong_values_are_refused(broker: &Target) {
    let create = |setting, value| {
        let name = broker.name("refused");
        let topic = NewTopic::new(&name, 1, TopicReplication::Fixed(1)).set(setting, value);
        let made = broker.wait(broker.admin().create_topics([&topic], &broker.options())).expect("an answer");
        made.into_iter().next().expect("a result").map_err(|(_, code)| code)
    };
    for (setting, value) in [
        ("retention.msec", "1"),
        ("", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "compress"),
        ("message.timestamp.type", "Now"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("max.message.bytes", "-1"),
        ("segment.bytes", "1000"),
        ("compression.type", "brotli"),
    ] {
        assert_eq!(create(setting, value), Err(RDKafkaErrorCode::InvalidConfig), "{setting}={value}");
    }
    assert!(create("cleanup.policy", "compact,delete").is_ok());
}

fn every_setting_that_kafka_describes_is_described(broker: &Target) {
    let described = describe(broker, &broker.topic("settings", 1)).expect("settings");
    let mut names: Vec<_> = described.entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "cleanup.policy",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "delete.retention.ms",
            "file.delete.delay.ms",
            "flush.messages",
            "flush.ms",
            "follower.replication.throttled.replicas",
            "index.interval.bytes",
            "leader.replication.throttled.replicas",
            "local.retention.bytes",
            "local.retention.ms",
            "max.compaction.lag.ms",
            "max.message.bytes",
            "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms",
            "message.timestamp.type",
            "min.cleanable.dirty.ratio",
            "min.compaction.lag.ms",
            "min.insync.replicas",
            "preallocate",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "remote.storage.enable",
            "retention.bytes",
            "retention.ms",
            "segment.bytes",
            "segment.index.bytes",
            "segment.jitter.ms",
            "segment.ms",
            "unclean.leader.election.enable",
        ]
    );
}

fn altering_as_a_whole_forgets_what_is_not_named(broker: &Target) {
    let topic = broker.topic_with("whole", 1, &[("retention.ms", "1000000"), ("segment.ms", "2000000")]);
    let alter = |setting, value| {
        let wish = AlterConfig::new(ResourceSpecifier::Topic(&topic)).set(setting, value);
        let answer =
            broker.wait(broker.admin().alter_configs([&wish], &broker.options())).expect("an answer");
        answer.into_iter().next().expect("a result").map_err(|(_, code)| code)
    };
    alter("retention.ms", "3000000").expect("altered");
    becomes(broker, &topic, "retention.ms", "3000000");
    assert_eq!(value(broker, &topic, "segment.ms"), "604800000");
    // By hand: rdkafka drops the error of a resource.
    let unknown = WholeConfig::default().with_name(text("retention.msec")).with_value(Some(text("1")));
    let resource = WholeResource::default()
        .with_resource_type(2)
        .with_resource_name(text(&topic))
        .with_configs(vec![unknown]);
    let answer = broker.connect().ask(&AlterConfigsRequest::default().with_resources(vec![resource]), 2);
    assert_eq!(error(answer.responses[0].error_code), Some(ResponseError::InvalidConfig));
    assert_eq!(value(broker, &topic, "retention.ms"), "3000000");
}

/// An operation on a setting: 0 sets, 1 deletes, 2 appends, 3 subtracts. librdkafka's call is not in rdkafka.
fn incremental(topic: &str, changes: &[(&str, i8, Option<&str>)]) -> IncrementalAlterConfigsRequest {
    let change = |(name, operation, value): &(&str, i8, Option<&str>)| {
        AlterableConfig::default()
            .with_name(text(name))
            .with_config_operation(*operation)
            .with_value(value.map(text))
    };
    let resource = AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(topic))
        .with_configs(changes.iter().map(change).collect());
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

fn altering_in_parts_leaves_the_rest(broker: &Target) {
    let topic = broker.topic_with("parts", 1, &[("retention.ms", "1000000"), ("segment.ms", "2000000")]);
    let mut connection = broker.connect();
    let mut alter = |changes: &[(&str, i8, Option<&str>)]| {
        error(connection.ask(&incremental(&topic, changes), 1).responses[0].error_code)
    };
    assert_eq!(alter(&[("retention.ms", 0, Some("5000000"))]), None);
    becomes(broker, &topic, "retention.ms", "5000000");
    assert_eq!(value(broker, &topic, "segment.ms"), "2000000");
    assert_eq!(alter(&[("segment.ms", 1, None), ("cleanup.policy", 2, Some("compact"))]), None);
    becomes(broker, &topic, "segment.ms", "604800000");
    assert_eq!(value(broker, &topic, "cleanup.policy"), "delete,compact");
    assert_eq!(alter(&[("cleanup.policy", 3, Some("delete"))]), None);
    becomes(broker, &topic, "cleanup.policy", "compact");
    assert_eq!(value(broker, &topic, "retention.ms"), "5000000");

    assert_eq!(alter(&[("retention.msec", 0, Some("1"))]), Some(ResponseError::InvalidConfig));
    assert_eq!(alter(&[("retention.ms", 0, Some("soon"))]), Some(ResponseError::InvalidConfig));
    assert_eq!(alter(&[("retention.ms", 2, Some("1"))]), Some(ResponseError::InvalidConfig));
    let twice = [("retention.ms", 0, Some("1")), ("retention.ms", 0, Some("2"))];
    assert_eq!(alter(&twice), Some(ResponseError::InvalidRequest));
}

fn an_alteration_that_is_only_validated_changes_nothing(broker: &Target) {
    let topic = broker.topic("validated", 1);
    let change = incremental(&topic, &[("retention.ms", 0, Some("77"))]).with_validate_only(true);
    assert_eq!(broker.connect().ask(&change, 1).responses[0].error_code, 0);
    assert_eq!(value(broker, &topic, "retention.ms"), "604800000");
}

fn what_is_not_there_has_no_settings(broker: &Target) {
    let name = broker.name("absent");
    // By hand: rdkafka drops the error of a resource.
    let resource = DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text(&name));
    let answer = broker.connect().ask(&DescribeConfigsRequest::default().with_resources(vec![resource]), 4);
    assert_eq!(error(answer.results[0].error_code), Some(ResponseError::UnknownTopicOrPartition));
    let answer = broker.connect().ask(&incremental(&name, &[("retention.ms", 0, Some("1"))]), 1);
    assert_eq!(error(answer.responses[0].error_code), Some(ResponseError::UnknownTopicOrPartition));
}
