//! An idempotent producer: numbers go in, the acknowledged ones come out.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use super::client;
use crate::records::PARTITIONS;

#[derive(Default)]
struct Acknowledged(Mutex<BTreeSet<u64>>);

impl ClientContext for Acknowledged {}

impl ProducerContext for Acknowledged {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<u64>) {
        if result.is_ok() {
            self.0.lock().expect("whole").insert(*number);
        }
    }
}

/// Sends until told, then waits for what is on its way.
pub(crate) fn until(over: &AtomicBool, address: &str) -> BTreeSet<u64> {
    let mut config = client(address);
    config.set("enable.idempotence", "true").set("linger.ms", "1").set("message.timeout.ms", "30000");
    let producer: BaseProducer<Acknowledged> =
        config.create_with_context(Acknowledged::default()).expect("a producer");
    for number in 0_u64.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let partition = i32::try_from(number).expect("a small number") % PARTITIONS;
        let value = number.to_string();
        let record = BaseRecord::with_opaque_to("plain", Box::new(number)).partition(partition);
        let record: BaseRecord<'_, (), String, Box<u64>> = record.payload(&value);
        producer.send(record).map_err(|(refused, _)| refused).expect("room in the queue");
        // Some hundreds a second: enough to be in the middle of something at any moment.
        producer.poll(Duration::from_millis(1));
    }
    producer.flush(Duration::from_secs(15)).expect("all delivered");
    std::mem::take(&mut producer.context().0.lock().expect("whole"))
}
