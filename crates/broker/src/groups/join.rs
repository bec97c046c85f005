//! JoinGroup: who is let in, under which id, and whether the group must rebalance for it.

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::group::{Effects, Group, State};
use super::member::{Member, Ticket};

/// A new member cannot be heard while it waits for its first generation: it may have gone away and
/// come back under another id. Kafka gives it this long.
const NEW_MEMBER_TIMEOUT_MS: i64 = 300_000;

/// A JoinGroup request, with the id its sender gets if it has none.
#[derive(Debug, Clone)]
pub(super) struct Join {
    pub(super) ticket: Ticket,
    pub(super) member_id: String,
    pub(super) fresh_id: String,
    pub(super) instance: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) protocol_type: String,
    pub(super) protocols: Vec<(String, Bytes)>,
    /// Version 4 on: a dynamic member learns its id first and joins with it.
    pub(super) id_first: bool,
    /// Version 9 on: a static leader that comes back can be told to leave the assignment as it is.
    pub(super) can_skip_assignment: bool,
}

/// What the broker allows a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_size: usize,
    pub(super) initial_delay_ms: i64,
}

impl Group {
    pub(super) fn join(&mut self, join: Join, limits: Limits, now: i64, fx: &mut Effects) {
        if !self.has_room_for(&join.member_id, limits.max_size) {
            self.remove(&join.member_id, fx);
            fx.refuse_join(join.ticket, "", ResponseError::GroupMaxSizeReached);
        } else if !self.fits(&join.protocol_type, &join.protocols) {
            fx.refuse_join(
                join.ticket,
                &join.member_id,
                ResponseError::InconsistentGroupProtocol,
            );
        } else if join.member_id.is_empty() {
            self.join_without_id(join, limits, now, fx);
        } else if self.pending.contains_key(&join.member_id) {
            let id = join.member_id.clone();
            self.add(&id, join, limits, now, fx);
        } else {
            self.join_again(join, now, fx);
        }
        self.complete_join_if_all_are_here(now, fx);
    }

    fn has_room_for(&self, member_id: &str, max_size: usize) -> bool {
        let known = self.members.get(member_id);
        match self.state {
            State::Empty => true,
            State::Preparing { .. } => {
                let waiting = self
                    .members
                    .values()
                    .filter(|member| member.joining.is_some())
                    .count();
                known.is_some_and(|member| member.joining.is_some()) || waiting < max_size
            }
            State::Completing | State::Stable => known.is_some() || self.members.len() < max_size,
        }
    }

    fn join_without_id(&mut self, join: Join, limits: Limits, now: i64, fx: &mut Effects) {
        let fresh = join.fresh_id.clone();
        let holder = join
            .instance
            .as_ref()
            .and_then(|instance| self.instances.get(instance).cloned());
        if let Some(old) = holder {
            self.replace_static(&old, join, now, fx);
        } else if join.id_first && join.instance.is_none() {
            self.pending
                .insert(fresh.clone(), now + i64::from(join.session_timeout_ms));
            fx.refuse_join(join.ticket, &fresh, ResponseError::MemberIdRequired);
        } else {
            self.add(&fresh, join, limits, now, fx);
        }
    }

    fn add(&mut self, id: &str, join: Join, limits: Limits, now: i64, fx: &mut Effects) {
        self.pending.remove(id);
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type);
        }
        if let Some(instance) = &join.instance {
            self.instances.insert(instance.clone(), id.to_owned());
        }
        self.leader.get_or_insert_with(|| id.to_owned());
        self.member_added |= self.generation == 0 && matches!(self.state, State::Preparing { .. });
        let member = Member {
            id: id.to_owned(),
            instance: join.instance,
            client_id: join.client_id,
            client_host: join.client_host,
            session_timeout_ms: join.session_timeout_ms,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            protocols: join.protocols,
            assignment: Bytes::new(),
            joining: Some(join.ticket),
            syncing: None,
            new: true,
            session_ends: now + NEW_MEMBER_TIMEOUT_MS,
        };
        self.members.insert(id.to_owned(), member);
        match self.state {
            State::Empty => self.begin(limits.initial_delay_ms, now, fx),
            State::Preparing { .. } | State::Completing | State::Stable => self.rebalance(now, fx),
        }
    }

    fn join_again(&mut self, join: Join, now: i64, fx: &mut Effects) {
        if let Err(error) = self.validate_member(&join.member_id, join.instance.as_deref()) {
            return fx.refuse_join(join.ticket, &join.member_id, error);
        }
        let id = join.member_id.clone();
        let unchanged = self.members[&id].protocols == join.protocols;
        let as_it_is = match self.state {
            // A member of an empty group cannot be; it starts over.
            State::Empty => return fx.refuse_join(join.ticket, &id, ResponseError::UnknownMemberId),
            State::Preparing { .. } => false,
            // The answer to its first request was lost, the generation is the same.
            State::Completing => unchanged,
            // The leader asks again when what it assigns has changed, a topic's partitions for example.
            State::Stable => unchanged && !self.is_leader(&id),
        };
        if as_it_is {
            let joined = self.joined(&id);
            fx.joins.push((join.ticket, Ok(joined)));
        } else {
            self.update(&id, join, fx);
            self.rebalance(now, fx);
        }
    }

    fn update(&mut self, id: &str, join: Join, fx: &mut Effects) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.protocols = join.protocols;
        member.session_timeout_ms = join.session_timeout_ms;
        member.rebalance_timeout_ms = join.rebalance_timeout_ms;
        if let Some(superseded) = member.joining.replace(join.ticket) {
            fx.refuse_join(superseded, id, ResponseError::RebalanceInProgress);
        }
    }

    /// The instance came back under a new id: it takes the place of the old one, which is fenced.
    fn replace_static(&mut self, old: &str, join: Join, now: i64, fx: &mut Effects) {
        let id = join.fresh_id.clone();
        let ticket = join.ticket;
        let can_skip = join.can_skip_assignment;
        let leader_before = self.leader.clone().unwrap_or_default();
        self.hand_over(old, &id, now, fx);
        self.update(&id, join, fx);
        match self.state {
            State::Stable if self.protocol == self.select_protocol() => {
                self.release(&id);
                let mut joined = self.joined(&id);
                joined.skip_assignment = can_skip && self.is_leader(&id);
                if !can_skip {
                    // An older client that sees itself as the leader would assign anew, and a stable
                    // group ignores that: it is shown the id that the leader had before.
                    joined.leader = leader_before;
                    joined.members.clear();
                }
                fx.joins.push((ticket, Ok(joined)));
                fx.record = true;
            }
            // The leader may already assign to the old id: the new one would get nothing.
            State::Stable | State::Completing => self.rebalance(now, fx),
            State::Empty | State::Preparing { .. } => {}
        }
    }

    fn hand_over(&mut self, old: &str, id: &str, now: i64, fx: &mut Effects) {
        let Some(mut member) = self.members.remove(old) else {
            return;
        };
        if let Some(ticket) = member.joining.take() {
            fx.refuse_join(ticket, old, ResponseError::FencedInstanceId);
        }
        if let Some(ticket) = member.syncing.take() {
            fx.refuse_sync(ticket, ResponseError::FencedInstanceId);
        }
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.to_owned());
        }
        if self.is_leader(old) {
            self.leader = Some(id.to_owned());
        }
        if self.unsynced.remove(old) {
            self.unsynced.insert(id.to_owned());
        }
        id.clone_into(&mut member.id);
        member.heard(now);
        self.members.insert(id.to_owned(), member);
    }

    fn release(&mut self, id: &str) {
        if let Some(member) = self.members.get_mut(id) {
            member.joining = None;
        }
    }
}
