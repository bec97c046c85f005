//! Runs handlers: at once where they answer at once, as tasks of their own where they wait.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use redrive_core::flow::{Attempt, Id, Slot};
use redrive_core::{Cause, Class, Failure};
use redrive_kafka::Outgoing;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, unconstrained};

use super::News;
use crate::clock::Clock;
use crate::handler::{Boxed, Output, Received, Work};

/// A handler that keeps the loop busy for longer than this gets a task of its own next time.
const BRIEF: Duration = Duration::from_micros(50);
/// For how many attempts a handler that took long is not tried at once again.
const WARY: u32 = 1_024;

/// How an attempt ended, and what it wants to publish.
pub(crate) struct Done {
    pub(crate) id: Id,
    pub(crate) slot: Slot,
    pub(crate) outcome: Result<Vec<Outgoing>, Failure>,
    /// It had a task of its own, which may have been ended meanwhile.
    own_task: bool,
}

/// The attempts of one subscription.
pub(crate) struct Attempts {
    work: Work,
    clock: Clock,
    /// By slot: first tries, retries.
    timeouts: [Duration; 2],
    news: UnboundedSender<News>,
    tasks: HashMap<Id, (AbortHandle, Slot)>,
    gathered: Vec<Attempt>,
    done: VecDeque<Done>,
    wary: u32,
}

impl Attempts {
    pub(crate) fn new(
        work: Work,
        clock: Clock,
        timeouts: [Duration; 2],
        news: UnboundedSender<News>,
    ) -> Self {
        Self {
            work,
            clock,
            timeouts,
            news,
            tasks: HashMap::new(),
            gathered: Vec::new(),
            done: VecDeque::new(),
            wary: 0,
        }
    }

    /// Starts an attempt; what ends at once is found in [`Self::next_done`].
    pub(crate) fn start(&mut self, attempt: Attempt) {
        match &self.work {
            Work::One(handler) => {
                let received = Received::new(attempt.record, attempt.number);
                let output = received.output();
                let future = guarded(handler.clone().call(received));
                self.run_one(attempt.id, attempt.slot, output, future);
            }
            Work::Batch { .. } => self.gathered.push(attempt),
        }
    }

    /// Hands gathered records to a handler of batches.
    pub(crate) fn start_gathered(&mut self) {
        let Work::Batch { handler, most } = &self.work else { return };
        let (handler, most) = (handler.clone(), *most);
        while !self.gathered.is_empty() {
            let rest = self.gathered.split_off(self.gathered.len().min(most));
            let attempts = std::mem::replace(&mut self.gathered, rest);
            let received: Vec<_> = attempts
                .iter()
                .map(|attempt| Received::new(attempt.record.clone(), attempt.number))
                .collect();
            let outputs: Vec<_> = received.iter().map(Received::output).collect();
            let members: Vec<_> = attempts.iter().map(|attempt| (attempt.id, attempt.slot)).collect();
            let slowest = members.iter().map(|(_, slot)| self.timeouts[*slot as usize]).max();
            let timeout = slowest.unwrap_or_default();
            let future = AssertUnwindSafe(handler.clone().call(received)).catch_unwind();
            let (clock, news) = (self.clock.clone(), self.news.clone());
            let deadline = self.clock.now().steady.saturating_add(timeout);
            tokio::spawn(async move {
                let answers = tokio::select! {
                    answers = future => answers.map_err(|payload| panicked(payload.as_ref())),
                    () = clock.sleep_until(deadline) => Err(timed_out(timeout)),
                };
                let outcomes = each(answers, members.len());
                let ended =
                    members.into_iter().zip(outcomes).zip(outputs).map(|((member, outcome), output)| Done {
                        id: member.0,
                        slot: member.1,
                        outcome: outcome.map(|()| output.take()),
                        own_task: false,
                    });
                let _ = news.send(News::Ended(ended.collect()));
            });
        }
    }

    /// An attempt that ended at once.
    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Whether this end is to be believed: one that was cut off is not.
    pub(crate) fn accept(&mut self, done: &Done) -> bool {
        !done.own_task || self.tasks.remove(&done.id).is_some()
    }

    /// Ends an attempt of a record that is no longer ours. Says which slot is free now.
    pub(crate) fn cut_off(&mut self, id: Id) -> Option<Slot> {
        let (task, slot) = self.tasks.remove(&id)?;
        task.abort();
        Some(slot)
    }

    fn run_one(&mut self, id: Id, slot: Slot, output: Output, mut future: Boxed<Result<(), Failure>>) {
        if self.wary > 0 {
            self.wary -= 1;
        } else {
            let began = self.clock.now().steady;
            let mut polled = unconstrained(&mut future);
            let answer = Pin::new(&mut polled).poll(&mut Context::from_waker(Waker::noop()));
            if self.clock.now().steady.saturating_sub(began) > BRIEF {
                self.wary = WARY;
            }
            if let Poll::Ready(answer) = answer {
                let outcome = answer.map(|()| output.take());
                self.done.push_back(Done { id, slot, outcome, own_task: false });
                return;
            }
        }
        let timeout = self.timeouts[slot as usize];
        let deadline = self.clock.now().steady.saturating_add(timeout);
        let (clock, news) = (self.clock.clone(), self.news.clone());
        let task = tokio::spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = future => answer,
                () = clock.sleep_until(deadline) => Err(timed_out(timeout)),
            };
            let outcome = answer.map(|()| output.take());
            let _ = news.send(News::Ended(vec![Done { id, slot, outcome, own_task: true }]));
        });
        self.tasks.insert(id, (task.abort_handle(), slot));
    }
}

fn guarded(future: Boxed<Result<(), Failure>>) -> Boxed<Result<(), Failure>> {
    Box::pin(AssertUnwindSafe(future).catch_unwind().map(|answer| match answer {
        Ok(answer) => answer,
        Err(payload) => Err(panicked(payload.as_ref())),
    }))
}

/// One outcome for each record, whatever the handler of a batch answered.
fn each(answers: Result<Vec<Result<(), Failure>>, Failure>, records: usize) -> Vec<Result<(), Failure>> {
    match answers {
        Ok(answers) if answers.len() == records => answers,
        Ok(answers) => {
            let what = format!("the handler gave {} outcomes for {records} records", answers.len());
            let failure = Failure::new(Cause::new("redrive::Outcomes", what)).presumably(Class::Permanent);
            vec![Err(failure); records]
        }
        Err(failure) => vec![Err(failure); records],
    }
}

fn timed_out(timeout: Duration) -> Failure {
    let what = format!("no answer within {}", redrive_core::duration::print(timeout));
    Failure::new(Cause::new("redrive::Timeout", what)).presumably(Class::Outage)
}

fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let what = text.unwrap_or_else(|| "the handler panicked".to_owned());
    Failure::new(Cause::new("redrive::Panic", what)).presumably(Class::Permanent)
}
