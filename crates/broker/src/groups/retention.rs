//! Offsets nobody uses expire, where that is asked for.

use tracing::warn;

use super::entry::Entry;
use super::group::{Group, State};
use super::offsets::{Committed, Place};
use super::{Desk, Groups};
use crate::clock;

/// `offsets.retention.check.interval.ms`
const CHECK_EVERY_MS: i64 = 600_000;

impl Groups {
    /// Looks for expired offsets when it is time to, and says when that is next.
    pub(super) fn sweep(&self, desk: &mut Desk, now: i64) -> Option<i64> {
        let retention_ms = self.0.config.offsets_retention_ms?;
        if desk.next_retention <= now {
            desk.next_retention = now + CHECK_EVERY_MS;
            self.forget_expired(desk, retention_ms, clock::now_ms());
        }
        Some(desk.next_retention)
    }

    fn forget_expired(&self, desk: &mut Desk, retention_ms: i64, now_ms: i64) {
        let expired = |group: &Group| (group.id.clone(), group.expired_offsets(retention_ms, now_ms));
        let found: Vec<(String, Vec<Place>)> = desk.book.groups.values().map(expired).collect();
        for (group, places) in found {
            if places.is_empty() {
                continue;
            }
            if let Err(error) = desk.book.write(Entry::OffsetsForgotten { group, places }) {
                warn!(%error, "cannot write down expired offsets");
            }
        }
    }
}

impl Group {
    pub(super) fn expired_offsets(&self, retention_ms: i64, now_ms: i64) -> Vec<Place> {
        let read = self.subscribed_topics();
        let unused_since = |place: &Place, offset: &Committed| match (self.state, &self.protocol_type, &read)
        {
            // Nobody but a reader without a group ever committed here: each commit counts for itself.
            (_, None, _) => Some(offset.committed_ms),
            (State::Empty, Some(_), _) => Some(self.empty_since_ms.unwrap_or(offset.committed_ms)),
            (State::Stable, Some(_), Some(topics)) if !topics.contains(&place.0) => Some(offset.committed_ms),
            (State::Stable | State::Preparing { .. } | State::Completing, Some(_), _) => None,
        };
        let is_over = |place: &Place, offset: &Committed| {
            let since = unused_since(place, offset);
            since.is_some_and(|since| now_ms - since >= retention_ms) && !self.offsets.is_unstable(place)
        };
        let over = self
            .offsets
            .committed
            .iter()
            .filter(|(place, offset)| is_over(place, offset));
        over.map(|(place, _)| place.clone()).collect()
    }
}
