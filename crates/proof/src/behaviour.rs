//! What the handler does with a record: its value's first word says so.
//!
//! `ok`, `slow:MS`, `permanent`, `transient:N` (fails N times, then succeeds), `later:N:MS` (is not ready N
//! times, each time for so long), `poison:N:MS` (the same, and then cannot be handled); anything after a space
//! is ballast.

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

/// How an attempt fails, and when it wants to be made again.
struct Wrong {
    error: Classed,
    wait: Option<Duration>,
}

impl Behaviour {
    pub(crate) fn new(arguments: Arguments, log: Arc<Log>) -> Self {
        Self { arguments, log, clock: Clock::system() }
    }

    pub(crate) async fn call(&self, received: Received) -> Result<(), Classed> {
        self.log.start(&received);
        match self.answer(&received).await {
            Ok(()) => {
                self.log.end(&received, "ok");
                Ok(())
            }
            Err(Wrong { error, wait: None }) => {
                self.log.end(&received, "failed");
                Err(error)
            }
            Err(Wrong { error, wait: Some(wait) }) => {
                let due = self.clock.now().wall.plus(wait);
                self.log.end(&received, &format!("later:{due}"));
                Err(error.retry_after(wait))
            }
        }
    }

    async fn answer(&self, received: &Received) -> Result<(), Wrong> {
        let is_there = |file: &std::path::PathBuf| file.exists();
        if self.arguments.outage_until.as_ref().is_some_and(|file| !is_there(file)) {
            return Err(Classed::outage("the dependency is away").into());
        }
        if self.arguments.broken_until.as_ref().is_some_and(|file| !is_there(file)) {
            return Err(Classed::permanent("a bad deployment").into());
        }
        let word = received.text().unwrap_or_default().split(' ').next().unwrap_or_default();
        let mut parts = word.split(':');
        let kind = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|number| number.parse().ok()).unwrap_or(0_u64);
        let (first, second) = (number(), number());
        let is_early = u64::from(received.attempt()) <= first;
        match kind {
            "slow" => self.clock.sleep(Duration::from_millis(first)).await,
            "transient" if is_early => return Err(Classed::transient("not this time").into()),
            "later" | "poison" if is_early => {
                let wait = Some(Duration::from_millis(second));
                return Err(Wrong { error: Classed::not_ready("not yet"), wait });
            }
            "permanent" | "poison" => return Err(Classed::permanent("cannot be handled").into()),
            _ => {}
        }
        if let Some(topic) = &self.arguments.output {
            let topic = topic.parse().expect("the name of a topic");
            received.send(Outgoing::to(topic).value(received.at.to_string()));
        }
        Ok(())
    }
}

impl From<Classed> for Wrong {
    fn from(error: Classed) -> Self {
        Self { error, wait: None }
    }
}
