//! What administrators ask: ListGroups, DescribeGroups, DeleteGroups, OffsetDelete.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, GroupId,
    ListGroupsRequest, ListGroupsResponse, OffsetDeleteRequest, OffsetDeleteResponse,
};
use kafka_protocol::protocol::StrBytes;
use tracing::warn;

use super::entry::Entry;
use super::group::{Group, State};
use super::member::Member;
use super::requests::code;
use super::{Desk, Groups};

/// Read, delete, describe, describe configs, alter configs: all there is for a group, and nobody is refused.
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
const NOT_ASKED: i32 = i32::MIN;

impl Groups {
    /// An empty filter lets everything through; names are compared without regard to case.
    pub(crate) fn list(&self, req: &ListGroupsRequest) -> ListGroupsResponse {
        let passes = |filter: &[StrBytes], name: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        let desk = self.desk();
        let groups = desk.book.groups.values();
        let wanted = groups.filter(|group| {
            passes(&req.states_filter, group.state.name()) && passes(&req.types_filter, "classic")
        });
        let listed = wanted.map(|group| {
            ListedGroup::default()
                .with_group_id(id_of(group))
                .with_protocol_type(text(group.protocol_type.as_deref()))
                .with_group_state(StrBytes::from_static_str(group.state.name()))
                .with_group_type(StrBytes::from_static_str("classic"))
        });
        ListGroupsResponse::default().with_groups(listed.collect())
    }

    /// A group that does not exist is dead, and from version 6 on not found.
    pub(crate) fn describe(&self, req: &DescribeGroupsRequest, version: i16) -> DescribeGroupsResponse {
        let operations = if req.include_authorized_operations {
            ALL_OPERATIONS
        } else {
            NOT_ASKED
        };
        let desk = self.desk();
        let describe = |id: &GroupId| {
            let described = match desk.book.groups.get(id.as_str()) {
                Some(group) => described(group),
                None => dead(id, version),
            };
            described.with_authorized_operations(operations)
        };
        DescribeGroupsResponse::default().with_groups(req.groups.iter().map(describe).collect())
    }

    /// Only a group without members can go, its offsets with it.
    pub(crate) fn delete(&self, req: &DeleteGroupsRequest) -> DeleteGroupsResponse {
        let mut desk = self.desk();
        let results = req.groups_names.iter().map(|id| {
            let result = desk.delete_group(id);
            DeletableGroupResult::default()
                .with_group_id(id.clone())
                .with_error_code(code(result))
        });
        DeleteGroupsResponse::default().with_results(results.collect())
    }

    /// Offsets of topics that members read stay.
    pub(crate) fn offset_delete(
        &self,
        req: &OffsetDeleteRequest,
        exists: impl Fn(&str) -> bool,
    ) -> OffsetDeleteResponse {
        let mut desk = self.desk();
        if let Err(error) = desk.may_delete_offsets(&req.group_id) {
            return OffsetDeleteResponse::default().with_error_code(error.code());
        }
        let mut verdicts = Vec::new();
        let mut places = Vec::new();
        for topic in &req.topics {
            let verdict = desk.may_delete_topic(&req.group_id, &topic.name, &exists);
            if verdict.is_ok() {
                places.extend(
                    topic
                        .partitions
                        .iter()
                        .map(|each| (topic.name.to_string(), each.partition_index)),
                );
            }
            verdicts.push(verdict);
        }
        if !places.is_empty() {
            let written = desk.book.write(Entry::OffsetsForgotten {
                group: req.group_id.to_string(),
                places,
            });
            if let Err(error) = written {
                warn!(group = %req.group_id.as_str(), %error, "cannot write down deleted offsets");
                return OffsetDeleteResponse::default()
                    .with_error_code(ResponseError::CoordinatorNotAvailable.code());
            }
        }
        let topics = req.topics.iter().zip(verdicts).map(|(topic, verdict)| {
            let answered = topic.partitions.iter().map(|each| {
                OffsetDeleteResponsePartition::default()
                    .with_partition_index(each.partition_index)
                    .with_error_code(code(verdict))
            });
            OffsetDeleteResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(answered.collect())
        });
        OffsetDeleteResponse::default().with_topics(topics.collect())
    }
}

impl Desk {
    fn delete_group(&mut self, id: &str) -> Result<(), ResponseError> {
        let group = self.book.groups.get(id).ok_or(ResponseError::GroupIdNotFound)?;
        match group.state {
            State::Empty => {}
            State::Preparing { .. } | State::Completing | State::Stable => {
                return Err(ResponseError::NonEmptyGroup);
            }
        }
        self.book
            .write(Entry::GroupForgotten { group: id.to_owned() })
            .map_err(|error| {
                warn!(group = id, %error, "cannot write down that the group is deleted");
                ResponseError::CoordinatorNotAvailable
            })
    }

    fn may_delete_offsets(&self, id: &str) -> Result<(), ResponseError> {
        if id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        let group = self.book.groups.get(id).ok_or(ResponseError::GroupIdNotFound)?;
        match group.state {
            State::Empty => Ok(()),
            // Of members that are no consumers nobody knows what they read.
            State::Preparing { .. } | State::Completing | State::Stable
                if !group.uses_consumer_protocol() =>
            {
                Err(ResponseError::NonEmptyGroup)
            }
            State::Preparing { .. } | State::Completing | State::Stable => Ok(()),
        }
    }

    fn may_delete_topic(
        &self,
        id: &str,
        topic: &str,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), ResponseError> {
        let reads = self.book.groups.get(id).is_some_and(|group| group.reads(topic));
        if !exists(topic) {
            Err(ResponseError::UnknownTopicOrPartition)
        } else if reads {
            Err(ResponseError::GroupSubscribedToTopic)
        } else {
            Ok(())
        }
    }
}

fn id_of(group: &Group) -> GroupId {
    GroupId(StrBytes::from_string(group.id.clone()))
}

fn text(value: Option<&str>) -> StrBytes {
    StrBytes::from_string(value.unwrap_or_default().to_owned())
}

fn dead(id: &GroupId, version: i16) -> DescribedGroup {
    let dead = DescribedGroup::default()
        .with_group_id(id.clone())
        .with_group_state(StrBytes::from_static_str("Dead"));
    if version < 6 {
        return dead;
    }
    dead.with_error_code(ResponseError::GroupIdNotFound.code())
        .with_error_message(Some(StrBytes::from_string(format!(
            "Group {} not found.",
            id.as_str()
        ))))
}

fn described(group: &Group) -> DescribedGroup {
    // What members said and got means something only together with the protocol it was said for.
    let protocol = match group.state {
        State::Stable => group.protocol.as_deref(),
        State::Empty | State::Preparing { .. } | State::Completing => None,
    };
    DescribedGroup::default()
        .with_group_id(id_of(group))
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_protocol_type(text(group.protocol_type.as_deref()))
        .with_protocol_data(text(protocol))
        .with_members(
            group
                .members
                .values()
                .map(|member| described_member(member, protocol))
                .collect(),
        )
}

fn described_member(member: &Member, protocol: Option<&str>) -> DescribedGroupMember {
    let described = DescribedGroupMember::default()
        .with_member_id(text(Some(&member.id)))
        .with_group_instance_id(member.instance.clone().map(StrBytes::from_string))
        .with_client_id(text(Some(&member.client_id)))
        .with_client_host(text(Some(&member.client_host)));
    match protocol {
        None => described,
        Some(protocol) => described
            .with_member_metadata(member.metadata(protocol))
            .with_member_assignment(member.assignment.clone()),
    }
}
