//! Members and transactions by hand: the requests that a client library makes for itself, one by one, so
//! that a test can make the wrong one.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponsePartition;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerProtocolSubscription, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::clock::eventually;
use crate::raw::{Connection, error, group_id, text, topic_name};
use crate::target::Target;

/// Who speaks to a group: a member in a generation, or nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    /// The member's id.
    pub member: StrBytes,
    /// The generation that it believes to be in.
    pub generation: i32,
}

impl Voice {
    /// Somebody who is not a member.
    #[must_use]
    pub fn outsider() -> Voice {
        Voice { member: text(""), generation: -1 }
    }
}

impl Target {
    /// A connection to the coordinator of a group, once that is ready: Kafka makes its topic when first asked.
    #[must_use]
    pub fn group_coordinator(&self, group: &str) -> Connection {
        let mut connection = self.coordinator(group, 0);
        let described = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
        eventually("a coordinator that is ready", || {
            (!is_loading(connection.ask(&described, 5).groups[0].error_code)).then_some(())
        });
        connection
    }

    /// A connection to the coordinator of a transactional id, once that is ready.
    #[must_use]
    pub fn transaction_coordinator(&self, id: &str) -> Connection {
        self.coordinator(id, 1)
    }

    fn coordinator(&self, key: &str, kind: i8) -> Connection {
        let mut connection = self.connect();
        let request =
            FindCoordinatorRequest::default().with_key_type(kind).with_coordinator_keys(vec![text(key)]);
        eventually("a coordinator", || {
            let found = connection.ask(&request, 4).coordinators.remove(0);
            (found.error_code == 0).then(|| Connection::to(&format!("{}:{}", &*found.host, found.port)))
        })
    }
}

/// Whether a coordinator is still on its way.
pub(crate) fn is_loading(code: i16) -> bool {
    matches!(
        error(code),
        Some(
            ResponseError::CoordinatorLoadInProgress
                | ResponseError::CoordinatorNotAvailable
                | ResponseError::NotCoordinator
        )
    )
}

/// A request to join a group, for a subscription to one topic under the range assignor.
#[must_use]
pub fn joining(group: &str, topic: &str, member: &StrBytes) -> JoinGroupRequest {
    let subscription = ConsumerProtocolSubscription::default().with_topics(vec![text(topic)]);
    let mut metadata = BytesMut::new();
    metadata.put_i16(1);
    subscription.encode(&mut metadata, 1).expect("a subscription");
    let protocol =
        JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(metadata.freeze());
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_session_timeout_ms(6_000)
        .with_rebalance_timeout_ms(6_000)
        .with_member_id(member.clone())
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

impl Connection {
    /// Joins as the only member of a group and takes an empty assignment.
    pub fn join_alone(&mut self, group: &str, topic: &str) -> Voice {
        let refused = self.ask(&joining(group, topic, &text("")), 9);
        assert_eq!(error(refused.error_code), Some(ResponseError::MemberIdRequired));
        let joined = self.ask(&joining(group, topic, &refused.member_id), 9);
        assert_eq!((joined.error_code, &joined.leader), (0, &joined.member_id));
        assert_eq!(self.sync(group, &joined), None);
        Voice { member: joined.member_id, generation: joined.generation_id }
    }

    /// Ends a rebalance as its leader, with an assignment of no meaning for every member.
    pub fn sync(&mut self, group: &str, joined: &JoinGroupResponse) -> Option<ResponseError> {
        let assign = |member: &kafka_protocol::messages::join_group_response::JoinGroupResponseMember| {
            SyncGroupRequestAssignment::default()
                .with_member_id(member.member_id.clone())
                .with_assignment(Bytes::from_static(b"assigned"))
        };
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(joined.members.iter().map(assign).collect());
        error(self.ask(&request, 5).error_code)
    }

    /// Says that a member lives.
    pub fn heartbeat(&mut self, group: &str, voice: &Voice) -> Option<ResponseError> {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(voice.generation)
            .with_member_id(voice.member.clone());
        error(self.ask(&request, 4).error_code)
    }

    /// Commits an offset and metadata for the first partitions of a topic.
    pub fn commit(
        &mut self,
        (group, voice): (&str, &Voice),
        (topic, partitions): (&str, i32),
        offset: i64,
        metadata: Option<&str>,
    ) -> Vec<Option<ResponseError>> {
        let partition = |index| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(index)
                .with_committed_offset(offset)
                .with_committed_metadata(metadata.map(text))
        };
        let topic = OffsetCommitRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions((0..partitions).map(partition).collect());
        let request = OffsetCommitRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id_or_member_epoch(voice.generation)
            .with_member_id(voice.member.clone())
            .with_topics(vec![topic]);
        let answer = self.ask(&request, 8);
        answer.topics[0].partitions.iter().map(|partition| error(partition.error_code)).collect()
    }

    /// What a group has committed for partition 0, once no transaction can change it.
    pub fn committed_for_good(&mut self, group: &str, topic: &str) -> OffsetFetchResponsePartition {
        eventually("a stable offset", || {
            let found = self.committed(group, topic, true);
            (error(found.error_code) != Some(ResponseError::UnstableOffsetCommit)).then_some(found)
        })
    }

    /// What a group has committed for partition 0; with `stable`, only what no open transaction may change.
    pub fn committed(&mut self, group: &str, topic: &str, stable: bool) -> OffsetFetchResponsePartition {
        let topic =
            OffsetFetchRequestTopic::default().with_name(topic_name(topic)).with_partition_indexes(vec![0]);
        let request = OffsetFetchRequest::default()
            .with_group_id(group_id(group))
            .with_topics(Some(vec![topic]))
            .with_require_stable(stable);
        let mut answer = self.ask(&request, 7);
        assert_eq!(answer.error_code, 0, "the whole request is refused");
        answer.topics.remove(0).partitions.remove(0)
    }
}
