//! One group as plain data: its members, its generation and where it stands between two rebalances.
//!
//! Comes in: a request and the time. Goes out: [`Effects`], the answers that became due and whether
//! the group must be written down before they are sent. Nothing here waits, reads a clock or does I/O.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::member::{Member, Ticket};
use super::offsets::Offsets;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No members; maybe offsets.
    Empty,
    /// Members are asked to join again.
    Preparing {
        until: i64,
        initial: Option<Initial>,
    },
    /// All know the generation; the leader computes the assignment.
    Completing,
    Stable,
}

/// The wait for more members before the first generation of an empty group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Initial {
    pub(super) step_ms: i64,
    pub(super) remaining_ms: i64,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Preparing { .. } => "PreparingRebalance",
            Self::Completing => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joined {
    pub(super) member_id: String,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: String,
    /// Id, instance and metadata of each: only the leader learns them.
    pub(super) members: Vec<(String, Option<String>, Bytes)>,
    pub(super) skip_assignment: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JoinRefused {
    pub(super) error: ResponseError,
    pub(super) member_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Synced {
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) assignment: Bytes,
}

pub(super) type JoinAnswer = Result<Joined, JoinRefused>;
pub(super) type SyncAnswer = Result<Synced, ResponseError>;

/// What follows from a request or a timer.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) joins: Vec<(Ticket, JoinAnswer)>,
    pub(super) syncs: Vec<(Ticket, SyncAnswer)>,
    /// The group is to be written down before anyone is answered.
    pub(super) record: bool,
}

impl Effects {
    pub(super) fn refuse_join(&mut self, ticket: Ticket, member_id: &str, error: ResponseError) {
        self.joins.push((
            ticket,
            Err(JoinRefused {
                error,
                member_id: member_id.to_owned(),
            }),
        ));
    }

    pub(super) fn refuse_sync(&mut self, ticket: Ticket, error: ResponseError) {
        self.syncs.push((ticket, Err(error)));
    }
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) state: State,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    pub(super) instances: BTreeMap<String, String>,
    /// Ids given out with MEMBER_ID_REQUIRED and when they lapse.
    pub(super) pending: BTreeMap<String, i64>,
    /// Who has not yet asked for its assignment, and until when it may.
    pub(super) unsynced: BTreeSet<String>,
    pub(super) sync_until: Option<i64>,
    pub(super) member_added: bool,
    /// Wall clock: when the last member left, from which the retention of offsets counts.
    pub(super) empty_since_ms: Option<i64>,
    pub(super) offsets: Offsets,
}

impl Group {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            state: State::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            sync_until: None,
            member_added: false,
            empty_since_ms: None,
            offsets: Offsets::default(),
        }
    }

    /// That the request comes from who holds this id, and this instance if it names one.
    pub(super) fn validate_member(
        &self,
        member_id: &str,
        instance: Option<&str>,
    ) -> Result<(), ResponseError> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(ResponseError::UnknownMemberId),
                Some(current) if current != member_id => return Err(ResponseError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) {
            Ok(())
        } else {
            Err(ResponseError::UnknownMemberId)
        }
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
    }

    /// Whether a member of this type with these assignors can be one of the group.
    pub(super) fn fits(&self, protocol_type: &str, protocols: &[(String, Bytes)]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let common = |name: &str| self.members.values().all(|member| member.supports(name));
        self.protocol_type.as_deref() == Some(protocol_type) && protocols.iter().any(|(name, _)| common(name))
    }

    /// The assignor all support that most members prefer; of equals the one preferred by the first member.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let first = self.members.values().next()?;
        let names = first.protocols.iter().map(|(name, _)| name.as_str());
        let candidates: Vec<&str> = names
            .filter(|name| self.members.values().all(|member| member.supports(name)))
            .collect();
        let votes = |name: &str| {
            self.members
                .values()
                .filter(|m| m.vote(&candidates) == Some(name))
                .count()
        };
        // From the back, because of equals `max_by_key` takes the last.
        candidates
            .iter()
            .rev()
            .max_by_key(|name| votes(name))
            .map(|name| (*name).to_owned())
    }

    pub(super) fn rebalance_timeout_ms(&self) -> i64 {
        self.members
            .values()
            .map(|member| i64::from(member.rebalance_timeout_ms))
            .max()
            .unwrap_or(0)
    }

    pub(super) fn all_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some())
    }

    pub(super) fn joined(&self, member_id: &str) -> Joined {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let described = |member: &Member| {
            (
                member.id.clone(),
                member.instance.clone(),
                member.metadata(protocol),
            )
        };
        let leads = self.is_leader(member_id);
        Joined {
            member_id: member_id.to_owned(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            members: if leads {
                self.members.values().map(described).collect()
            } else {
                Vec::new()
            },
            skip_assignment: false,
        }
    }

    pub(super) fn synced(&self, member: &Member) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: member.assignment.clone(),
        }
    }

    /// All members are gone with the process they were in; the generation is not.
    pub(super) fn dismiss(&mut self, now_ms: i64) {
        self.members.clear();
        self.instances.clear();
        self.leader = None;
        self.protocol = None;
        self.state = State::Empty;
        self.empty_since_ms = Some(now_ms);
    }

    /// Takes a member out and answers whatever it still waits for.
    pub(super) fn remove(&mut self, member_id: &str, fx: &mut Effects) {
        let Some(member) = self.members.remove(member_id) else {
            return;
        };
        // The id is gone: who still holds the connection starts over without one.
        if let Some(ticket) = member.joining {
            fx.refuse_join(ticket, "", ResponseError::UnknownMemberId);
        }
        if let Some(ticket) = member.syncing {
            fx.refuse_sync(ticket, ResponseError::UnknownMemberId);
        }
        if let Some(instance) = &member.instance {
            self.instances.remove(instance);
        }
        self.unsynced.remove(member_id);
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }
}
