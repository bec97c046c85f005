//! Writes what the product never does: records of a transaction that is given up. All of it blocks.

use std::time::Duration;

use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::{Cluster, new_name};

const ANSWER: Duration = Duration::from_secs(20);

impl Cluster {
    /// Leaves records of an aborted transaction in a partition.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub fn abort(&self, topic: &str, partition: i32, values: &[&str]) {
        let mut config = self.client();
        config.set("transactional.id", new_name("aborted"));
        let producer: BaseProducer = config.create().expect("a producer");
        producer.init_transactions(ANSWER).expect("transactions");
        producer.begin_transaction().expect("a transaction");
        for value in values {
            let record = BaseRecord::<str, str>::to(topic).partition(partition).payload(value);
            assert!(producer.send(record).is_ok(), "a record that is taken");
        }
        // Without this they would never be written.
        producer.flush(ANSWER).expect("records that are written");
        producer.abort_transaction(ANSWER).expect("an end");
    }
}
