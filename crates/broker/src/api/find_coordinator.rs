//! FindCoordinator: whoever coordinates a group or a transaction, it is this node.

use std::net::SocketAddr;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::{node_id, text};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(super) fn answer(
    local: SocketAddr,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    let is_known = matches!(request.key_type, GROUP | TRANSACTION);
    if version >= 4 {
        let one = |key: StrBytes| coordinator(local, is_known).with_key(key);
        let coordinators = request.coordinator_keys.into_iter().map(one).collect();
        return FindCoordinatorResponse::default().with_coordinators(coordinators);
    }
    let one = coordinator(local, is_known);
    FindCoordinatorResponse::default()
        .with_error_code(one.error_code)
        .with_error_message(one.error_message)
        .with_node_id(one.node_id)
        .with_host(one.host)
        .with_port(one.port)
}

fn coordinator(local: SocketAddr, is_known: bool) -> Coordinator {
    if !is_known {
        return Coordinator::default()
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(ResponseError::InvalidRequest.code())
            .with_error_message(Some(text(
                "groups and transactions have coordinators here, nothing else",
            )));
    }
    Coordinator::default()
        .with_node_id(node_id())
        .with_host(text(local.ip().to_string()))
        .with_port(local.port().into())
}
