//! JoinGroup, SyncGroup, Heartbeat and LeaveGroup as they come over the wire.

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::group::{Effects, JoinAnswer, JoinRefused, SyncAnswer};
use super::join::Join;
use super::member::Ticket;
use super::membership::Sync;
use super::{Groups, Peer};

impl Groups {
    /// Answers when the next generation begins, or at once if there is nothing to wait for.
    pub(crate) async fn join(&self, peer: &Peer, req: JoinGroupRequest, version: i16) -> JoinGroupResponse {
        let answer = match self.enter(peer, &req, version) {
            Ok(answer) => answer.await.unwrap_or_else(|_| Err(shut_down())),
            Err(error) => Err(JoinRefused {
                error,
                member_id: req.member_id.to_string(),
            }),
        };
        join_response(answer, version)
    }

    fn enter(
        &self,
        peer: &Peer,
        req: &JoinGroupRequest,
        version: i16,
    ) -> Result<oneshot::Receiver<JoinAnswer>, ResponseError> {
        let config = &self.0.config;
        let sessions = config.min_session_timeout_ms..=config.max_session_timeout_ms;
        if req.group_id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        if !sessions.contains(&req.session_timeout_ms) {
            return Err(ResponseError::InvalidSessionTimeout);
        }
        let now = self.now();
        let mut desk = self.desk();
        if !req.member_id.is_empty() && !desk.book.groups.contains_key(req.group_id.as_str()) {
            return Err(ResponseError::UnknownMemberId);
        }
        let ticket = desk.ticket();
        let (sender, answer) = oneshot::channel();
        desk.joins.insert(ticket, sender);
        let mut fx = Effects::default();
        let join = joining(peer, req, version, ticket);
        desk.book
            .group(&req.group_id)
            .join(join, self.limits(), now, &mut fx);
        self.settle(&mut desk, &req.group_id, fx, now);
        desk.book.drop_if_unborn(&req.group_id);
        Ok(answer)
    }

    /// Answers when the leader has assigned.
    pub(crate) async fn sync(&self, req: SyncGroupRequest, version: i16) -> SyncGroupResponse {
        let answer = match self.ask_assignment(&req, version) {
            Ok(answer) => answer
                .await
                .unwrap_or(Err(ResponseError::CoordinatorNotAvailable)),
            Err(error) => Err(error),
        };
        match answer {
            Ok(synced) => SyncGroupResponse::default()
                .with_protocol_type(synced.protocol_type.map(StrBytes::from_string))
                .with_protocol_name(synced.protocol.map(StrBytes::from_string))
                .with_assignment(synced.assignment),
            Err(error) => SyncGroupResponse::default().with_error_code(error.code()),
        }
    }

    fn ask_assignment(
        &self,
        req: &SyncGroupRequest,
        version: i16,
    ) -> Result<oneshot::Receiver<SyncAnswer>, ResponseError> {
        if req.group_id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        // From this version on both are mandatory.
        if version >= 5 && (req.protocol_type.is_none() || req.protocol_name.is_none()) {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        let now = self.now();
        let mut desk = self.desk();
        let ticket = desk.ticket();
        let group_id = req.group_id.as_str();
        let group = desk
            .book
            .groups
            .get_mut(group_id)
            .ok_or(ResponseError::UnknownMemberId)?;
        let mut fx = Effects::default();
        group.sync(syncing(req, ticket), now, &mut fx);
        let (sender, answer) = oneshot::channel();
        desk.syncs.insert(ticket, sender);
        self.settle(&mut desk, group_id, fx, now);
        Ok(answer)
    }

    /// Keeps the session, and tells of a rebalance.
    pub(crate) fn heartbeat(&self, req: &HeartbeatRequest) -> HeartbeatResponse {
        let now = self.now();
        let mut desk = self.desk();
        let instance = req.group_instance_id.as_deref();
        let result = match desk.book.groups.get_mut(req.group_id.as_str()) {
            _ if req.group_id.is_empty() => Err(ResponseError::InvalidGroupId),
            None => Err(ResponseError::UnknownMemberId),
            Some(group) => group.heartbeat(&req.member_id, instance, req.generation_id, now),
        };
        HeartbeatResponse::default().with_error_code(code(result))
    }

    /// Up to version 2 one member leaves, later each of a list, with an error of its own.
    pub(crate) fn leave(&self, req: &LeaveGroupRequest, version: i16) -> LeaveGroupResponse {
        if req.group_id.is_empty() {
            return LeaveGroupResponse::default().with_error_code(ResponseError::InvalidGroupId.code());
        }
        if version < 3 {
            let result = self.leave_one(&req.group_id, &req.member_id, None);
            return LeaveGroupResponse::default().with_error_code(code(result));
        }
        let answer = |member: &MemberIdentity| {
            let instance = member.group_instance_id.as_deref();
            let result = self.leave_one(&req.group_id, &member.member_id, instance);
            MemberResponse::default()
                .with_member_id(member.member_id.clone())
                .with_group_instance_id(member.group_instance_id.clone())
                .with_error_code(code(result))
        };
        LeaveGroupResponse::default().with_members(req.members.iter().map(answer).collect())
    }

    fn leave_one(
        &self,
        group_id: &str,
        member_id: &str,
        instance: Option<&str>,
    ) -> Result<(), ResponseError> {
        let now = self.now();
        let mut desk = self.desk();
        let group = desk
            .book
            .groups
            .get_mut(group_id)
            .ok_or(ResponseError::UnknownMemberId)?;
        let mut fx = Effects::default();
        let result = group.leave(member_id, instance, now, &mut fx);
        self.settle(&mut desk, group_id, fx, now);
        result
    }
}

pub(super) fn code(result: Result<(), ResponseError>) -> i16 {
    result.err().map_or(0, |error| error.code())
}

fn shut_down() -> JoinRefused {
    JoinRefused {
        error: ResponseError::CoordinatorNotAvailable,
        member_id: String::new(),
    }
}

fn joining(peer: &Peer, req: &JoinGroupRequest, version: i16, ticket: Ticket) -> Join {
    let instance = req.group_instance_id.as_ref().map(ToString::to_string);
    let known_by = instance.as_ref().unwrap_or(&peer.client_id);
    // Before version 1 the session's length served for both.
    let rebalance_timeout_ms = if version == 0 {
        req.session_timeout_ms
    } else {
        req.rebalance_timeout_ms.max(0)
    };
    let protocol = |name: &StrBytes, metadata: &Bytes| (name.to_string(), Bytes::copy_from_slice(metadata));
    Join {
        ticket,
        member_id: req.member_id.to_string(),
        fresh_id: format!("{known_by}-{}", Uuid::new_v4()),
        instance,
        client_id: peer.client_id.clone(),
        client_host: format!("/{}", peer.host),
        session_timeout_ms: req.session_timeout_ms,
        rebalance_timeout_ms,
        protocol_type: req.protocol_type.to_string(),
        protocols: req
            .protocols
            .iter()
            .map(|each| protocol(&each.name, &each.metadata))
            .collect(),
        id_first: version >= 4,
        can_skip_assignment: version >= 9,
    }
}

fn syncing(req: &SyncGroupRequest, ticket: Ticket) -> Sync {
    let owned = |text: &Option<StrBytes>| text.as_ref().map(ToString::to_string);
    let assignments = req.assignments.iter();
    Sync {
        ticket,
        generation: req.generation_id,
        member_id: req.member_id.to_string(),
        instance: owned(&req.group_instance_id),
        protocol_type: owned(&req.protocol_type),
        protocol: owned(&req.protocol_name),
        assignments: assignments
            .map(|each| {
                (
                    each.member_id.to_string(),
                    Bytes::copy_from_slice(&each.assignment),
                )
            })
            .collect(),
    }
}

fn join_response(answer: JoinAnswer, version: i16) -> JoinGroupResponse {
    // Older clients cannot read a null here.
    let nameless = || (version < 7).then(StrBytes::new);
    match answer {
        Err(refused) => JoinGroupResponse::default()
            .with_error_code(refused.error.code())
            .with_generation_id(-1)
            .with_protocol_name(nameless())
            .with_member_id(StrBytes::from_string(refused.member_id)),
        Ok(joined) => JoinGroupResponse::default()
            .with_generation_id(joined.generation)
            .with_protocol_type(joined.protocol_type.map(StrBytes::from_string))
            .with_protocol_name(joined.protocol.map(StrBytes::from_string).or_else(nameless))
            .with_leader(StrBytes::from_string(joined.leader))
            .with_skip_assignment(joined.skip_assignment)
            .with_member_id(StrBytes::from_string(joined.member_id))
            .with_members(joined.members.into_iter().map(response_member).collect()),
    }
}

fn response_member((id, instance, metadata): (String, Option<String>, Bytes)) -> JoinGroupResponseMember {
    JoinGroupResponseMember::default()
        .with_member_id(StrBytes::from_string(id))
        .with_group_instance_id(instance.map(StrBytes::from_string))
        .with_metadata(metadata)
}
