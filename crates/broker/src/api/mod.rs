//! The APIs: a request comes in with its version, a response goes out. One file for each API or small
//! family; each maps the wire to the topics, groups and transactions and keeps nothing itself.

mod api_versions;
mod cluster;
mod configs;
mod delete_records;
mod fetch;
mod fetch_frame;
mod find_coordinator;
mod groups;
mod list_offsets;
mod log_dirs;
mod metadata;
mod produce;
mod producers;
#[cfg(feature = "faults")]
mod refuse;
mod topics;
mod transactions;

use std::net::SocketAddr;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, BrokerId, TopicName};
use kafka_protocol::protocol::{Request, StrBytes};
use tokio::sync::watch;

use crate::node::Node;
use crate::server::guard::{self, Malformed};
use crate::server::reply::Reply;

/// The only node there is.
pub(crate) const NODE: i32 = 1;

/// A request as it came, its body still encoded.
pub(crate) struct Call {
    /// The API, if it is spoken in this version.
    pub(crate) api: Option<ApiKey>,
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client_id: String,
    pub(crate) body: Bytes,
    pub(crate) peer: SocketAddr,
    /// The address by which this client reached the broker, and so can again.
    pub(crate) local: SocketAddr,
    /// Turns true when the client has left.
    pub(crate) gone: watch::Receiver<bool>,
    /// Turns true when the broker stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// What becomes of a request.
pub(crate) enum Answer {
    Reply(Reply),
    /// Done, and the client wants no answer.
    Silence,
    /// The connection ends, for this reason.
    Close(String),
}

impl Call {
    pub(crate) fn decode<Q: Request>(&self) -> Result<Q, Malformed> {
        guard::decode(&self.body, self.version)
    }

    pub(crate) fn reply<Q: Request>(&self, response: &Q::Response) -> Answer {
        match Reply::encode(self.correlation_id, response, self.version) {
            Ok(reply) => Answer::Reply(reply),
            Err(cause) => Answer::Close(format!("cannot encode the answer to {:?}: {cause}", self.api)),
        }
    }

    /// Decodes the request, asks `work` and encodes what it says.
    fn plain<Q: Request>(&self, work: impl FnOnce(Q, i16) -> Q::Response) -> Result<Answer, Malformed> {
        Ok(self.reply::<Q>(&work(self.decode::<Q>()?, self.version)))
    }
}

/// Answers a request.
pub(crate) async fn answer(node: &Node, call: Call) -> Answer {
    let Some(api) = call.api else {
        return api_versions::refuse(&call);
    };
    #[cfg(feature = "faults")]
    let outcome = struck(node, api, &call).await;
    #[cfg(not(feature = "faults"))]
    let outcome = dispatch(node, api, &call).await;
    match outcome {
        Ok(answer) => answer,
        Err(malformed) => Answer::Close(format!("{api:?} version {}: {malformed}", call.version)),
    }
}

/// Answers a request as the faults on order will have it.
#[cfg(feature = "faults")]
async fn struck(node: &Node, api: ApiKey, call: &Call) -> Result<Answer, Malformed> {
    use crate::faults::Effect;
    node.faults.thawed().await;
    match node.faults.strike(api, &call.client_id, &call.body) {
        None => dispatch(node, api, call).await,
        Some(Effect::Fail(error)) => refuse::answer(api, call, error.code()),
        Some(Effect::Delay(wait)) => {
            crate::clock::sleep(wait).await;
            dispatch(node, api, call).await
        }
        Some(Effect::Drop) => Ok(Answer::Close("dropped on order".into())),
        Some(Effect::Unanswered) => {
            let _ = dispatch(node, api, call).await?;
            Ok(Answer::Close("left unanswered on order".into()))
        }
    }
}

async fn dispatch(node: &Node, api: ApiKey, call: &Call) -> Result<Answer, Malformed> {
    match api {
        ApiKey::ApiVersions => call.plain(|req, version| api_versions::answer(&req, version)),
        ApiKey::Metadata => call.plain(|req, version| metadata::answer(node, call.local, &req, version)),
        ApiKey::DescribeTopicPartitions => call.plain(|req, _| metadata::describe_partitions(node, &req)),
        ApiKey::DescribeCluster => {
            call.plain(|req, version| cluster::answer(node, call.local, &req, version))
        }
        ApiKey::FindCoordinator => {
            call.plain(|req, version| find_coordinator::answer(call.local, req, version))
        }
        ApiKey::Produce => produce::answer(node, call),
        ApiKey::Fetch => fetch::answer(node, call).await,
        ApiKey::ListOffsets => call.plain(|req, version| list_offsets::answer(node, req, version)),
        ApiKey::OffsetForLeaderEpoch => call.plain(|req, _| list_offsets::for_leader_epoch(node, req)),
        ApiKey::DeleteRecords => call.plain(|req, _| delete_records::answer(node, req)),
        ApiKey::CreateTopics => call.plain(|req, version| topics::create(node, req, version)),
        ApiKey::DeleteTopics => call.plain(|req, version| topics::delete(node, req, version)),
        ApiKey::CreatePartitions => call.plain(|req, _| topics::create_partitions(node, req)),
        ApiKey::ListPartitionReassignments => call.plain(|req, _| topics::no_reassignments(&req)),
        ApiKey::DescribeConfigs => call.plain(|req, _| configs::describe(node, req)),
        ApiKey::AlterConfigs => call.plain(|req, _| configs::alter(node, req)),
        ApiKey::IncrementalAlterConfigs => call.plain(|req, _| configs::alter_incrementally(node, req)),
        ApiKey::DescribeLogDirs => call.plain(|req, version| log_dirs::answer(node, req, version)),
        ApiKey::DescribeProducers => call.plain(|req, _| producers::answer(node, req)),
        ApiKey::JoinGroup
        | ApiKey::SyncGroup
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::OffsetCommit
        | ApiKey::OffsetFetch
        | ApiKey::OffsetDelete
        | ApiKey::ListGroups
        | ApiKey::DescribeGroups
        | ApiKey::DeleteGroups => groups::answer(node, api, call).await,
        ApiKey::InitProducerId
        | ApiKey::AddPartitionsToTxn
        | ApiKey::AddOffsetsToTxn
        | ApiKey::TxnOffsetCommit
        | ApiKey::EndTxn => transactions::answer(node, api, call),
        // The list of what is spoken and this match must name the same APIs; a test walks the list.
        other => Ok(Answer::Close(format!("{other:?} is not answered"))),
    }
}

fn text(s: impl Into<String>) -> StrBytes {
    StrBytes::from_string(s.into())
}

fn topic_name(s: &str) -> TopicName {
    TopicName(text(s))
}

fn node_id() -> BrokerId {
    BrokerId(NODE)
}

/// The code of an outcome; zero is success.
fn code<T>(outcome: &Result<T, ResponseError>) -> i16 {
    outcome.as_ref().err().map_or(0, ResponseError::code)
}
