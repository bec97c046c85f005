//! A member of a group: what it said when it joined, what it waits for, when it is given up.

use bytes::Bytes;

/// A JoinGroup or SyncGroup request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(pub(super) u64);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) instance: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    /// In the member's order of preference: the name of an assignor and what the member tells it.
    pub(super) protocols: Vec<(String, Bytes)>,
    pub(super) assignment: Bytes,
    pub(super) joining: Option<Ticket>,
    pub(super) syncing: Option<Ticket>,
    /// Not yet part of a generation: it does not know its id and cannot send heartbeats.
    pub(super) new: bool,
    pub(super) session_ends: i64,
}

impl Member {
    pub(super) fn is_static(&self) -> bool {
        self.instance.is_some()
    }

    pub(super) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    pub(super) fn vote<'a>(&'a self, candidates: &[&str]) -> Option<&'a str> {
        let mut names = self.protocols.iter().map(|(name, _)| name.as_str());
        names.find(|name| candidates.contains(name))
    }

    pub(super) fn heard(&mut self, now: i64) {
        self.session_ends = now + i64::from(self.session_timeout_ms);
    }

    /// When the member is given up unless it is heard before. One that waits for us cannot send
    /// heartbeats, so its session stands still; a new one is not known to be alive at all.
    pub(super) fn deadline(&self) -> Option<i64> {
        let waits = self.joining.is_some() || self.syncing.is_some();
        (self.new || !waits).then_some(self.session_ends)
    }
}
