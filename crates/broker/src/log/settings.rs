//! What a topic's configuration means to its logs. Plain data; the texts it is read from are the
//! topics' business.

/// Whose time a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimestampType {
    Create,
    LogAppend,
}

/// What happens to old records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup {
    Delete,
    Compact,
    Both,
    /// Kept for ever, as an empty policy says.
    Neither,
}

impl Cleanup {
    pub(crate) fn compacts(self) -> bool {
        match self {
            Cleanup::Compact | Cleanup::Both => true,
            Cleanup::Delete | Cleanup::Neither => false,
        }
    }

    pub(crate) fn deletes(self) -> bool {
        match self {
            Cleanup::Delete | Cleanup::Both => true,
            Cleanup::Compact | Cleanup::Neither => false,
        }
    }
}

/// The settings of a topic, as its logs use them. Times are milliseconds, sizes bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) cleanup: Cleanup,
    /// The codec that every batch is kept in; none keeps the producer's.
    pub(crate) compression: Option<i16>,
    pub(crate) max_message_bytes: usize,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) timestamp_before_max_ms: i64,
    pub(crate) timestamp_after_max_ms: i64,
    pub(crate) segment_bytes: u64,
    pub(crate) segment_ms: i64,
    /// None keeps for ever.
    pub(crate) retention_ms: Option<i64>,
    pub(crate) retention_bytes: Option<u64>,
    pub(crate) delete_retention_ms: i64,
    pub(crate) min_dirty_ratio: f64,
    pub(crate) min_compaction_lag_ms: i64,
    pub(crate) max_compaction_lag_ms: i64,
}

impl Default for Settings {
    fn default() -> Settings {
        const DAY: i64 = 86_400_000;
        Settings {
            cleanup: Cleanup::Delete,
            compression: None,
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::Create,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            segment_bytes: 1 << 30,
            segment_ms: 7 * DAY,
            retention_ms: Some(7 * DAY),
            retention_bytes: None,
            delete_retention_ms: DAY,
            min_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
        }
    }
}
