//! The gate of an outage: closed while a dependency is away, opened by the first probe that succeeds.

use std::collections::VecDeque;
use std::time::Duration;

use super::Id;

/// A closed gate.
#[derive(Debug)]
pub(super) struct Gate {
    /// The records that failed, the next to probe first.
    pub(super) blocked: VecDeque<Id>,
    /// When the next probe may start.
    pub(super) until: Duration,
    /// The longest pause so far: it does not shrink because another record is tried.
    wait: Duration,
    pub(super) probing: Option<Id>,
    /// Whether the next probe is a record that has not failed yet: another key may fare better.
    pub(super) fresh_next: bool,
}

impl Gate {
    pub(super) fn close(first: Id, wait: Duration, now: Duration) -> Self {
        Self {
            blocked: VecDeque::from([first]),
            until: now.saturating_add(wait),
            wait,
            probing: None,
            fresh_next: false,
        }
    }

    /// One more record failed by the outage, as a probe or because it was on its way already.
    pub(super) fn block(&mut self, id: Id, wait: Duration, now: Duration) {
        self.blocked.push_back(id);
        if self.probing == Some(id) {
            self.probing = None;
            self.wait = self.wait.max(wait);
            self.until = now.saturating_add(self.wait);
        }
    }

    /// A probe ended in a way that says nothing about the outage: try another one.
    pub(super) fn release(&mut self, id: Id, now: Duration) {
        if self.probing == Some(id) {
            self.probing = None;
            self.until = now;
        }
    }

    /// These records are gone, their partition with them.
    pub(super) fn forget(&mut self, is_gone: impl Fn(Id) -> bool) {
        self.blocked.retain(|id| !is_gone(*id));
        self.probing = self.probing.filter(|id| !is_gone(*id));
    }
}
