//! What keeps a worker from working.

/// What keeps a worker from working. A handler's failure is never one of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that cannot be.
    #[error("{}", list(.0))]
    Settings(Vec<String>),
    /// Kafka did not do something.
    #[error(transparent)]
    Kafka(#[from] redrive_kafka::Error),
    /// The embedded broker did not start.
    #[cfg(feature = "embedded")]
    #[error("cannot start the embedded broker")]
    Broker(#[from] redrive_broker::Error),
    /// Topics are missing or not as they have to be, or could not be looked at.
    #[error(transparent)]
    Topics(#[from] crate::topics::Unready),
    /// It is not known what is paused.
    #[error("it is not known whether the subscription is paused: {0}")]
    Pauses(String),
}

fn list(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => many.iter().map(|problem| format!("- {problem}")).collect::<Vec<_>>().join("\n"),
    }
}
