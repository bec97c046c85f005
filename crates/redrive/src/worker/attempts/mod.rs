//! Runs handlers: at once where they answer at once, on tasks that are kept for them where they wait.

mod runner;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redrive_core::flow::{Attempt, Id, Slot};
use redrive_core::histogram::Histogram;
use redrive_core::{Cause, Class, Failure};
use redrive_kafka::Outgoing;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::unconstrained;

use super::News;
use crate::clock::Clock;
use crate::handler::{Received, Sink, Work};
pub(crate) use runner::Answer;
use runner::{Job, Runner, Tried};

/// A handler that keeps the loop busy for longer than this at a time gets a task of its own.
const BRIEF: Duration = Duration::from_micros(50);
/// Nor may a round of attempts keep it for longer than this.
const LONG: Duration = Duration::from_millis(20);
/// For how many attempts that holds, before it is tried at once again.
const WARY: u32 = 1_024;
/// How many deadlines are kept at least before those are dropped that no longer matter.
const DEADLINES: usize = 1_024;

/// How an attempt ended, and what it wants to publish.
pub(crate) struct Done {
    pub(crate) id: Id,
    pub(crate) slot: Slot,
    pub(crate) outcome: Result<Vec<Outgoing>, Failure>,
    /// The turn of the start it goes back to.
    turn: u64,
}

/// The attempts of one subscription.
pub(crate) struct Attempts {
    work: Work,
    clock: Clock,
    /// By slot: first tries, retries.
    timeouts: [Duration; 2],
    news: UnboundedSender<News>,
    sink: Arc<Sink>,
    places: Vec<Place>,
    /// The places whose runner has nothing to do.
    free: Vec<usize>,
    /// By slot, in the order in which they come: the timeout of a slot is always the same.
    deadlines: [VecDeque<Deadline>; 2],
    turns: u64,
    gathered: Vec<Attempt>,
    done: VecDeque<Done>,
    /// Attempts that were run at once since the last look at the clock, and how many more are not.
    at_once: u32,
    /// How many of them went on to wait.
    waited: u32,
    wary: u32,
    /// When the first of them began, and the last look at the clock.
    began: Option<Duration>,
    seen: Duration,
    /// How long attempts took; those that were run at once count with the mean of their round.
    took: Histogram,
}

/// A runner, and whom it runs for.
struct Place {
    runner: Runner,
    running: Running,
    /// The number of its job among all jobs.
    turn: u64,
    /// When it began.
    began: Duration,
}

enum Running {
    Nothing,
    One {
        id: Id,
        number: u32,
        slot: Slot,
    },
    /// In their order; none where a record is no longer ours.
    Many(Vec<Option<Attempt>>),
    /// A record that is no longer ours: the end is of interest to nobody.
    CutOff,
}

impl Place {
    /// Whether it still runs its job of that turn.
    fn is_at(&self, turn: u64) -> bool {
        self.turn == turn && !matches!(self.running, Running::Nothing)
    }
}

struct Deadline {
    at: Duration,
    place: usize,
    turn: u64,
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
            places: Vec::new(),
            free: Vec::new(),
            deadlines: [VecDeque::new(), VecDeque::new()],
            turns: 0,
            gathered: Vec::new(),
            done: VecDeque::new(),
            at_once: 0,
            waited: 0,
            wary: 0,
            began: None,
            seen: Duration::ZERO,
            took: Histogram::default(),
        }
    }

    /// Starts an attempt; what ends at once is found in [`Self::next_done`].
    pub(crate) fn start(&mut self, attempt: Attempt) {
        match &self.work {
            Work::One(handler) => {
                let (id, number, slot) = (attempt.id, attempt.number, attempt.slot);
                let job = Job::One(handler.clone().call(Received::new(attempt, &self.sink)));
                self.run_one(id, number, slot, job);
            }
            Work::Batch { .. } => self.gathered.push(attempt),
        }
    }

    /// How long attempts took.
    pub(crate) fn took(&self) -> &Histogram {
        &self.took
    }

    /// A round of attempts is over.
    pub(crate) fn end_round(&mut self) {
        if self.at_once == 0 {
            return;
        }
        let time = self.look().saturating_sub(self.began.take().unwrap_or(self.seen));
        let each = time / self.at_once;
        if each > BRIEF {
            self.wary = WARY;
        }
        self.took.observe(each, u64::from(self.at_once - self.waited.min(self.at_once)));
        self.waited = 0;
        self.at_once = 0;
    }

    fn look(&mut self) -> Duration {
        self.seen = self.clock.now().steady;
        self.seen
    }

    /// Whether the next attempt is made at once: not if those of this round have taken long.
    fn is_wary(&mut self) -> bool {
        if self.wary > 0 {
            self.wary -= 1;
            return true;
        }
        self.at_once += 1;
        if self.at_once < 4 || self.at_once.is_multiple_of(16) {
            let now = self.look();
            if now.saturating_sub(*self.began.get_or_insert(now)) > LONG {
                self.wary = WARY;
            }
        }
        false
    }

    fn run_one(&mut self, id: Id, number: u32, slot: Slot, mut job: Job) {
        if self.is_wary() {
            self.look();
            return self.keep_running(id, number, slot, job);
        }
        let answer = match self.free.last() {
            Some(free) => match self.places[*free].runner.try_now(job) {
                Tried::Answered(answer) => answer,
                Tried::Waits => {
                    self.waited += 1;
                    let place = self.free_place();
                    return self.occupy(place, Running::One { id, number, slot }, slot);
                }
            },
            // Where handlers answer at once there is never a runner.
            None => {
                let polled = unconstrained(std::future::poll_fn(|context| job.poll(context)));
                match std::pin::pin!(polled).poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => {
                        self.waited += 1;
                        return self.keep_running(id, number, slot, job);
                    }
                }
            }
        };
        if let Answer::One(answer) = answer {
            self.ended_one(self.turns, id, number, slot, answer);
        }
    }

    fn keep_running(&mut self, id: Id, number: u32, slot: Slot, job: Job) {
        let place = self.free_place();
        self.places[place].runner.run(job);
        self.occupy(place, Running::One { id, number, slot }, slot);
    }

    fn free_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            let runner = Runner::new(self.places.len(), self.news.clone());
            self.places.push(Place { runner, running: Running::Nothing, turn: 0, began: Duration::ZERO });
            self.places.len() - 1
        })
    }

    fn occupy(&mut self, number: usize, running: Running, slot: Slot) {
        let place = &mut self.places[number];
        place.running = running;
        self.turns += 1;
        place.turn = self.turns;
        place.began = self.seen;
        let at = self.seen.saturating_add(self.timeouts[slot as usize]);
        let deadlines = &mut self.deadlines[slot as usize];
        deadlines.push_back(Deadline { at, place: number, turn: place.turn });
        // One that waits long must not keep all those that ended behind it.
        if deadlines.len() > 2 * self.places.len() + DEADLINES {
            deadlines.retain(|deadline| self.places[deadline.place].is_at(deadline.turn));
        }
    }

    /// Hands gathered records to a handler of batches.
    pub(crate) fn start_gathered(&mut self) {
        let Work::Batch { handler, most } = &self.work else { return };
        let (handler, most) = (handler.clone(), *most);
        while !self.gathered.is_empty() {
            self.look();
            let rest = self.gathered.split_off(self.gathered.len().min(most));
            let attempts = std::mem::replace(&mut self.gathered, rest);
            let slots = attempts.iter().map(|attempt| attempt.slot);
            let slowest = slots.max_by_key(|slot| self.timeouts[*slot as usize]).unwrap_or(Slot::First);
            let batch = attempts.iter().map(|attempt| Received::new(attempt.clone(), &self.sink)).collect();
            let place = self.free_place();
            self.places[place].runner.run(Job::Many(handler.clone().call(batch)));
            self.occupy(place, Running::Many(attempts.into_iter().map(Some).collect()), slowest);
        }
    }

    /// An attempt that ended.
    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Puts those that ended at the same time in the order in which they started, so that the records
    /// behind them go on in theirs.
    pub(crate) fn sort_done(&mut self) {
        if self.done.len() > 1 {
            self.done.make_contiguous().sort_by_key(|done| done.turn);
        }
    }

    /// Whether an attempt has ended that was not asked for yet.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// A runner is free again.
    pub(crate) fn ended(&mut self, place: usize, answer: Answer, now: Duration) {
        self.free.push(place);
        let turn = self.places[place].turn;
        let records = match &self.places[place].running {
            Running::One { .. } => 1,
            Running::Many(attempts) => attempts.len() as u64,
            Running::Nothing | Running::CutOff => 0,
        };
        self.took.observe(now.saturating_sub(self.places[place].began), records);
        match (std::mem::replace(&mut self.places[place].running, Running::Nothing), answer) {
            (Running::Nothing | Running::CutOff, _) => {}
            (Running::One { id, number, slot }, Answer::One(answer)) => {
                self.ended_one(turn, id, number, slot, answer);
            }
            (Running::One { id, number, slot }, Answer::Many(_) | Answer::None) => {
                let failure = timed_out(self.timeouts[slot as usize]);
                self.ended_one(turn, id, number, slot, Err(failure));
            }
            (Running::Many(attempts), Answer::Many(answers)) => {
                for (attempt, answer) in attempts.into_iter().zip(answers) {
                    let Some(Attempt { id, number, slot, .. }) = attempt else { continue };
                    self.ended_one(turn, id, number, slot, answer);
                }
            }
            (Running::Many(attempts), Answer::One(_) | Answer::None) => self.ended_early(turn, attempts),
        }
    }

    /// A batch was ended before it answered: because it took too long, or because some of its records
    /// are no longer ours. Then the others are tried once more, and that is no failure of theirs.
    fn ended_early(&mut self, turn: u64, attempts: Vec<Option<Attempt>>) {
        let is_cut_off = attempts.iter().any(Option::is_none);
        for attempt in attempts.into_iter().flatten() {
            if is_cut_off {
                self.sink.take((attempt.id, attempt.number));
                self.gathered.push(attempt);
            } else {
                let failure = timed_out(self.timeouts[attempt.slot as usize]);
                self.ended_one(turn, attempt.id, attempt.number, attempt.slot, Err(failure));
            }
        }
    }

    fn ended_one(&mut self, turn: u64, id: Id, number: u32, slot: Slot, answer: Result<(), Failure>) {
        let output = self.sink.take((id, number));
        self.done.push_back(Done { id, slot, outcome: answer.map(|()| output), turn });
    }

    /// When the next attempt has had its time, at the earliest.
    pub(crate) fn next_wake(&self) -> Option<Duration> {
        self.deadlines.iter().filter_map(|deadlines| deadlines.front()).map(|deadline| deadline.at).min()
    }

    /// Ends what has had its time. It counts as failed when it has ended, not before: until then the next
    /// of its lane must not start.
    pub(crate) fn end_late(&mut self, now: Duration) {
        for deadlines in &mut self.deadlines {
            while let Some(Deadline { at, place, turn }) = deadlines.front() {
                let place = &self.places[*place];
                match place.is_at(*turn) {
                    true if *at > now => break,
                    true => place.runner.end(),
                    false => {}
                }
                deadlines.pop_front();
            }
        }
    }

    /// Ends the attempts of records that are no longer ours. Says which slots are free now.
    pub(crate) fn cut_off(&mut self, ids: &HashSet<Id>) -> Vec<(Id, Slot)> {
        let mut freed = Vec::new();
        let mut free = |id: Id, number: u32, slot: Slot| {
            self.sink.take((id, number));
            freed.push((id, slot));
        };
        self.gathered.retain(|attempt| {
            let is_gone = ids.contains(&attempt.id);
            if is_gone {
                free(attempt.id, attempt.number, attempt.slot);
            }
            !is_gone
        });
        for place in &mut self.places {
            match &mut place.running {
                Running::One { id, number, slot } if ids.contains(id) => {
                    free(*id, *number, *slot);
                    place.running = Running::CutOff;
                    place.runner.end();
                }
                Running::Many(attempts) => {
                    for attempt in attempts {
                        if let Some(gone) = attempt.take_if(|attempt| ids.contains(&attempt.id)) {
                            free(gone.id, gone.number, gone.slot);
                            place.runner.end();
                        }
                    }
                }
                Running::Nothing | Running::CutOff | Running::One { .. } => {}
            }
        }
        freed
    }
}

fn timed_out(timeout: Duration) -> Failure {
    let what = format!("no answer within {}", redrive_core::duration::print(timeout));
    Failure::new(Cause::new("redrive::Timeout", what)).presumably(Class::Outage)
}
