//! DescribeCluster: the cluster's id and its one node.

use std::net::SocketAddr;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};

use super::{node_id, text};
use crate::node::Node;

/// Who is asked for: brokers, not controllers.
const BROKERS: i8 = 1;

pub(super) fn answer(
    node: &Node,
    local: SocketAddr,
    request: &DescribeClusterRequest,
    version: i16,
) -> DescribeClusterResponse {
    if version >= 1 && request.endpoint_type != BROKERS {
        return DescribeClusterResponse::default()
            .with_error_code(ResponseError::MismatchedEndpointType.code())
            .with_error_message(Some(text("this is a broker's endpoint")));
    }
    let broker = DescribeClusterBroker::default()
        .with_broker_id(node_id())
        .with_host(text(local.ip().to_string()))
        .with_port(local.port().into());
    DescribeClusterResponse::default()
        .with_cluster_id(text(node.cluster_id.clone()))
        .with_controller_id(node_id())
        .with_brokers(vec![broker])
}
