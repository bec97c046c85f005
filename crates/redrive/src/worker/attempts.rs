//! Runs handlers: at once where they answer at once, as tasks of their own where they wait.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redrive_core::flow::{Attempt, Id, Slot};
use redrive_core::{Cause, Class, Failure};
use redrive_kafka::Outgoing;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, unconstrained};

use super::News;
use crate::clock::Clock;
use crate::handler::{Boxed, Received, Sink, Work};

/// A handler that keeps the loop busy for longer than this at a time gets a task of its own.
const BRIEF: Duration = Duration::from_micros(50);
/// Nor may a round of attempts keep it for longer than this.
const LONG: Duration = Duration::from_millis(20);
/// For how many attempts that holds, before it is tried at once again.
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
    sink: Arc<Sink>,
    tasks: HashMap<Id, (AbortHandle, u32, Slot)>,
    gathered: Vec<Attempt>,
    done: VecDeque<Done>,
    /// Attempts that were run at once since the last look at the clock, and how many more are not.
    at_once: u32,
    wary: u32,
    /// When the first of them began.
    began: Option<Duration>,
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
            sink: Arc::default(),
            tasks: HashMap::new(),
            gathered: Vec::new(),
            done: VecDeque::new(),
            at_once: 0,
            wary: 0,
            began: None,
        }
    }

    /// Starts an attempt; what ends at once is found in [`Self::next_done`].
    pub(crate) fn start(&mut self, attempt: Attempt) {
        match &self.work {
            Work::One(handler) => {
                let (id, number, slot) = (attempt.id, attempt.number, attempt.slot);
                let future = handler.clone().call(Received::new(attempt, &self.sink));
                self.run_one(id, number, slot, future);
            }
            Work::Batch { .. } => self.gathered.push(attempt),
        }
    }

    /// Those that were started took the loop this long, together.
    pub(crate) fn took(&mut self, time: Duration) {
        if self.at_once > 0 && time / self.at_once > BRIEF {
            self.wary = WARY;
        }
        self.at_once = 0;
        self.began = None;
    }

    /// Whether the attempts of this round have taken so long that the next should not be made at once.
    fn keeps_the_loop(&mut self) -> bool {
        let now = self.clock.now().steady;
        let began = *self.began.get_or_insert(now);
        now.saturating_sub(began) > LONG
    }

    /// Hands gathered records to a handler of batches.
    pub(crate) fn start_gathered(&mut self) {
        let Work::Batch { handler, most } = &self.work else { return };
        let (handler, most) = (handler.clone(), *most);
        while !self.gathered.is_empty() {
            let rest = self.gathered.split_off(self.gathered.len().min(most));
            let attempts = std::mem::replace(&mut self.gathered, rest);
            let members: Vec<_> =
                attempts.iter().map(|attempt| (attempt.id, attempt.number, attempt.slot)).collect();
            let slowest = members.iter().map(|(_, _, slot)| self.timeouts[*slot as usize]).max();
            let timeout = slowest.unwrap_or_default();
            let batch = attempts.into_iter().map(|attempt| Received::new(attempt, &self.sink)).collect();
            let future = handler.clone().call(batch);
            let (clock, news, sink) = (self.clock.clone(), self.news.clone(), self.sink.clone());
            let deadline = self.clock.now().steady.saturating_add(timeout);
            tokio::spawn(async move {
                let answers = tokio::select! {
                    biased;
                    answers = future => answers,
                    () = clock.sleep_until(deadline) => vec![Err(timed_out(timeout)); members.len()],
                };
                let ended = members.into_iter().zip(answers).map(|((id, number, slot), answer)| {
                    let output = sink.take((id, number));
                    Done { id, slot, outcome: answer.map(|()| output), own_task: false }
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
        let (task, number, slot) = self.tasks.remove(&id)?;
        task.abort();
        self.sink.take((id, number));
        Some(slot)
    }

    fn run_one(&mut self, id: Id, number: u32, slot: Slot, mut future: Boxed<Result<(), Failure>>) {
        if self.wary > 0 {
            self.wary -= 1;
        } else {
            self.at_once += 1;
            if (self.at_once < 4 || self.at_once.is_multiple_of(16)) && self.keeps_the_loop() {
                self.wary = WARY;
            }
            let mut polled = unconstrained(&mut future);
            let answer = Pin::new(&mut polled).poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(answer) = answer {
                let output = self.sink.take((id, number));
                self.done.push_back(Done { id, slot, outcome: answer.map(|()| output), own_task: false });
                return;
            }
        }
        let timeout = self.timeouts[slot as usize];
        let deadline = self.clock.now().steady.saturating_add(timeout);
        let (clock, news, sink) = (self.clock.clone(), self.news.clone(), self.sink.clone());
        let task = tokio::spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = future => answer,
                () = clock.sleep_until(deadline) => Err(timed_out(timeout)),
            };
            let output = sink.take((id, number));
            let _ = news.send(News::Ended(vec![Done {
                id,
                slot,
                outcome: answer.map(|()| output),
                own_task: true,
            }]));
        });
        self.tasks.insert(id, (task.abort_handle(), number, slot));
    }
}

fn timed_out(timeout: Duration) -> Failure {
    let what = format!("no answer within {}", redrive_core::duration::print(timeout));
    Failure::new(Cause::new("redrive::Timeout", what)).presumably(Class::Outage)
}
