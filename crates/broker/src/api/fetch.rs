//! Fetch: offsets come in, bytes of the logs go out. If there is too little it waits, woken by appends
//! to the partitions it asked for, until there is enough or its time is up. No session is kept: every
//! request names all its partitions, as Kafka permits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchPartition;
use tokio::sync::Notify;

use super::fetch_frame::{BY_ID, Fetched, FetchedPartition, FetchedTopic};
use super::{Answer, Call, check_epoch};
use crate::clock;
use crate::log::{Isolation, ReadError, Window};
use crate::node::Node;
use crate::server::guard::Malformed;
use crate::server::reply::Piece;
use crate::sync::set;
use crate::topics::partition::{Partition, storage_error};

/// A partition that is asked for, found or not.
struct Wanted {
    topic: usize,
    request: FetchPartition,
    found: Result<Arc<Partition>, ResponseError>,
}

/// Everything that a request asks for.
struct Wish {
    topics: Vec<(String, uuid::Uuid)>,
    partitions: Vec<Wanted>,
    max_bytes: usize,
    min_bytes: usize,
    isolation: Isolation,
}

type Outcome = Result<Window, ResponseError>;

pub(super) async fn answer(node: &Node, call: &Call) -> Result<Answer, Malformed> {
    let request: FetchRequest = call.decode()?;
    if request.session_id != 0 && request.session_epoch > 0 {
        // None was ever given out: the client begins anew.
        let error_code = ResponseError::FetchSessionIdNotFound.code();
        return Ok(Answer::Reply(
            Fetched { error_code, topics: Vec::new() }.frame(call.correlation_id, call.version),
        ));
    }
    let wait = Duration::from_millis(request.max_wait_ms.max(0) as u64);
    let wish = Wish::new(node, request, call.version);
    let (outcomes, enough) = wish.look();
    let outcomes = if enough || wait.is_zero() { outcomes } else { wish.wait(call, wait).await };
    Ok(Answer::Reply(wish.fetched(outcomes).frame(call.correlation_id, call.version)))
}

impl Wish {
    fn new(node: &Node, request: FetchRequest, version: i16) -> Wish {
        let (mut topics, mut partitions) = (Vec::new(), Vec::new());
        for (at, asked) in request.topics.into_iter().enumerate() {
            let (topic, missing) = match version >= BY_ID {
                true => (node.topics.by_id(asked.topic_id), ResponseError::UnknownTopicId),
                false => (node.topics.get(&asked.topic), ResponseError::UnknownTopicOrPartition),
            };
            topics.push((asked.topic.to_string(), asked.topic_id));
            for request in asked.partitions {
                let found = match &topic {
                    None => Err(missing),
                    Some(topic) => {
                        topic.partition(request.partition).ok_or(ResponseError::UnknownTopicOrPartition)
                    }
                };
                partitions.push(Wanted { topic: at, request, found });
            }
        }
        Wish {
            topics,
            partitions,
            max_bytes: usize::try_from(request.max_bytes).unwrap_or(0).min(FETCH_MAX),
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0),
            isolation: if request.isolation_level == 1 {
                Isolation::Committed
            } else {
                Isolation::Uncommitted
            },
        }
    }

    /// What is there now, and whether that is reason enough to answer.
    fn look(&self) -> (Vec<Outcome>, bool) {
        let (mut taken, mut failed) = (0, false);
        let mut outcomes = Vec::with_capacity(self.partitions.len());
        for wanted in &self.partitions {
            let outcome = self.look_at(wanted, taken);
            match &outcome {
                Ok(window) => taken += window.slice.as_ref().map_or(0, |slice| slice.len),
                Err(_) => failed = true,
            }
            outcomes.push(outcome);
        }
        (outcomes, failed || taken >= self.min_bytes || self.partitions.is_empty())
    }

    fn look_at(&self, wanted: &Wanted, taken: usize) -> Outcome {
        let partition = wanted.found.as_ref().map_err(|error| *error)?;
        check_epoch(wanted.request.current_leader_epoch)?;
        let room = self.max_bytes.saturating_sub(taken);
        let limit = usize::try_from(wanted.request.partition_max_bytes).unwrap_or(0).min(room);
        // The first batch of an answer goes whole whatever its size, or a reader might never get past it.
        let window = partition.log()?.window(wanted.request.fetch_offset, limit, taken == 0, self.isolation);
        window.map_err(|error| match error {
            ReadError::OutOfRange => ResponseError::OffsetOutOfRange,
            ReadError::Io(e) => storage_error(&e),
        })
    }

    /// Waits for enough, at most `wait`; the client's leaving and the broker's end cut it short.
    async fn wait(&self, call: &Call, wait: Duration) -> Vec<Outcome> {
        let deadline = clock::instant() + wait;
        let (mut gone, mut stop) = (call.gone.clone(), call.stop.clone());
        let watch = Watch::begin(&self.partitions);
        loop {
            // Looked at only after the watch began: what is appended from here on wakes us.
            let (outcomes, enough) = self.look();
            if enough {
                return outcomes;
            }
            tokio::select! {
                () = watch.notify.notified() => {}
                () = tokio::time::sleep_until(deadline) => return self.look().0,
                () = set(&mut gone) => return outcomes,
                () = set(&mut stop) => return outcomes,
            }
        }
    }

    /// Puts what was found with its topics, in the order of the request.
    fn fetched(self, outcomes: Vec<Outcome>) -> Fetched {
        let size = |outcome: &Outcome| {
            outcome.as_ref().ok().and_then(|w| w.slice.as_ref()).map_or(0, |slice| slice.len)
        };
        let total: usize = outcomes.iter().map(size).sum();
        let topic = |(name, id)| FetchedTopic { name, id, partitions: Vec::new() };
        let mut topics: Vec<FetchedTopic> = self.topics.into_iter().map(topic).collect();
        for (wanted, outcome) in self.partitions.iter().zip(outcomes) {
            let part = described(wanted.request.partition, outcome, self.isolation, total);
            topics[wanted.topic].partitions.push(part);
        }
        Fetched { error_code: 0, topics }
    }
}

/// As much as Kafka gives at once, whatever a client asks for; a frame's length must fit its field.
const FETCH_MAX: usize = 55 << 20;

/// From this size on an answer is sent piece by piece while it is read; a smaller one goes in one call.
const STREAM_FROM: usize = 128 << 10;

fn described(index: i32, outcome: Outcome, isolation: Isolation, total: usize) -> FetchedPartition {
    let with_records = outcome.and_then(|window| {
        let records = match &window.slice {
            None => Piece::Bytes(Bytes::new()),
            Some(slice) if total >= STREAM_FROM => Piece::Log(slice.clone()),
            Some(slice) => Piece::Bytes(slice.read().map_err(|e| storage_error(&e))?),
        };
        Ok((records, window))
    });
    match with_records {
        Ok((records, window)) => FetchedPartition {
            index,
            error_code: 0,
            high_watermark: window.next_offset,
            stable_offset: window.stable_offset,
            log_start: window.start,
            aborted: (isolation == Isolation::Committed).then_some(window.aborted),
            records,
        },
        Err(error) => FetchedPartition {
            index,
            error_code: error.code(),
            high_watermark: -1,
            stable_offset: -1,
            log_start: -1,
            aborted: None,
            records: Piece::Bytes(Bytes::new()),
        },
    }
}

/// A place among those whom appends wake, given back at the end.
struct Watch<'a> {
    notify: Arc<Notify>,
    partitions: &'a [Wanted],
}

impl<'a> Watch<'a> {
    fn begin(partitions: &'a [Wanted]) -> Watch<'a> {
        let notify = Arc::new(Notify::new());
        partitions.iter().flat_map(|wanted| &wanted.found).for_each(|partition| partition.watch(&notify));
        Watch { notify, partitions }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.partitions
            .iter()
            .flat_map(|wanted| &wanted.found)
            .for_each(|partition| partition.unwatch(&self.notify));
    }
}
