//! What can be set about transactions; the defaults are Kafka's.

/// Limits of the transaction coordinator.
#[derive(Debug, Clone)]
pub(crate) struct TransactionsConfig {
    /// `transaction.max.timeout.ms`
    pub max_timeout_ms: i32,
    /// `transactional.id.expiration.ms`: an id without an open transaction is forgotten after this
    /// time, when the journal is next rewritten or opened.
    pub id_expiration_ms: i64,
    /// Below this size the journal is left alone.
    pub compact_above_bytes: u64,
}

impl Default for TransactionsConfig {
    fn default() -> Self {
        Self {
            max_timeout_ms: 900_000,
            id_expiration_ms: 604_800_000,
            compact_above_bytes: 1 << 20,
        }
    }
}
