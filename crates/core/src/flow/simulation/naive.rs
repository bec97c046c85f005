//! The fold once more, with sets and maps and nothing clever.

use std::collections::{BTreeMap, BTreeSet};

use crate::shelf::{Announced, ClaimId, Done, Entry, Verdict};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Naive {
    claim: Option<ClaimId>,
    seq: u64,
    pub(super) mark: Option<i64>,
    pub(super) ahead: BTreeSet<i64>,
    completed: Vec<(i64, i64)>,
    pub(super) waiting: BTreeMap<i64, Waits>,
    pub(super) closed: BTreeMap<i64, (Vec<u8>, Option<Announced>)>,
    /// Letters that are to be tried again: where the orders stand, and what they are about.
    pub(super) replays: BTreeMap<i64, Done>,
    pub(super) orders: BTreeSet<String>,
    /// Where closures and orders stand.
    closed_at: BTreeMap<i64, i64>,
    ordered_at: BTreeMap<String, i64>,
    /// Entries that did not count.
    pub(super) void: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) at: i64,
    pub(super) due: i64,
    pub(super) attempt: u32,
    pub(super) replay: u32,
    pub(super) cancelled: bool,
    /// Whom it waits for beside its lane.
    pub(super) behind: Option<i64>,
}

impl Naive {
    pub(super) fn of<'a>(log: impl Iterator<Item = (&'a i64, &'a Entry)>) -> Self {
        let mut naive = Self::default();
        log.for_each(|(at, entry)| naive.fold(*at, entry));
        naive
    }

    /// How far everything is complete.
    pub(super) fn settled_mark(&self) -> Option<i64> {
        let mut mark = self.mark?;
        while self.ahead.contains(&mark) {
            mark += 1;
        }
        Some(mark)
    }

    /// How far everything is complete for whoever takes over: what waits or closes a lane is not handled from
    /// the source, whatever the last checkpoint knew of it.
    pub(super) fn mark_of_a_successor(&self) -> Option<i64> {
        let mut mark = self.mark?;
        while self.ahead.contains(&mark)
            || self.waiting.contains_key(&mark)
            || self.closed.contains_key(&mark)
        {
            mark += 1;
        }
        Some(mark)
    }

    /// The lowest place at which something live stands.
    pub(super) fn lowest_live(&self) -> Option<i64> {
        let waiting = self.waiting.values().map(|waits| waits.at);
        let closed = self.closed.keys().map(|letter| self.closed_at[letter]);
        let orders = self.orders.iter().map(|id| self.ordered_at[id]);
        waiting.chain(closed).chain(orders).chain(self.replays.keys().copied()).min()
    }

    /// What has to be the same whether the log is folded from its start or from where it was cut.
    pub(super) fn essence(&self) -> impl PartialEq + std::fmt::Debug {
        let mark = self.settled_mark();
        let ahead: BTreeSet<_> =
            self.ahead.iter().copied().filter(|offset| mark.is_none_or(|mark| *offset >= mark)).collect();
        let orders = (self.orders.clone(), self.replays.clone());
        (mark, ahead, self.waiting.clone(), self.closed.clone(), orders, self.claim)
    }

    pub(super) fn fold(&mut self, at: i64, entry: &Entry) {
        match entry {
            Entry::Skipped => return,
            Entry::Order(order) => {
                self.orders.insert(order.id.clone());
                self.ordered_at.insert(order.id.clone(), at);
                return;
            }
            Entry::Replay(wait) => {
                self.replays.insert(at, wait.done());
                return;
            }
            Entry::Claim(stamp, _) => {
                if self.claim != Some(stamp.claim) {
                    (self.claim, self.seq) = (Some(stamp.claim), stamp.seq);
                }
                return;
            }
            Entry::Checkpoint(..) | Entry::Wait(..) | Entry::Closed(..) | Entry::Outcome(..) => {}
        }
        let stamp = entry.stamp().unwrap();
        if self.claim.is_none() {
            (self.claim, self.seq) = (Some(stamp.claim), stamp.seq - 1);
        }
        if self.claim != Some(stamp.claim) || stamp.seq <= self.seq {
            self.void += 1;
            return;
        }
        self.seq = stamp.seq;
        match entry {
            Entry::Wait(_, wait) => {
                let done = wait.done();
                let waits = Waits {
                    at,
                    due: wait.due().millis(),
                    attempt: done.attempt,
                    replay: done.replay,
                    cancelled: wait.is_cancelled(),
                    behind: wait.behind(),
                };
                self.waiting.insert(done.origin, waits);
                self.complete(at, done.origin);
            }
            Entry::Closed(_, closed) => {
                self.closed.insert(closed.origin, (closed.lane.to_vec(), closed.announced.clone()));
                self.closed_at.insert(closed.origin, at);
                if closed.completes {
                    self.waiting.remove(&closed.origin);
                    self.complete(at, closed.origin);
                }
            }
            Entry::Outcome(_, outcome) => {
                match outcome.order {
                    Some(order) => drop(self.replays.remove(&order)),
                    None => drop(self.orders.remove(&outcome.id)),
                }
                match outcome.verdict {
                    Verdict::Due { due } => {
                        if let Some(waits) = self.waiting.get_mut(&outcome.origin) {
                            waits.due = due;
                            waits.behind = None;
                        }
                    }
                    Verdict::Cancelled => {
                        if let Some(waits) = self.waiting.get_mut(&outcome.origin) {
                            waits.cancelled = true;
                        }
                    }
                    Verdict::Opened => {
                        self.closed.remove(&outcome.origin);
                        self.closed.retain(|letter, _| !outcome.also.contains(letter));
                    }
                    Verdict::Replayed => {
                        let announced = self.closed.get(&outcome.origin).and_then(|(_, held)| held.as_ref());
                        if announced.is_none() {
                            self.closed.remove(&outcome.origin);
                        }
                    }
                    Verdict::Announced { deadline } => {
                        if let Some((_, held)) = self.closed.get_mut(&outcome.origin) {
                            *held = Some(Announced { job: outcome.job.clone().unwrap(), deadline });
                        }
                    }
                    Verdict::TooLate
                    | Verdict::Finished
                    | Verdict::Unknown
                    | Verdict::Already
                    | Verdict::StillWaiting
                    | Verdict::TooLarge
                    | Verdict::Taken { .. } => {}
                }
            }
            Entry::Checkpoint(stamp, checkpoint) => {
                self.mark = Some(checkpoint.progress.mark());
                self.ahead = checkpoint.progress.ahead().iter().flat_map(Clone::clone).collect();
                if checkpoint.begins {
                    self.completed.clear();
                }
                self.completed.retain(|(completed_at, _)| *completed_at > stamp.seen);
                self.ahead.extend(self.completed.iter().map(|(_, origin)| *origin));
                for done in &checkpoint.done {
                    let is_it = |waits: &Waits| waits.attempt == done.attempt && waits.replay == done.replay;
                    if self.waiting.get(&done.origin).is_some_and(is_it) {
                        self.waiting.remove(&done.origin);
                        self.complete(at, done.origin);
                    }
                }
            }
            Entry::Claim(..) | Entry::Order(_) | Entry::Replay(_) | Entry::Skipped => {}
        }
    }

    fn complete(&mut self, at: i64, origin: i64) {
        self.ahead.insert(origin);
        self.completed.push((at, origin));
    }
}
