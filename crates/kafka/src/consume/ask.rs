//! Commits, and questions to the broker: those on blocking threads, as librdkafka waits for the answers; for a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::{Timestamp, Topic};
use tokio::task::spawn_blocking;

use super::{Consumer, Link};
use crate::Error;

/// How long a broker may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// An offset to commit: the next record to consume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Of which partition.
    pub partition: i32,
    /// Where to go on.
    pub offset: i64,
    /// What the group keeps beside it.
    pub metadata: String,
}

/// What a group has committed of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Which.
    pub partition: i32,
    /// Where to go on, if it ever committed.
    pub offset: Option<i64>,
    /// What it keeps beside it.
    pub metadata: String,
}

pub(crate) fn marked(marks: &[(Topic, Vec<Mark>)]) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for (topic, marks) in marks {
        for mark in marks {
            let mut element = list.add_partition(topic.as_str(), mark.partition);
            element.set_offset(Offset::Offset(mark.offset))?;
            element.set_metadata(&mark.metadata);
        }
    }
    Ok(list)
}

impl Consumer {
    /// Commits and waits for the broker's word. One commit runs at a time.
    pub async fn commit(&self, marks: Vec<Mark>) -> Result<(), Error> {
        self.commit_of(self.link.topic.clone(), marks).await
    }

    /// As [`Self::commit`], of another topic that the group keeps offsets of.
    pub async fn commit_of(&self, topic: Topic, marks: Vec<Mark>) -> Result<(), Error> {
        if marks.is_empty() {
            return Ok(());
        }
        let (link, marks) = (&self.link, [(topic.clone(), marks)]);
        let committed = link.consumer.context().committing.run(|| {
            let list = marked(&marks)?;
            link.main.commit(link.consumer.client().native_client(), &list)
        });
        committed.await.map_err(|source| Error::Commit { topic, group: link.group.clone(), source })
    }

    /// What the group has committed of these partitions, once no transaction is about to change it.
    pub async fn committed(&self, partitions: &[i32], timeout: Duration) -> Result<Vec<Committed>, Error> {
        let list = self.link.consumer.context().list(partitions);
        self.ask("committed offsets", move |link| {
            let list = link.consumer.committed_offsets(list, timeout)?;
            list.elements()
                .iter()
                .map(|element| {
                    element.error()?;
                    let offset = match element.offset() {
                        Offset::Offset(offset) => Some(offset),
                        _ => None,
                    };
                    Ok(Committed {
                        partition: element.partition(),
                        offset,
                        metadata: element.metadata().to_owned(),
                    })
                })
                .collect()
        })
        .await
    }

    /// The first offset that is there, and the one that comes next.
    pub async fn bounds(&self, partition: i32) -> Result<(i64, i64), Error> {
        self.ask("bounds", move |link| link.consumer.fetch_watermarks(link.topic.as_str(), partition, ANSWER))
            .await
    }

    /// Where these partitions end: the offsets that come next. One question to each broker.
    pub async fn ends(&self, partitions: Vec<i32>) -> Result<BTreeMap<i32, i64>, Error> {
        if partitions.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.ask("ends", move |link| {
            let mut list = TopicPartitionList::with_capacity(partitions.len());
            for partition in partitions {
                list.add_partition_offset(link.topic.as_str(), partition, Offset::End)?;
            }
            let list = link.consumer.offsets_for_times(list, ANSWER)?;
            let ends = list.elements().into_iter().filter_map(|element| match element.offset() {
                Offset::Offset(end) => Some((element.partition(), end)),
                _ => None,
            });
            Ok(ends.collect())
        })
        .await
    }

    /// The first offset of this time or later; none if there is none.
    pub async fn offset_at(&self, partition: i32, time: Timestamp) -> Result<Option<i64>, Error> {
        self.ask("offset at a time", move |link| {
            let mut list = TopicPartitionList::with_capacity(1);
            list.add_partition_offset(link.topic.as_str(), partition, Offset::Offset(time.millis()))?;
            let list = link.consumer.offsets_for_times(list, ANSWER)?;
            let elements = list.elements();
            let element = elements.first().ok_or(KafkaError::OffsetFetch(Code::UnknownPartition))?;
            element.error()?;
            Ok(match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            })
        })
        .await
    }

    /// How many partitions the topic has.
    pub async fn partitions(&self) -> Result<i32, Error> {
        self.ask("partitions", move |link| {
            let metadata = link.consumer.fetch_metadata(Some(link.topic.as_str()), ANSWER)?;
            let topic = metadata.topics().first().ok_or(KafkaError::MetadataFetch(Code::UnknownTopic))?;
            match topic.error() {
                None => Ok(i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX)),
                Some(error) => Err(KafkaError::MetadataFetch(error.into())),
            }
        })
        .await
    }

    async fn ask<A: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Link) -> Result<A, KafkaError> + Send + 'static,
    ) -> Result<A, Error> {
        let link: Arc<Link> = self.link.clone();
        let answer = spawn_blocking(move || question(&link)).await?;
        answer.map_err(|source| Error::Ask { what, topic: self.link.topic.clone(), source })
    }
}
