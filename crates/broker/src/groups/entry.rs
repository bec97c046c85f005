//! What is written down of groups, and how it reads back.

use std::io;

use bytes::Bytes;

use super::group::{Group, State};
use super::member::Member;
use super::offsets::{Committed, Place};
use crate::journal::fields::{Fields, Parse, malformed};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// A generation with its assignment, or that a group has become empty.
    Generation(Generation),
    Committed {
        group: String,
        offsets: Vec<(Place, Committed)>,
    },
    Held {
        group: String,
        producer_id: i64,
        offsets: Vec<(Place, Committed)>,
    },
    TransactionEnded {
        producer_id: i64,
        commit: bool,
        groups: Vec<String>,
    },
    OffsetsForgotten {
        group: String,
        places: Vec<Place>,
    },
    TopicForgotten {
        topic: String,
    },
    GroupForgotten {
        group: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Generation {
    pub(super) group: String,
    pub(super) number: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) empty_since_ms: i64,
    pub(super) members: Vec<Member>,
}

impl Generation {
    pub(super) fn of(group: &Group) -> Self {
        Self {
            group: group.id.clone(),
            number: group.generation,
            protocol_type: group.protocol_type.clone(),
            protocol: group.protocol.clone(),
            leader: group.leader.clone(),
            empty_since_ms: group.empty_since_ms.unwrap_or(-1),
            members: group.members.values().cloned().collect(),
        }
    }

    /// As it was when it was written: whoever waited then has lost the connection since.
    pub(super) fn restore(self, group: &mut Group) {
        let is_empty = self.members.is_empty();
        group.generation = self.number;
        group.protocol_type = self.protocol_type;
        group.protocol = self.protocol.filter(|_| !is_empty);
        group.leader = self.leader.filter(|_| !is_empty);
        group.empty_since_ms = (self.empty_since_ms >= 0).then_some(self.empty_since_ms);
        group.state = if self.members.is_empty() {
            State::Empty
        } else {
            State::Stable
        };
        let instance = |member: &Member| Some((member.instance.clone()?, member.id.clone()));
        group.instances = self.members.iter().filter_map(instance).collect();
        group.members = self
            .members
            .into_iter()
            .map(|member| (member.id.clone(), member))
            .collect();
    }
}

impl Entry {
    pub(super) fn encode(&self) -> Bytes {
        let fields = Fields::default();
        match self {
            Self::Generation(generation) => write_generation(fields.u8(1), generation),
            Self::Committed { group, offsets } => {
                fields.u8(2).str(group).each(offsets.iter(), write_committed)
            }
            Self::Held {
                group,
                producer_id,
                offsets,
            } => fields
                .u8(3)
                .str(group)
                .i64(*producer_id)
                .each(offsets.iter(), write_committed),
            Self::TransactionEnded {
                producer_id,
                commit,
                groups,
            } => {
                let fields = fields.u8(4).i64(*producer_id).bool(*commit);
                fields.each(groups.iter(), |fields, group| fields.str(group))
            }
            Self::OffsetsForgotten { group, places } => fields
                .u8(5)
                .str(group)
                .each(places.iter(), |fields, (topic, partition)| {
                    fields.str(topic).i32(*partition)
                }),
            Self::TopicForgotten { topic } => fields.u8(6).str(topic),
            Self::GroupForgotten { group } => fields.u8(7).str(group),
        }
        .done()
    }

    pub(super) fn decode(entry: &[u8]) -> io::Result<Self> {
        let mut parse = Parse::new(entry);
        match parse.u8()? {
            1 => Ok(Self::Generation(read_generation(&mut parse)?)),
            2 => Ok(Self::Committed {
                group: parse.string()?,
                offsets: parse.each(read_committed)?,
            }),
            3 => {
                let group = parse.string()?;
                let producer_id = parse.i64()?;
                Ok(Self::Held {
                    group,
                    producer_id,
                    offsets: parse.each(read_committed)?,
                })
            }
            4 => {
                let producer_id = parse.i64()?;
                let commit = parse.bool()?;
                Ok(Self::TransactionEnded {
                    producer_id,
                    commit,
                    groups: parse.each(Parse::string)?,
                })
            }
            5 => {
                let group = parse.string()?;
                let places = parse.each(|parse| Ok((parse.string()?, parse.i32()?)))?;
                Ok(Self::OffsetsForgotten { group, places })
            }
            6 => Ok(Self::TopicForgotten {
                topic: parse.string()?,
            }),
            7 => Ok(Self::GroupForgotten {
                group: parse.string()?,
            }),
            other => Err(malformed(&format!("group entries have no kind {other}"))),
        }
    }
}

fn write_committed(fields: Fields, ((topic, partition), committed): &(Place, Committed)) -> Fields {
    fields
        .str(topic)
        .i32(*partition)
        .i64(committed.offset)
        .i32(committed.leader_epoch)
        .str(&committed.metadata)
        .i64(committed.committed_ms)
        .i64(committed.arrival)
}

fn read_committed(parse: &mut Parse<'_>) -> io::Result<(Place, Committed)> {
    let place = (parse.string()?, parse.i32()?);
    let committed = Committed {
        offset: parse.i64()?,
        leader_epoch: parse.i32()?,
        metadata: parse.string()?,
        committed_ms: parse.i64()?,
        arrival: parse.i64()?,
    };
    Ok((place, committed))
}

fn write_generation(fields: Fields, generation: &Generation) -> Fields {
    fields
        .str(&generation.group)
        .i32(generation.number)
        .opt_str(generation.protocol_type.as_deref())
        .opt_str(generation.protocol.as_deref())
        .opt_str(generation.leader.as_deref())
        .i64(generation.empty_since_ms)
        .each(generation.members.iter(), write_member)
}

fn read_generation(parse: &mut Parse<'_>) -> io::Result<Generation> {
    Ok(Generation {
        group: parse.string()?,
        number: parse.i32()?,
        protocol_type: parse.opt_string()?,
        protocol: parse.opt_string()?,
        leader: parse.opt_string()?,
        empty_since_ms: parse.i64()?,
        members: parse.each(read_member)?,
    })
}

fn write_member(fields: Fields, member: &Member) -> Fields {
    fields
        .str(&member.id)
        .opt_str(member.instance.as_deref())
        .str(&member.client_id)
        .str(&member.client_host)
        .i32(member.session_timeout_ms)
        .i32(member.rebalance_timeout_ms)
        .each(member.protocols.iter(), |fields, (name, metadata)| {
            fields.str(name).bytes(metadata)
        })
        .bytes(&member.assignment)
}

fn read_member(parse: &mut Parse<'_>) -> io::Result<Member> {
    Ok(Member {
        id: parse.string()?,
        instance: parse.opt_string()?,
        client_id: parse.string()?,
        client_host: parse.string()?,
        session_timeout_ms: parse.i32()?,
        rebalance_timeout_ms: parse.i32()?,
        protocols: parse.each(|parse| Ok((parse.string()?, Bytes::copy_from_slice(parse.bytes()?))))?,
        assignment: Bytes::copy_from_slice(parse.bytes()?),
        joining: None,
        syncing: None,
        new: false,
        session_ends: 0,
    })
}
