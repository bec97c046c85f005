//! What librdkafka calls back while it is polled: rebalances and errors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::types::RDKafkaRespErr;
use redrive_core::Topic;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{debug, warn};

use super::committing::Committing;
use super::event::Event;
use super::holding::Holding;
use crate::Error;

pub(crate) struct Context {
    topic: Topic,
    holding: Arc<Mutex<Holding>>,
    control: UnboundedSender<Event>,
    /// Whether this consumer is leaving: then all is given up as it is asked back.
    leaving: AtomicBool,
    pub(crate) committing: Committing,
}

impl Context {
    pub(crate) fn new(topic: Topic, holding: Arc<Mutex<Holding>>, control: UnboundedSender<Event>) -> Self {
        let (leaving, committing) = (AtomicBool::new(false), Committing::default());
        Self { topic, holding, control, leaving, committing }
    }

    /// The lock under which partitions begin and end, and records are taken: so that each record bears
    /// the turn it was read in. librdkafka is called under it, but never waits for us while we wait.
    pub(crate) fn holding(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
    }

    pub(crate) fn list(&self, partitions: &[i32]) -> TopicPartitionList {
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            list.add_partition(self.topic.as_str(), *partition);
        }
        list
    }

    /// A receiver that is gone needs to know nothing.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.control.send(event);
    }

    /// Nothing is assigned here: a partition is when it begins. The empty answer ends the rebalance.
    fn assigned(&self, consumer: &BaseConsumer<Self>, partitions: Vec<i32>) {
        self.holding().assigned(&partitions);
        self.answered(consumer.incremental_assign(&TopicPartitionList::new()));
        self.tell(Event::Assigned(partitions));
    }

    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: Vec<i32>) {
        let (lost, leaving) = (consumer.assignment_lost(), self.leaving.load(Ordering::SeqCst));
        let mut holding = self.holding();
        if !lost && !leaving && !partitions.is_empty() {
            holding.revoked(&partitions);
            self.tell(Event::Revoked(partitions));
            return;
        }
        let unassign = holding.lost(&partitions);
        self.answered(consumer.incremental_unassign(&self.list(&unassign)));
        if !leaving {
            self.tell(Event::Lost(partitions));
        }
    }

    fn answered(&self, result: Result<(), KafkaError>) {
        if let Err(source) = result {
            let words = format!("librdkafka refused the answer to a rebalance of {}", self.topic);
            self.tell(Event::Trouble(Error::Trouble { words, source }));
        }
    }
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, words: &str) {
        let fatal = error.rdkafka_error_code() == Some(Code::Fatal);
        let error = Error::Trouble { words: words.to_owned(), source: error };
        self.tell(if fatal { Event::Failed(error) } else { Event::Trouble(error) });
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let partitions: Vec<i32> =
            partitions.elements().iter().map(TopicPartitionListElem::partition).collect();
        debug!(topic = %self.topic, ?what, ?partitions, "rebalance");
        match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assigned(consumer, partitions),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => self.revoked(consumer, partitions),
            _ => warn!(topic = %self.topic, ?what, "a rebalance of an unknown kind"),
        }
    }

    fn commit_callback(&self, result: Result<(), KafkaError>, _: &TopicPartitionList) {
        self.committing.answered(result);
    }
}
