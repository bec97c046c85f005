//! OffsetCommit and TxnOffsetCommit: offsets that count at once, and those that wait for a transaction.

use std::io;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};
use kafka_protocol::protocol::StrBytes;
use tracing::warn;

use super::entry::Entry;
use super::group::{Group, State};
use super::offsets::{Committed, Place};
use super::requests::code;
use super::{Desk, Groups};
use crate::clock;

/// Who commits, by its own account.
struct Committer<'a> {
    group_id: &'a str,
    member_id: &'a str,
    instance: Option<&'a str>,
    generation: i32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Plain { version: i16 },
    Transactional { producer_id: i64 },
}

/// One partition of a request, whichever of the two it is.
struct Wish<'a> {
    topic: &'a str,
    partition: i32,
    offset: i64,
    leader_epoch: i32,
    metadata: Option<&'a StrBytes>,
}

type Verdict = Result<(), ResponseError>;

/// The wishes of a request. The two requests have the same fields and no type in common.
macro_rules! wishes {
    ($request:expr) => {{
        let of_topic = $request.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| Wish {
                topic: &topic.name,
                partition: partition.partition_index,
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata: partition.committed_metadata.as_ref(),
            })
        });
        of_topic.collect::<Vec<Wish<'_>>>()
    }};
}

/// The verdicts, one a partition, in the shape of the request.
macro_rules! answers {
    ($request:expr, $verdicts:expr, $topic:ty, $partition:ty) => {{
        let mut verdicts = $verdicts.into_iter();
        let mut answer = |index: i32| {
            <$partition>::default()
                .with_partition_index(index)
                .with_error_code(verdicts.next().map_or(0, code))
        };
        let topics = $request.topics.iter().map(|topic| {
            <$topic>::default()
                .with_name(topic.name.clone())
                .with_partitions(topic.partitions.iter().map(|each| answer(each.partition_index)).collect())
        });
        topics.collect()
    }};
}

/// The largest batch of Kafka's own offsets topic. A commit that would not fit there must not pass here.
const OFFSETS_BATCH: usize = 1_048_588;

/// What a commit takes in Kafka's offsets topic: a batch with a record for each partition.
fn batch_size(group: &str, wishes: &[&Wish<'_>]) -> usize {
    const BATCH_HEADER: usize = 61;
    const RECORD: usize = 12 + 10 + 24; // framing, the key's and the value's fixed parts
    let record =
        |wish: &&Wish<'_>| RECORD + group.len() + wish.topic.len() + wish.metadata.map_or(0, |m| m.len());
    BATCH_HEADER + wishes.iter().map(record).sum::<usize>()
}

impl Groups {
    /// `exists` is asked for the topic alone: like Kafka, any partition of it is taken.
    pub(crate) fn offset_commit(
        &self,
        req: &OffsetCommitRequest,
        version: i16,
        exists: impl Fn(&str) -> bool,
    ) -> OffsetCommitResponse {
        let committer = Committer {
            group_id: &req.group_id,
            member_id: &req.member_id,
            instance: req.group_instance_id.as_deref(),
            generation: req.generation_id_or_member_epoch,
            kind: Kind::Plain { version },
        };
        let verdicts = self.commit(&committer, &wishes!(req), exists, || Ok(()));
        let topics = answers!(req, verdicts, OffsetCommitResponseTopic, OffsetCommitResponsePartition);
        OffsetCommitResponse::default().with_topics(topics)
    }

    /// Held until [`complete_transaction`](Self::complete_transaction). Whether the producer may is for
    /// `verify` to say, which is asked under the same lock that the end of the transaction takes here:
    /// offsets that come late are refused, not held for the producer's next transaction. Whether the
    /// member may is decided as Kafka does: one that names neither member nor generation passes.
    pub(crate) fn txn_offset_commit(
        &self,
        req: &TxnOffsetCommitRequest,
        exists: impl Fn(&str) -> bool,
        verify: impl FnOnce() -> Result<(), ResponseError>,
    ) -> TxnOffsetCommitResponse {
        let committer = Committer {
            group_id: &req.group_id,
            member_id: &req.member_id,
            instance: req.group_instance_id.as_deref(),
            generation: req.generation_id,
            kind: Kind::Transactional { producer_id: req.producer_id.0 },
        };
        let verdicts = self.commit(&committer, &wishes!(req), exists, verify);
        let topics = answers!(req, verdicts, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition);
        TxnOffsetCommitResponse::default().with_topics(topics)
    }

    /// The offsets a transaction held count from here on, or are dropped. Again does no harm.
    pub(crate) fn complete_transaction(
        &self,
        producer_id: i64,
        group_ids: &[String],
        commit: bool,
    ) -> io::Result<()> {
        let mut desk = self.desk();
        let holds = |id: &&String| {
            desk.book.groups.get(*id).is_some_and(|group| group.offsets.pending.contains_key(&producer_id))
        };
        let groups: Vec<String> = group_ids.iter().filter(holds).cloned().collect();
        if groups.is_empty() {
            return Ok(());
        }
        desk.book.write(Entry::TransactionEnded { producer_id, commit, groups })
    }

    /// A topic made anew under the name starts without offsets.
    pub(crate) fn topic_deleted(&self, topic: &str) -> io::Result<()> {
        let mut desk = self.desk();
        let is_known = |group: &Group| group.offsets.places().any(|(of, _)| of == topic);
        if !desk.book.groups.values().any(is_known) {
            return Ok(());
        }
        desk.book.write(Entry::TopicForgotten { topic: topic.to_owned() })
    }

    fn commit(
        &self,
        committer: &Committer<'_>,
        wishes: &[Wish<'_>],
        exists: impl Fn(&str) -> bool,
        verify: impl FnOnce() -> Verdict,
    ) -> Vec<Verdict> {
        let now = self.now();
        let mut desk = self.desk();
        let limit = self.0.config.offset_metadata_max_bytes;
        let mut verdicts = judge(wishes, verify().and_then(|()| desk.admits(committer)), exists, limit);
        let accepted = wishes.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
        let accepted: Vec<&Wish<'_>> = accepted.map(|(wish, _)| wish).collect();
        if accepted.is_empty() {
            return verdicts;
        }
        if batch_size(committer.group_id, &accepted) > OFFSETS_BATCH {
            let refused = |verdict: Verdict| verdict.and(Err(ResponseError::InvalidCommitOffsetSize));
            return verdicts.into_iter().map(refused).collect();
        }
        let arrival = desk.book.next_arrival();
        let offsets = accepted.iter().map(|wish| wish.committed(arrival, clock::now_ms())).collect();
        if let Err(error) = desk.book.write(committer.entry(offsets)) {
            warn!(group = committer.group_id, %error, "cannot write down offsets");
            let refused = |verdict: Verdict| verdict.and(Err(ResponseError::CoordinatorNotAvailable));
            verdicts = verdicts.into_iter().map(refused).collect();
        } else {
            // A commit is a sign of life, too.
            desk.book.group(committer.group_id).committed_by(committer.member_id, now);
        }
        verdicts
    }
}

impl Desk {
    fn admits(&self, committer: &Committer<'_>) -> Verdict {
        match (self.book.groups.get(committer.group_id), committer.kind) {
            (_, Kind::Transactional { .. }) if committer.group_id.is_empty() => {
                Err(ResponseError::InvalidGroupId)
            }
            (Some(group), _) => group.admits(committer),
            // Who belongs to no generation uses the group as a place for offsets.
            (None, _) if committer.generation < 0 => Ok(()),
            (None, Kind::Plain { version }) if version >= 9 => Err(ResponseError::GroupIdNotFound),
            (None, Kind::Plain { .. } | Kind::Transactional { .. }) => Err(ResponseError::IllegalGeneration),
        }
    }
}

impl Group {
    fn admits(&self, committer: &Committer<'_>) -> Verdict {
        if committer.generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        let anonymous =
            committer.generation < 0 && committer.member_id.is_empty() && committer.instance.is_none();
        match (committer.kind, anonymous) {
            // Older producers cannot say for which member they commit.
            (Kind::Transactional { .. }, true) => return Ok(()),
            (Kind::Plain { .. }, true) => return Err(ResponseError::UnknownMemberId),
            (Kind::Transactional { .. } | Kind::Plain { .. }, false) => {}
        }
        self.validate_member(committer.member_id, committer.instance)?;
        if committer.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        match (committer.kind, self.state) {
            // It knows the generation and not yet what it owns in it.
            (Kind::Plain { .. }, State::Completing) => Err(ResponseError::RebalanceInProgress),
            (Kind::Plain { .. } | Kind::Transactional { .. }, _) => Ok(()),
        }
    }

    fn committed_by(&mut self, member_id: &str, now: i64) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.heard(now);
        }
    }
}

impl Committer<'_> {
    fn entry(&self, offsets: Vec<(Place, Committed)>) -> Entry {
        let group = self.group_id.to_owned();
        match self.kind {
            Kind::Plain { .. } => Entry::Committed { group, offsets },
            Kind::Transactional { producer_id } => Entry::Held { group, producer_id, offsets },
        }
    }
}

impl Wish<'_> {
    fn committed(&self, arrival: i64, committed_ms: i64) -> (Place, Committed) {
        let committed = Committed {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: self.metadata.map(ToString::to_string).unwrap_or_default(),
            committed_ms,
            arrival,
        };
        ((self.topic.to_owned(), self.partition), committed)
    }
}

fn judge(
    wishes: &[Wish<'_>],
    admitted: Verdict,
    exists: impl Fn(&str) -> bool,
    limit: usize,
) -> Vec<Verdict> {
    let judge_one = |wish: &Wish<'_>| {
        if !exists(wish.topic) {
            return Err(ResponseError::UnknownTopicOrPartition);
        }
        admitted?;
        match wish.metadata {
            Some(metadata) if is_too_long(metadata, limit) => Err(ResponseError::OffsetMetadataTooLarge),
            Some(_) | None => Ok(()),
        }
    };
    wishes.iter().map(judge_one).collect()
}

/// Kafka counts UTF-16 units, of which a string never has more than bytes.
fn is_too_long(metadata: &str, limit: usize) -> bool {
    metadata.len() > limit && metadata.encode_utf16().count() > limit
}
