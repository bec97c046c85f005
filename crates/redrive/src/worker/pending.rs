use redrive_core::Topic;
use redrive_kafka::{Error as KafkaError, GroupMetadata, Mark, Outgoing, Refusal, Settings};
use std::time::Duration;
pub struct Transactions;
#[derive(Debug, thiserror::Error)]
pub enum TransactionFailed {
    #[error("a")]
    Aborted(#[source] KafkaError),
    #[error("b")]
    Fenced(#[source] KafkaError),
    #[error("c")]
    Broken(#[source] KafkaError),
    #[error("d")]
    Refused {
        topic: Topic,
        kind: Refusal,
        index: Option<usize>,
        #[source]
        source: KafkaError,
    },
}
impl Transactions {
    pub async fn new(_: &Settings, _: &str, _: Duration) -> Result<Self, KafkaError> {
        Ok(Self)
    }
    pub async fn run(
        &mut self,
        _: Vec<Outgoing>,
        _: Vec<Mark>,
        _: &Topic,
        _: GroupMetadata,
    ) -> Result<(), TransactionFailed> {
        Ok(())
    }
    pub async fn renew(&mut self) -> Result<(), KafkaError> {
        Ok(())
    }
}
