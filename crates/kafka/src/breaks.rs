//! Connections that break while something is read. librdkafka tells of each and mends them by itself: only if it
//! says so again and again, and nothing comes between, is Kafka out of reach.

use std::sync::atomic::{AtomicU32, Ordering};

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// How often it may be told before it is believed. With each connection tried the next is tried later, so these take
/// some seconds.
const MOST: u32 = 10;

/// How often a connection broke since something came.
#[derive(Debug, Default)]
pub(crate) struct Breaks(AtomicU32);

impl Breaks {
    /// Whether to go on in spite of this.
    pub(crate) fn bear(&self, error: &KafkaError) -> bool {
        let is_break = matches!(
            error,
            KafkaError::MessageConsumption(Code::AllBrokersDown | Code::BrokerTransportFailure)
        );
        is_break && self.0.fetch_add(1, Ordering::Relaxed) < MOST
    }

    /// Something came.
    pub(crate) fn mended(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_borne_until_there_are_too_many_and_nothing_else_is() {
        let breaks = Breaks::default();
        let down = KafkaError::MessageConsumption(Code::AllBrokersDown);
        assert!((0..MOST).all(|_| breaks.bear(&down)) && !breaks.bear(&down));
        breaks.mended();
        assert!(breaks.bear(&down));
        assert!(!breaks.bear(&KafkaError::MessageConsumption(Code::Authentication)));
    }
}
