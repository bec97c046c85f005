//! What the suite adds to rdkafka's clients: deliveries that are waited for, and members of groups that
//! count their rebalances and commit what they have handled before they give a partition up.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::ToBytes;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::TopicPartitionListElem;

use crate::clock::eventually;
use crate::embedded::block_on;

/// A consumer in a group.
pub type Member = BaseConsumer<Rebalances>;

/// Where a record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The partition it is in.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
}

/// What a member has been given and has given up.
#[derive(Debug, Default)]
pub struct Rebalances {
    assignments: AtomicU32,
    revoked: AtomicU32,
}

impl Rebalances {
    /// How often it was assigned something, nothing included.
    pub fn assignments(&self) -> u32 {
        self.assignments.load(Ordering::SeqCst)
    }

    /// How many partitions were revoked, over all rebalances.
    pub fn revoked(&self) -> u32 {
        self.revoked.load(Ordering::SeqCst)
    }
}

impl ClientContext for Rebalances {}

impl ConsumerContext for Rebalances {
    fn pre_rebalance(&self, member: &BaseConsumer<Rebalances>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(_) => {
                self.assignments.fetch_add(1, Ordering::SeqCst);
            }
            Rebalance::Revoke(partitions) => {
                let count = u32::try_from(partitions.count()).expect("a number of partitions");
                self.revoked.fetch_add(count, Ordering::SeqCst);
                // Nothing stored is no failure: the member has handled nothing yet.
                let _ = member.commit_consumer_state(CommitMode::Sync);
            }
            Rebalance::Error(_) => {}
        }
    }
}

/// The partitions that a member has, in order.
///
/// # Panics
/// If librdkafka cannot tell.
pub fn assigned(member: &Member) -> Vec<i32> {
    let assignment = member.assignment().expect("an assignment");
    let mut partitions: Vec<_> =
        assignment.elements().iter().map(TopicPartitionListElem::partition).collect();
    partitions.sort_unstable();
    partitions
}

/// Polls members of a group over empty topics until each has this many partitions.
///
/// # Panics
/// If that is not so in time.
pub fn settle(members: &[&Member], counts: &[usize]) {
    eventually("the group settles", || {
        for member in members {
            let polled = member.poll(Duration::from_millis(20));
            assert!(!matches!(polled, Some(Ok(_))), "settling is for empty topics");
        }
        members.iter().zip(counts).all(|(member, count)| assigned(member).len() == *count).then_some(())
    });
}

/// Sends a record and waits until it is acknowledged.
pub fn deliver<K, P>(
    producer: &FutureProducer,
    record: FutureRecord<'_, K, P>,
) -> Result<Delivery, RDKafkaErrorCode>
where
    K: ToBytes + ?Sized,
    P: ToBytes + ?Sized,
{
    let sent = producer.send_result(record).map_err(|(refused, _)| code(&refused))?;
    match block_on(sent).expect("a producer that lives") {
        Ok(at) => Ok(Delivery { partition: at.partition, offset: at.offset }),
        Err((refused, _)) => Err(code(&refused)),
    }
}

/// Sends values to a partition, in batches where that is possible, and waits for all.
///
/// # Panics
/// If one is refused.
pub fn deliver_all(
    producer: &FutureProducer,
    topic: &str,
    partition: i32,
    values: impl IntoIterator<Item = impl AsRef<str>>,
) -> Vec<i64> {
    let send = |value: &str| {
        let record = FutureRecord::<(), str>::to(topic).partition(partition).payload(value);
        producer.send_result(record).map_err(|(refused, _)| refused).expect("room in the queue")
    };
    let sent: Vec<_> = values.into_iter().map(|value| send(value.as_ref())).collect();
    sent.into_iter()
        .map(|sent| block_on(sent).expect("a producer that lives").expect("delivered").offset)
        .collect()
}

fn code(refused: &KafkaError) -> RDKafkaErrorCode {
    refused.rdkafka_error_code().expect("an error of the broker's or librdkafka's")
}
