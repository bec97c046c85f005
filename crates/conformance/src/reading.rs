//! Reading with a deadline: the next record or error of a consumer, and whole partitions.

use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::{Message, OwnedMessage};
use rdkafka::topic_partition_list::Offset;

use crate::calls::Isolation;
use crate::clock::{PATIENCE, eventually};
use crate::target::Target;

/// The next record.
///
/// # Panics
/// If there is none in time, or an error in its stead.
pub fn next_message<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> OwnedMessage {
    next(consumer).expect("a record")
}

/// The next error; records before it are skipped.
///
/// # Panics
/// If there is none in time.
pub fn next_error<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> KafkaError {
    eventually("an error", || next(consumer).err())
}

fn next<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> Result<OwnedMessage, KafkaError> {
    let message = eventually("a record", || consumer.poll(std::time::Duration::from_millis(100)));
    message.map(|message| message.detach())
}

impl Target {
    /// Everything that is committed in partition 0, once every transaction in it is decided: Kafka answers
    /// a commit before it has written the marker.
    #[must_use]
    pub fn read_decided(&self, topic: &str) -> Vec<OwnedMessage> {
        let mut connection = self.connect();
        eventually("no transaction is open", || {
            let stable = connection.list_offset(topic, -1, Isolation::Committed).offset;
            (stable == connection.list_offset(topic, -1, Isolation::Uncommitted).offset).then_some(())
        });
        self.read(topic, 0, "read_committed")
    }

    /// Everything in a partition, up to its end for this isolation level.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn read(&self, topic: &str, partition: i32, isolation: &str) -> Vec<OwnedMessage> {
        let reader = self.reader(topic, partition, Offset::Beginning, &[("isolation.level", isolation)]);
        let mut read = Vec::new();
        loop {
            match next(&reader) {
                Ok(message) => read.push(message),
                Err(KafkaError::PartitionEOF(_)) => return read,
                Err(other) => panic!("cannot read {topic}/{partition} within {PATIENCE:?}: {other}"),
            }
        }
    }
}

/// The values of records, as text.
#[must_use]
pub fn values(messages: &[OwnedMessage]) -> Vec<String> {
    let text =
        |message: &OwnedMessage| String::from_utf8_lossy(message.payload().unwrap_or(b"-")).into_owned();
    messages.iter().map(text).collect()
}

/// The offsets of records.
#[must_use]
pub fn offsets(messages: &[OwnedMessage]) -> Vec<i64> {
    messages.iter().map(Message::offset).collect()
}
