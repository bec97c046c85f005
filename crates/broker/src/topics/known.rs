//! The topic configurations that Kafka knows, with their kinds and defaults. Others are refused.
//! Some change nothing on a single node that never fetches from another; they are kept and shown.

/// What a value must look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Int {
        min: i64,
    },
    Long {
        min: i64,
    },
    Ratio,
    OneOf(&'static [&'static str]),
    /// A comma-separated list of these.
    Several(&'static [&'static str]),
    /// Any list.
    List,
}

/// A configuration: its name, kind and default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
}

const FOREVER: &str = "9223372036854775807";
const INT: fn(&'static str, i64, &'static str) -> Known = |name, min, default| Known {
    name,
    kind: Kind::Int { min },
    default,
};
const LONG: fn(&'static str, i64, &'static str) -> Known = |name, min, default| Known {
    name,
    kind: Kind::Long { min },
    default,
};

/// The one with that name.
pub(crate) fn find(name: &str) -> Option<Known> {
    all().into_iter().find(|known| known.name == name)
}

/// All of them, by name.
pub(crate) fn all() -> Vec<Known> {
    let of = |name, kind, default| Known { name, kind, default };
    vec![
        of("cleanup.policy", Kind::Several(&["delete", "compact"]), "delete"),
        INT("compression.gzip.level", -1, "-1"),
        INT("compression.lz4.level", 1, "9"),
        of(
            "compression.type",
            Kind::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
            "producer",
        ),
        INT("compression.zstd.level", -131_072, "3"),
        LONG("delete.retention.ms", 0, "86400000"),
        LONG("file.delete.delay.ms", 0, "60000"),
        LONG("flush.messages", 1, FOREVER),
        LONG("flush.ms", 0, FOREVER),
        of("follower.replication.throttled.replicas", Kind::List, ""),
        INT("index.interval.bytes", 0, "4096"),
        // Kafka refuses small segments but lets its own tests have them, under this name.
        INT("internal.segment.bytes", 64, ""),
        of("leader.replication.throttled.replicas", Kind::List, ""),
        LONG("local.retention.bytes", -2, "-2"),
        LONG("local.retention.ms", -2, "-2"),
        LONG("max.compaction.lag.ms", 1, FOREVER),
        INT("max.message.bytes", 0, "1048588"),
        LONG("message.timestamp.after.max.ms", 0, "3600000"),
        LONG("message.timestamp.before.max.ms", 0, FOREVER),
        of(
            "message.timestamp.type",
            Kind::OneOf(&["CreateTime", "LogAppendTime"]),
            "CreateTime",
        ),
        of("min.cleanable.dirty.ratio", Kind::Ratio, "0.5"),
        LONG("min.compaction.lag.ms", 0, "0"),
        INT("min.insync.replicas", 1, "1"),
        of("preallocate", Kind::Bool, "false"),
        of("remote.log.copy.disable", Kind::Bool, "false"),
        of("remote.log.delete.on.disable", Kind::Bool, "false"),
        of("remote.storage.enable", Kind::Bool, "false"),
        LONG("retention.bytes", -1, "-1"),
        LONG("retention.ms", -1, "604800000"),
        INT("segment.bytes", 1_048_576, "1073741824"),
        INT("segment.index.bytes", 4, "10485760"),
        LONG("segment.jitter.ms", 0, "0"),
        LONG("segment.ms", 1, "604800000"),
        of("unclean.leader.election.enable", Kind::Bool, "false"),
    ]
}

impl Kind {
    /// Why a value is refused, or nothing.
    pub(crate) fn fault(self, value: &str) -> Option<String> {
        match self {
            Kind::Bool => (!["true", "false"].contains(&value))
                .then(|| "Expected value to be either true or false".into()),
            Kind::Int { min } => number(value, min, i64::from(i32::MAX)),
            Kind::Long { min } => number(value, min, i64::MAX),
            Kind::Ratio => match value.parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => None,
                Ok(_) => Some("Value must be between 0 and 1".into()),
                Err(_) => Some("Not a number of type DOUBLE".into()),
            },
            Kind::OneOf(valid) => {
                (!valid.contains(&value)).then(|| format!("String must be one of: {}", valid.join(", ")))
            }
            Kind::Several(valid) => list(value)
                .find(|item| !valid.contains(item))
                .map(|_| format!("String must be one of: {}", valid.join(", "))),
            Kind::List => None,
        }
    }

    /// The number of the type in DescribeConfigs.
    pub(crate) fn wire_type(self) -> i8 {
        match self {
            Kind::Bool => 1,
            Kind::OneOf(_) => 2,
            Kind::Int { .. } => 3,
            Kind::Long { .. } => 5,
            Kind::Ratio => 6,
            Kind::Several(_) | Kind::List => 7,
        }
    }
}

/// The items of a list value.
pub(crate) fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn number(value: &str, min: i64, max: i64) -> Option<String> {
    match value.trim().parse::<i64>() {
        Ok(n) if n < min => Some(format!("Value must be at least {min}")),
        Ok(n) if n <= max => None,
        Ok(_) | Err(_) => Some(format!(
            "Not a number of type {}",
            if max == i64::MAX { "LONG" } else { "INT" }
        )),
    }
}
