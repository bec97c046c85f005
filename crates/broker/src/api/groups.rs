//! The APIs of groups and committed offsets: each goes to the groups' coordinator as it is. Joining and
//! syncing wait for the other members; a client that leaves meanwhile is waited for no longer.

use kafka_protocol::messages::{
    ApiKey, DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest,
    LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    SyncGroupRequest,
};

use super::{Answer, Call};
use crate::groups::Peer;
use crate::node::Node;
use crate::server::guard::Malformed;
use crate::sync::set;

pub(super) async fn answer(node: &Node, api: ApiKey, call: &Call) -> Result<Answer, Malformed> {
    let groups = &node.groups;
    let exists = |topic: &str| node.topics.get(topic).is_some();
    match api {
        ApiKey::JoinGroup => {
            let peer = Peer {
                client_id: call.client_id.clone(),
                host: call.peer.ip().to_string(),
            };
            let request: JoinGroupRequest = call.decode()?;
            waited::<JoinGroupRequest>(call, groups.join(&peer, request, call.version)).await
        }
        ApiKey::SyncGroup => {
            let request: SyncGroupRequest = call.decode()?;
            waited::<SyncGroupRequest>(call, groups.sync(request, call.version)).await
        }
        ApiKey::Heartbeat => call.plain(|req: HeartbeatRequest, _| groups.heartbeat(&req)),
        ApiKey::LeaveGroup => call.plain(|req: LeaveGroupRequest, version| groups.leave(&req, version)),
        ApiKey::OffsetCommit => {
            call.plain(|req: OffsetCommitRequest, version| groups.offset_commit(&req, version, exists))
        }
        ApiKey::OffsetFetch => {
            call.plain(|req: OffsetFetchRequest, version| groups.offset_fetch(&req, version))
        }
        ApiKey::OffsetDelete => call.plain(|req: OffsetDeleteRequest, _| groups.offset_delete(&req, exists)),
        ApiKey::ListGroups => call.plain(|req: ListGroupsRequest, _| groups.list(&req)),
        ApiKey::DescribeGroups => {
            call.plain(|req: DescribeGroupsRequest, version| groups.describe(&req, version))
        }
        ApiKey::DeleteGroups => call.plain(|req: DeleteGroupsRequest, _| groups.delete(&req)),
        other => Ok(Answer::Close(format!("{other:?} is not answered"))),
    }
}

async fn waited<Q: kafka_protocol::protocol::Request>(
    call: &Call,
    answer: impl Future<Output = Q::Response>,
) -> Result<Answer, Malformed> {
    let (mut gone, mut stop) = (call.gone.clone(), call.stop.clone());
    tokio::select! {
        response = answer => Ok(call.reply::<Q>(&response)),
        () = set(&mut gone) => Ok(Answer::Silence),
        () = set(&mut stop) => Ok(Answer::Close("the broker stops".into())),
    }
}
