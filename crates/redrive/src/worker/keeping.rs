//! Subscriptions that are kept at work, each on its own: one that cannot start, or ends by an error, says so
//! in its status and is tried again; the others never notice.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use redrive_kafka::{Error as KafkaError, Refused};
use tokio::sync::watch;
use tracing::{Instrument, debug, error, info_span};

use super::engine::{Links, chain};
use super::{Running, Start, Worker, back_off, heed, link};
use crate::Error;
use crate::pauses::Known;
use crate::status::{Problem, State};
use crate::subscription::Settled;
use crate::topics::{self, Change, Mender, Mismatch, Step, Unready};

/// Who has run for so long is not starting any more: its next failure is the first.
const STEADY: Duration = Duration::from_secs(60);

/// The longest pause before it is tried again.
const LONGEST: Duration = Duration::from_secs(10);

impl Worker {
    /// Starts each subscription on its own, for a process that runs many: one that cannot start, or ends by
    /// an error, is unready, says why in its status, and is tried again. Only settings that cannot be are
    /// refused at once, for all.
    pub fn start_each(self) -> Result<Running, Error> {
        let (settled, start) = self.settle()?;
        let start = Arc::new(start);
        let (ends, links): (Vec<_>, Vec<_>) = settled.iter().map(|one| link(one, &start.stopped)).unzip();
        let mut running = Running::of(ends, &start);
        for (index, (settled, links)) in settled.into_iter().zip(links).enumerate() {
            let span =
                info_span!("subscription", topic = %settled.settled.topic, group = settled.settled.group);
            let keeper = Keeper { index, settled, start: start.clone(), links, known: running.known.clone() };
            running.engines.spawn(keeper.keep().instrument(span));
        }
        Ok(running)
    }
}

/// Keeps one subscription at work.
struct Keeper {
    index: usize,
    settled: Settled,
    start: Arc<Start>,
    links: Links,
    known: watch::Receiver<Known>,
}

impl Keeper {
    async fn keep(self) -> Result<(), Error> {
        let (clock, mut tries) = (self.start.clock.clone(), 0);
        loop {
            let began = clock.now().steady;
            let Err(problem) = self.work().await else { break };
            if clock.now().steady.saturating_sub(began) > STEADY {
                tries = 0;
            }
            self.failed(problem);
            tokio::select! {
                () = clock.sleep(back_off(tries).min(LONGEST)) => tries += 1,
                // What kept it from starting may have been just that.
                () = changed(self.known.clone()) => {}
                () = stopped(&self.links.stop) => break,
            }
        }
        self.links.status.send_modify(|status| status.state = State::Stopped);
        Ok(())
    }

    /// Says so, once for as long as it stays the same. What it had is another's now; the totals stay.
    fn failed(&self, problem: Problem) {
        let paused = self.links.wishes.borrow().paused.clone();
        self.links.status.send_modify(|status| {
            let is_known = status.state == State::Failed && status.problems.contains(&problem);
            match is_known {
                false => error!(problem = problem.what, remedy = problem.remedy, "failed"),
                true => debug!(problem = problem.what, "failed again"),
            }
            status.state = State::Failed;
            status.paused = paused;
            status.marks.clear();
            (status.in_memory, status.running, status.lag) = (0, 0, None);
            (status.shelf, status.by_due) = Default::default();
            status.problems = vec![problem];
        });
    }

    /// Works until it is told to stop, or something keeps it from it.
    async fn work(&self) -> Result<(), Problem> {
        let begin = async {
            heed(&self.known).await?;
            let settled = Settled {
                settled: self.links.wishes.borrow().settled.as_ref().clone(),
                ..self.settled.clone()
            };
            let topics = std::slice::from_ref(&settled.settled);
            let ready = topics::ensure(&self.start.admin, topics, &self.start.mender).await?;
            ready.tell();
            self.start.engine(self.index, settled, &ready, self.links.clone()).await
        };
        let engine = tokio::select! {
            engine = begin => engine.map_err(|error| self.problem(&error))?,
            () = stopped(&self.links.stop) => return Ok(()),
        };
        match AssertUnwindSafe(engine.run()).catch_unwind().await {
            Ok(ended) => ended.map_err(|error| self.problem(&error)),
            Err(_) => Err(Problem {
                kind: "failed",
                partition: None,
                what: "the loop of the subscription panicked; see the log".to_owned(),
                remedy: "it is tried again by itself; tell the makers what the log says".to_owned(),
            }),
        }
    }

    fn problem(&self, error: &Error) -> Problem {
        let (kind, remedy) = match error {
            Error::Pauses(_) => {
                let remedy =
                    "check that the brokers can be reached, and allow this user what redrive acls prints";
                ("pauses", remedy.to_owned())
            }
            Error::Topics(Unready::Mismatch(mismatch)) => ("topics", self.mend(mismatch)),
            Error::Topics(Unready::Kafka(error)) | Error::Kafka(error) => of_kafka(error),
            _ => ("failed", "it is tried again by itself".to_owned()),
        };
        let what = chain(error).lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Problem { kind, partition: None, what, remedy }
    }

    fn mend(&self, mismatch: &Mismatch) -> String {
        let by_hand = mismatch.steps.iter().filter_map(|step| match &step.change {
            Change::Cannot { remedy } => Some(remedy.clone()),
            Change::Create { .. } | Change::AddPartitions { .. } | Change::Alter { .. } => None,
        });
        let command = match &self.start.mender {
            Mender::Command { config } => format!("redrive topics apply -c {config}"),
            Mender::Library => "auto_create(true), or redrive topics apply".to_owned(),
        };
        let command = mismatch.steps.iter().any(Step::is_doable).then_some(command);
        by_hand.chain(command).collect::<Vec<_>>().join("; then ")
    }
}

fn of_kafka(error: &KafkaError) -> (&'static str, String) {
    let remedy = match error.refusal() {
        Some(refused) if refused.is_denied() => "allow this user what redrive acls prints",
        Some(refused) if Refused::is_out_of_reach(refused) => {
            "check that the brokers can be reached and that the credentials are right"
        }
        Some(_) | None => "see the broker's reason; it is tried again by itself",
    };
    ("kafka", remedy.to_owned())
}

/// Waits until it is known, or no longer known, what is paused.
async fn changed(mut known: watch::Receiver<Known>) {
    known.mark_unchanged();
    if known.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn stopped(stop: &watch::Receiver<bool>) {
    // Whoever could say so is gone: that is as good.
    let _ = stop.clone().wait_for(|stop| *stop).await;
}
