//! What the handler does with a record: its value's first word says so.
//!
//! `ok`, `slow:MS`, `permanent`, `transient:N` (fails N times, then succeeds), anything after a space is ballast.

use std::sync::Arc;
use std::time::Duration;

use redrive::{Classed, Clock, Outgoing, Received};

use crate::Arguments;
use crate::log::Log;

pub(crate) struct Behaviour {
    arguments: Arguments,
    log: Arc<Log>,
    clock: Clock,
}

impl Behaviour {
    pub(crate) fn new(arguments: Arguments, log: Arc<Log>) -> Self {
        Self { arguments, log, clock: Clock::system() }
    }

    pub(crate) async fn call(&self, received: Received) -> Result<(), Classed> {
        self.log.start(&received);
        let outcome = self.answer(&received).await;
        let word = match &outcome {
            Ok(()) => "ok",
            Err(_) => "failed",
        };
        self.log.end(&received, word);
        outcome
    }

    async fn answer(&self, received: &Received) -> Result<(), Classed> {
        let is_there = |file: &std::path::PathBuf| file.exists();
        if self.arguments.outage_until.as_ref().is_some_and(|file| !is_there(file)) {
            return Err(Classed::outage("the dependency is away"));
        }
        if self.arguments.broken_until.as_ref().is_some_and(|file| !is_there(file)) {
            return Err(Classed::permanent("a bad deployment"));
        }
        let word = received.text().unwrap_or_default().split(' ').next().unwrap_or_default();
        let (kind, number) = word.split_once(':').unwrap_or((word, "0"));
        let number: u64 = number.parse().unwrap_or(0);
        match kind {
            "slow" => self.clock.sleep(Duration::from_millis(number)).await,
            "permanent" => return Err(Classed::permanent("cannot be handled")),
            "transient" if u64::from(received.attempt()) <= number => {
                return Err(Classed::transient("not this time"));
            }
            _ => {}
        }
        if let Some(topic) = &self.arguments.output {
            let topic = topic.parse().expect("the name of a topic");
            received.send(Outgoing::to(topic).value(received.at.to_string()));
        }
        Ok(())
    }
}
