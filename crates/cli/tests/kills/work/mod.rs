//! The clients that work while the broker dies. Each keeps account of what it was told.

pub(crate) mod committing;
pub(crate) mod producing;
pub(crate) mod reading;

use rdkafka::ClientConfig;

/// A client that finds a broker again quickly.
fn client(address: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address)
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "100")
        .set("retry.backoff.ms", "20")
        .set("retry.backoff.max.ms", "100");
    config
}
