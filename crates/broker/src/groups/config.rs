//! What can be set about groups; the defaults are Kafka's, except that offsets do not expire.

/// Limits and habits of the group coordinator.
#[derive(Debug, Clone)]
pub(crate) struct GroupsConfig {
    /// `group.min.session.timeout.ms`
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`; 0 here, as nobody starts a fleet against this broker.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`
    pub max_group_size: usize,
    /// `offset.metadata.max.bytes`
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds; without it offsets stay.
    pub offsets_retention_ms: Option<i64>,
    /// Whether members outlive a restart of the broker, as they do with Kafka. Where they die with
    /// it, a new member would otherwise wait for the sessions of the dead to end.
    pub restore_members: bool,
    /// Below this size the journal is left alone.
    pub compact_above_bytes: u64,
}

impl Default for GroupsConfig {
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 0,
            max_group_size: usize::MAX,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: None,
            restore_members: true,
            compact_above_bytes: 1 << 20,
        }
    }
}
