//! A topic's configuration: texts come in, checked against what Kafka knows; what they mean to the
//! logs goes out. Nothing unknown or out of range ever becomes part of one.

use std::collections::BTreeMap;

use super::known::{self, Known};
use crate::log::{Cleanup, Settings, TimestampType};

/// What was set, and what all of it means.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    overrides: BTreeMap<String, String>,
    settings: Settings,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadConfig {
    #[error("Unknown topic config name: {0}")]
    Unknown(String),
    #[error("Invalid value {value} for configuration {name}: {fault}")]
    Value {
        name: String,
        value: String,
        fault: String,
    },
    #[error("Null value not supported for topic configs: {0}")]
    Null(String),
}

impl Config {
    pub(crate) fn new(overrides: BTreeMap<String, String>) -> Result<Config, BadConfig> {
        for (name, value) in &overrides {
            let known = known::find(name).ok_or_else(|| BadConfig::Unknown(name.clone()))?;
            if let Some(fault) = known.kind.fault(value) {
                return Err(BadConfig::Value {
                    name: name.clone(),
                    value: value.clone(),
                    fault,
                });
            }
        }
        let settings = meaning(&overrides);
        Ok(Config { overrides, settings })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn overrides(&self) -> &BTreeMap<String, String> {
        &self.overrides
    }

    /// The value that holds, and whether it was set for this topic.
    pub(crate) fn value<'a>(&'a self, known: &'a Known) -> (&'a str, bool) {
        match self.overrides.get(known.name) {
            Some(value) => (value, true),
            None => (known.default, false),
        }
    }
}

fn meaning(overrides: &BTreeMap<String, String>) -> Settings {
    let text = |name: &str| overrides.get(name).map(|value| value.trim());
    let number = |name: &str| text(name).and_then(|value| value.parse::<i64>().ok());
    let plain = Settings::default();
    let limit = |name: &str, default: Option<i64>| number(name).map_or(default, |n| (n >= 0).then_some(n));
    Settings {
        cleanup: text("cleanup.policy").map_or(plain.cleanup, cleanup),
        compression: text("compression.type").and_then(codec),
        max_message_bytes: number("max.message.bytes").map_or(plain.max_message_bytes, |n| n as usize),
        timestamp_type: match text("message.timestamp.type") {
            Some("LogAppendTime") => TimestampType::LogAppend,
            _ => TimestampType::Create,
        },
        timestamp_before_max_ms: number("message.timestamp.before.max.ms")
            .unwrap_or(plain.timestamp_before_max_ms),
        timestamp_after_max_ms: number("message.timestamp.after.max.ms")
            .unwrap_or(plain.timestamp_after_max_ms),
        segment_bytes: number("internal.segment.bytes")
            .or_else(|| number("segment.bytes"))
            .map_or(plain.segment_bytes, |n| n as u64),
        segment_ms: number("segment.ms").unwrap_or(plain.segment_ms),
        retention_ms: limit("retention.ms", plain.retention_ms),
        retention_bytes: limit("retention.bytes", None).map(|n| n as u64),
        delete_retention_ms: number("delete.retention.ms").unwrap_or(plain.delete_retention_ms),
        min_dirty_ratio: text("min.cleanable.dirty.ratio")
            .and_then(|value| value.parse().ok())
            .unwrap_or(plain.min_dirty_ratio),
        min_compaction_lag_ms: number("min.compaction.lag.ms").unwrap_or(plain.min_compaction_lag_ms),
        max_compaction_lag_ms: number("max.compaction.lag.ms").unwrap_or(plain.max_compaction_lag_ms),
    }
}

fn cleanup(value: &str) -> Cleanup {
    let has = |wanted: &str| known::list(value).any(|item| item == wanted);
    match (has("delete"), has("compact")) {
        (true, true) => Cleanup::Both,
        (true, false) => Cleanup::Delete,
        (false, true) => Cleanup::Compact,
        (false, false) => Cleanup::Neither,
    }
}

/// The codec that a topic demands; none where the producer's stays.
fn codec(value: &str) -> Option<i16> {
    match value {
        "uncompressed" => Some(0),
        "gzip" => Some(1),
        "snappy" => Some(2),
        "lz4" => Some(3),
        "zstd" => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<Config, BadConfig> {
        Config::new(
            pairs
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
        )
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert_eq!(
            config(&[("retention.msec", "1")]),
            Err(BadConfig::Unknown("retention.msec".into()))
        );
    }

    #[test]
    fn values_must_fit_their_kind() {
        for (name, value) in [
            ("retention.ms", "soon"),
            ("segment.bytes", "1000"),
            ("cleanup.policy", "compress"),
            ("min.cleanable.dirty.ratio", "2"),
            ("message.timestamp.type", "Now"),
            ("preallocate", "yes"),
        ] {
            assert!(
                matches!(config(&[(name, value)]), Err(BadConfig::Value { .. })),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn texts_become_settings() {
        let config = config(&[
            ("cleanup.policy", "compact, delete"),
            ("retention.ms", "-1"),
            ("retention.bytes", "500"),
            ("message.timestamp.type", "LogAppendTime"),
        ]);
        let settings = config.unwrap().settings().clone();
        assert_eq!(settings.cleanup, Cleanup::Both);
        assert_eq!(
            (settings.retention_ms, settings.retention_bytes),
            (None, Some(500))
        );
        assert_eq!(settings.timestamp_type, TimestampType::LogAppend);
    }

    #[test]
    fn every_default_fits_its_own_kind() {
        for known in known::all()
            .into_iter()
            .filter(|known| known.name != "internal.segment.bytes")
        {
            assert_eq!(known.kind.fault(known.default), None, "{}", known.name);
        }
    }
}
