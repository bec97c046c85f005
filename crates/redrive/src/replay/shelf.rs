//! What a tool appends to the shelf of a subscription. None of it changes anything before its owner has answered.

use std::sync::Arc;

use redrive_core::headers::Trail;
use redrive_core::shelf::{Deed, Entry, Order, Wait};
use redrive_core::topic::{BadTopic, Purpose, derived};
use redrive_core::{Origin, Record, Timestamp, Topic};
use redrive_kafka::Outgoing;
use uuid::Uuid;

use super::Letter;

/// The shelf of a subscription, for one who sends letters back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    topic: Topic,
    group: String,
}

/// An order that has an answer of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// What it is answered by.
    pub id: String,
    /// The record to publish.
    pub outgoing: Outgoing,
}

impl Shelf {
    /// The shelf of a subscription under its usual name.
    pub fn of(source: &Topic, group: &str) -> Result<Self, BadTopic> {
        Ok(Self::named(derived(source, group, Purpose::Shelf)?, group))
    }

    /// The shelf of a group under any name.
    #[must_use]
    pub fn named(shelf: Topic, group: &str) -> Self {
        Self { topic: shelf, group: group.to_owned() }
    }

    /// The shelf's topic.
    #[must_use]
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// A letter that is to be tried again, due at once, in the order of its lane. It is answered by the id
    /// `JOB/NUMBER`: `Replayed` when it waits, `Already` when it was sent back as often before, `StillWaiting`
    /// when the record is not a letter any more, `Unknown` when nothing of its origin was ever consumed here,
    /// `TooLarge` when it does not fit.
    /// Where the letter closed its lane and nobody announced its replay, the lane is open behind it.
    #[must_use]
    pub fn replay(&self, letter: &Letter, job: &str, number: u64, at: Timestamp) -> Outgoing {
        let Letter { origin, timestamp, key, value, headers, lane, pointer, replays } = letter.clone();
        let trail = Trail {
            origin: Some(origin.clone()),
            origin_timestamp: timestamp,
            group: Some(self.group.clone()),
            attempt: Some(0),
            lane,
            pointer,
            content_type: headers.text("content-type").map(ToOwned::to_owned),
            replay: Some(format!("{job}/{number}")),
            replays: Some(replays.saturating_add(1)),
            replayed_at: Some(at),
            ..Trail::default()
        };
        let partition = origin.partition;
        let record = Record { at: origin, timestamp, key, value, headers };
        let wait = Wait { record: Arc::new(record), trail: Arc::new(trail) };
        self.outgoing(partition, &Entry::Replay(Arc::new(wait)))
    }

    /// The letters of the lane that this letter closed are about to be sent back. Answered with `Announced` when no
    /// letter of the lane is on its way any more: all of them are in the letters' topic by then, and what arrives
    /// from there on waits on the shelf, until [`Self::resolve`] or the deadline, by the broker's time. `Taken`
    /// says that another job holds the lane; `Finished` and `Unknown`, that the letter does not close it.
    #[must_use]
    pub fn announce(
        &self,
        leader: &Origin,
        job: &str,
        deadline: Timestamp,
        (by, reason): (&str, &str),
    ) -> Ordered {
        self.order(leader, Deed::Announce { deadline: deadline.millis() }, job, (by, reason))
    }

    /// The lane that this letter closed is open: behind all of its letters, if the job announced it. It is carried
    /// out when everything was answered that was appended before it for this lane.
    #[must_use]
    pub fn resolve(&self, leader: &Origin, job: &str, (by, reason): (&str, &str)) -> Ordered {
        self.order(leader, Deed::Resolve, job, (by, reason))
    }

    fn order(&self, leader: &Origin, deed: Deed, job: &str, (by, reason): (&str, &str)) -> Ordered {
        let id = Uuid::new_v4().to_string();
        let order = Order {
            id: id.clone(),
            origin: leader.offset,
            deed,
            by: by.to_owned(),
            reason: reason.to_owned(),
            job: Some(job.to_owned()),
        };
        Ordered { id, outgoing: self.outgoing(leader.partition, &Entry::Order(order)) }
    }

    fn outgoing(&self, partition: i32, entry: &Entry) -> Outgoing {
        let written = entry.write();
        Outgoing {
            partition: Some(partition),
            key: written.key,
            value: written.value,
            headers: written.headers,
            ..Outgoing::to(self.topic.clone())
        }
    }
}
