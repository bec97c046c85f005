//! SyncGroup, Heartbeat and LeaveGroup: a member of the current generation at work, and its farewell.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::group::{Effects, Group, State};
use super::member::Ticket;

#[derive(Debug, Clone)]
pub(super) struct Sync {
    pub(super) ticket: Ticket,
    pub(super) generation: i32,
    pub(super) member_id: String,
    pub(super) instance: Option<String>,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) assignments: BTreeMap<String, Bytes>,
}

impl Group {
    pub(super) fn sync(&mut self, sync: Sync, now: i64, fx: &mut Effects) {
        if let Err(error) = self.validate_sync(&sync) {
            return fx.refuse_sync(sync.ticket, error);
        }
        match self.state {
            State::Empty => fx.refuse_sync(sync.ticket, ResponseError::UnknownMemberId),
            State::Preparing { .. } => fx.refuse_sync(sync.ticket, ResponseError::RebalanceInProgress),
            State::Completing => self.await_assignment(sync, now, fx),
            State::Stable => self.hand_out(&sync.member_id, sync.ticket, now, fx),
        }
    }

    fn validate_sync(&self, sync: &Sync) -> Result<(), ResponseError> {
        self.validate_member(&sync.member_id, sync.instance.as_deref())?;
        let differs = |told: &Option<String>, ours: &Option<String>| told.is_some() && told != ours;
        if sync.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if differs(&sync.protocol_type, &self.protocol_type) || differs(&sync.protocol, &self.protocol) {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn await_assignment(&mut self, sync: Sync, now: i64, fx: &mut Effects) {
        let leads = self.is_leader(&sync.member_id);
        self.has_synced(&sync.member_id);
        let member = self.members.get_mut(&sync.member_id);
        if let Some(superseded) = member.and_then(|member| member.syncing.replace(sync.ticket)) {
            fx.refuse_sync(superseded, ResponseError::RebalanceInProgress);
        }
        if leads {
            self.assign(sync.assignments, now, fx);
        }
    }

    fn assign(&mut self, mut assignments: BTreeMap<String, Bytes>, now: i64, fx: &mut Effects) {
        self.state = State::Stable;
        fx.record = true;
        for (id, member) in &mut self.members {
            // Whom the leader left out gets nothing, but it does get an answer.
            member.assignment = assignments.remove(id).unwrap_or_default();
        }
        let waiting = self
            .members
            .values()
            .filter_map(|member| Some((member.id.clone(), member.syncing?)));
        for (id, ticket) in waiting.collect::<Vec<_>>() {
            self.hand_out(&id, ticket, now, fx);
        }
    }

    fn hand_out(&mut self, id: &str, ticket: Ticket, now: i64, fx: &mut Effects) {
        self.has_synced(id);
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.syncing = None;
        member.heard(now);
        let synced = self.synced(&self.members[id]);
        fx.syncs.push((ticket, Ok(synced)));
    }

    fn has_synced(&mut self, id: &str) {
        self.unsynced.remove(id);
        if self.unsynced.is_empty() {
            self.sync_until = None;
        }
    }

    pub(super) fn heartbeat(
        &mut self,
        member_id: &str,
        instance: Option<&str>,
        generation: i32,
        now: i64,
    ) -> Result<(), ResponseError> {
        self.validate_member(member_id, instance)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if let Some(member) = self.members.get_mut(member_id) {
            member.heard(now);
        }
        match self.state {
            State::Empty => Err(ResponseError::UnknownMemberId),
            State::Preparing { .. } => Err(ResponseError::RebalanceInProgress),
            State::Completing | State::Stable => Ok(()),
        }
    }

    /// A member leaves, or an administrator removes an instance without knowing its id.
    pub(super) fn leave(
        &mut self,
        member_id: &str,
        instance: Option<&str>,
        now: i64,
        fx: &mut Effects,
    ) -> Result<(), ResponseError> {
        if self.pending.remove(member_id).is_some() {
            self.complete_join_if_all_are_here(now, fx);
            return Ok(());
        }
        let id = if member_id.is_empty() {
            let holder = instance.and_then(|instance| self.instances.get(instance).cloned());
            holder.ok_or(ResponseError::UnknownMemberId)?
        } else {
            self.validate_member(member_id, instance)?;
            member_id.to_owned()
        };
        self.remove(&id, fx);
        self.rebalance(now, fx);
        Ok(())
    }
}
