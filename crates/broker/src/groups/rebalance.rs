//! From one generation to the next, and what happens when those who should answer do not.

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::group::{Effects, Group, Initial, State};
use super::member::Member;

/// Where the members allow no time at all, looking again at once would spin.
const NOBODY_CAME_MS: i64 = 1_000;

impl Group {
    /// The first member of an empty group came: wait a moment for more, then begin a generation.
    pub(super) fn begin(&mut self, delay_ms: i64, now: i64, fx: &mut Effects) {
        if delay_ms == 0 {
            return self.complete_join(now, fx);
        }
        let remaining_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
        let initial = Some(Initial {
            step_ms: delay_ms,
            remaining_ms,
        });
        self.state = State::Preparing {
            until: now + delay_ms,
            initial,
        };
    }

    /// Asks all members to join again, unless that is already under way.
    pub(super) fn rebalance(&mut self, now: i64, fx: &mut Effects) {
        match self.state {
            State::Empty => return,
            State::Preparing { .. } => {}
            State::Completing | State::Stable => {
                self.withdraw_assignments(ResponseError::RebalanceInProgress, now, fx);
                let until = now + self.rebalance_timeout_ms();
                self.state = State::Preparing { until, initial: None };
            }
        }
        self.complete_join_if_all_are_here(now, fx);
    }

    /// Those who wait for their assignment will not get it in this generation.
    fn withdraw_assignments(&mut self, error: ResponseError, now: i64, fx: &mut Effects) {
        self.unsynced.clear();
        self.sync_until = None;
        if self.state != State::Completing {
            return;
        }
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
            if let Some(ticket) = member.syncing.take() {
                fx.refuse_sync(ticket, error);
                member.heard(now);
            }
        }
    }

    pub(super) fn complete_join_if_all_are_here(&mut self, now: i64, fx: &mut Effects) {
        match self.state {
            // The first wait of an empty group is for members nobody knows of yet.
            State::Preparing { initial: None, .. } if self.all_joined() => self.complete_join(now, fx),
            State::Empty | State::Preparing { .. } | State::Completing | State::Stable => {}
        }
    }

    fn complete_join(&mut self, now: i64, fx: &mut Effects) {
        let absent = self
            .members
            .values()
            .filter(|member| member.joining.is_none() && !member.is_static());
        let absent: Vec<String> = absent.map(|member| member.id.clone()).collect();
        for id in absent {
            self.remove(&id, fx);
        }
        if self.members.is_empty() {
            return self.become_empty(fx);
        }
        if !self.elect_leader() {
            // Only static members are left and none came: their sessions will end, or they will come.
            let until = now + self.rebalance_timeout_ms().max(NOBODY_CAME_MS);
            self.state = State::Preparing { until, initial: None };
            return;
        }
        self.generation += 1;
        self.protocol = self.select_protocol();
        self.state = State::Completing;
        self.member_added = false;
        self.unsynced = self.members.keys().cloned().collect();
        self.sync_until = Some(now + self.rebalance_timeout_ms());
        self.answer_joins(now, fx);
    }

    fn become_empty(&mut self, fx: &mut Effects) {
        self.generation += 1;
        self.protocol = None;
        self.leader = None;
        self.state = State::Empty;
        self.member_added = false;
        fx.record = true;
    }

    /// The leader stays if it came; otherwise it is one of those who did.
    fn elect_leader(&mut self) -> bool {
        let here = |id: &String| {
            self.members
                .get(id)
                .is_some_and(|member| member.joining.is_some())
        };
        if self.leader.as_ref().is_some_and(here) {
            return true;
        }
        let next = self.members.keys().find(|id| here(id)).cloned();
        let found = next.is_some();
        if found {
            self.leader = next;
        }
        found
    }

    fn answer_joins(&mut self, now: i64, fx: &mut Effects) {
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            let joined = self.joined(&id);
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.heard(now);
            member.new = false;
            if let Some(ticket) = member.joining.take() {
                fx.joins.push((ticket, Ok(joined)));
            }
        }
    }

    /// The assignment could not be written down: nobody may act on it.
    pub(super) fn assignment_lost(&mut self, now: i64, fx: &mut Effects) {
        for (_, answer) in &mut fx.syncs {
            if answer.is_ok() {
                *answer = Err(ResponseError::CoordinatorNotAvailable);
            }
        }
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        match self.state {
            State::Stable => self.rebalance(now, fx),
            State::Empty | State::Preparing { .. } | State::Completing => {}
        }
    }

    /// The next moment at which [`expire`](Self::expire) has something to do.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        let members = self.members.values().filter_map(Member::deadline);
        let pending = self.pending.values().copied();
        let state = match self.state {
            State::Preparing { until, .. } => Some(until),
            State::Empty | State::Completing | State::Stable => None,
        };
        members.chain(pending).chain(state).chain(self.sync_until).min()
    }

    /// Acts on every deadline that has passed.
    pub(super) fn expire(&mut self, now: i64, fx: &mut Effects) {
        self.pending.retain(|_, lapses| *lapses > now);
        self.expire_sessions(now, fx);
        self.expire_syncs(now, fx);
        self.expire_joins(now, fx);
        self.complete_join_if_all_are_here(now, fx);
    }

    fn expire_sessions(&mut self, now: i64, fx: &mut Effects) {
        let over = self
            .members
            .values()
            .filter(|member| member.deadline().is_some_and(|at| at <= now));
        let over: Vec<String> = over.map(|member| member.id.clone()).collect();
        for id in &over {
            self.remove(id, fx);
        }
        if !over.is_empty() {
            self.rebalance(now, fx);
        }
    }

    fn expire_syncs(&mut self, now: i64, fx: &mut Effects) {
        if self.sync_until.is_none_or(|until| until > now) {
            return;
        }
        self.sync_until = None;
        let silent = std::mem::take(&mut self.unsynced);
        for id in &silent {
            self.remove(id, fx);
        }
        if !silent.is_empty() {
            self.rebalance(now, fx);
        }
    }

    fn expire_joins(&mut self, now: i64, fx: &mut Effects) {
        let State::Preparing { until, initial } = self.state else {
            return;
        };
        if until > now {
            return;
        }
        match initial {
            Some(Initial {
                step_ms,
                remaining_ms,
            }) if self.member_added && remaining_ms > 0 => {
                self.member_added = false;
                let wait = step_ms.min(remaining_ms);
                let initial = Some(Initial {
                    step_ms,
                    remaining_ms: remaining_ms - wait,
                });
                self.state = State::Preparing {
                    until: now + wait,
                    initial,
                };
            }
            Some(_) | None => self.complete_join(now, fx),
        }
    }
}
