//! Reading ahead: what will be due soon and is not in memory is read back from the shelf in one pass over
//! where it stands, instead of one by one when its time has come.

use std::time::Duration;

use super::{Action, Flow, Now};
use crate::time::Timestamp;

/// How long before it is due a record should be in memory.
const AHEAD: Duration = Duration::from_secs(5);
/// How long a partition is left alone after a pass.
const BREAK: Duration = Duration::from_millis(250);
/// What a record takes in memory beside its bytes in the log, about.
const BESIDE: usize = 100;
/// A share of the cache for which a pass is not worth it.
const LITTLE: usize = 1_024;

/// A pass over the log of a shelf that is under way.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) partition: i32,
    /// What has been read of it.
    pub(super) at: i64,
    to: i64,
}

impl Pass {
    /// Whether what stands here is still to come.
    pub(super) fn will_meet(&self, partition: i32, at: i64) -> bool {
        self.partition == partition && self.at < at && at <= self.to
    }
}

impl Flow {
    /// Begins a pass, if one is due.
    pub(super) fn read_ahead(&mut self, now: Now) {
        if self.pass.is_some() || self.stopping {
            return;
        }
        let soon = now.wall.plus(AHEAD);
        let nearest = self.cache.missing().filter(|(partition, _)| !self.rests(*partition, now));
        let Some((partition, due)) = nearest.min_by_key(|(_, due)| *due) else { return };
        if due <= soon {
            self.begin_pass(partition, now, soon);
        }
    }

    /// When a pass may be due.
    pub(super) fn next_pass(&self, now: Now) -> Option<Duration> {
        if self.pass.is_some() || self.stopping || self.paused {
            return None;
        }
        let due = self.cache.missing().map(|(_, due)| due).min()?;
        let wait = due.since(now.wall).saturating_sub(AHEAD);
        Some(now.steady.saturating_add(wait.max(BREAK)))
    }

    fn rests(&self, partition: i32, now: Now) -> bool {
        self.passes.get(&partition).is_some_and(|ended| now.steady < ended.saturating_add(BREAK))
    }

    fn begin_pass(&mut self, partition: i32, now: Now, soon: Timestamp) {
        self.passes.insert(partition, now.steady);
        let partitions = self.partitions.iter().count();
        let (room, share) = self.cache.room(partition, partitions);
        let Some(state) = self.partitions.get_mut(partition) else { return };
        let Some(aside) = state.aside.as_mut().filter(|aside| aside.owner.is_running()) else { return };
        if share < LITTLE || room < share / 2 {
            return;
        }
        let (mut taken, mut from, mut to, mut until) = (0, i64::MAX, -1, None);
        for waiting in aside.owner.shelf.waiting.upcoming() {
            if self.cache.contains(partition, waiting.origin) {
                continue;
            }
            taken += waiting.size as usize + BESIDE;
            // The first in any case, if it is due soon; after that as many as there is room for.
            if (to >= 0 && taken > room) || (to < 0 && waiting.due > soon) {
                until = Some(waiting.due);
                break;
            }
            from = from.min(waiting.at);
            to = to.max(waiting.at);
        }
        self.cache.has_until(partition, until);
        if to >= 0 {
            self.pass = Some(Pass { partition, at: from - 1, to });
            self.actions.push_back(Action::Pass { partition, from, to });
        }
    }

    /// A pass has come to its end.
    pub fn passed(&mut self, partition: i32, now: Now) {
        let Some(pass) = self.pass.take_if(|pass| pass.partition == partition) else { return };
        self.passes.insert(partition, now.steady);
        let Some(aside) = self.partitions.aside(partition) else { return };
        // What it should have met and did not.
        for at in aside.fetching.keys().copied().filter(|at| *at <= pass.to) {
            self.actions.push_back(Action::Fetch { partition, at });
        }
    }
}
