//! What must hold, and how often it was put to the test.

use super::*;
use crate::shelf::{Stage, Verdict};

impl World {
    pub(super) fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// What can be seen of a flow only from inside.
    pub(super) fn note_state(&mut self, index: usize) {
        let Some(partition) = self.workers[index].flow.partitions.get(0) else { return };
        let Some(aside) = &partition.aside else { return };
        let unpassed = !aside.unpassed.is_empty();
        let dependents = !aside.dependents.is_empty();
        let held = aside.owner.shelf.waiting.iter().any(|waiting| waiting.stage == Stage::Held);
        let stalled = !partition.stalled.is_empty();
        for (is_so, what) in [
            (unpassed, "due before the reader passed them"),
            (dependents, "due before the one they named"),
            (held, "held"),
            (stalled, "stalled"),
        ] {
            if is_so {
                self.note(what);
            }
        }
    }

    /// What must hold when an entry is written.
    pub(super) fn check_entry(&mut self, index: usize, entry: &Entry) {
        match entry {
            Entry::Wait(_, wait) => {
                let done = wait.done();
                let is_same = |waits: &&super::super::naive::Waits| {
                    (waits.attempt, waits.replay) == (done.attempt, done.replay)
                };
                let there = self.naive.waiting.get(&done.origin).filter(is_same);
                let is_new = there.is_none() && done.replay > 0 && done.attempt == 0;
                assert!(
                    !is_new || !self.workers[index].put_back.contains(&(done.origin, done.replay)),
                    "{} is put back twice",
                    done.origin
                );
                if let Some(there) = there.filter(|_| self.is_rightful(index)) {
                    assert_eq!(
                        (there.due, there.cancelled, there.behind),
                        (wait.due().millis(), wait.is_cancelled(), wait.behind()),
                        "{} is carried as it is",
                        done.origin
                    );
                }
                let is_there = there.is_some();
                match (is_there, done.attempt) {
                    (true, _) if !wait.is_pointer() && self.kept.is_some() => {
                        self.note("pointers carried with their originals");
                    }
                    (true, _) => self.note("waits carried or written again"),
                    (false, 0) if done.replay > 0 => self.note("letters put back"),
                    (false, 0) => self.note("followers set aside"),
                    (false, _) => self.note("waits"),
                }
            }
            Entry::Closed(_, closed) => match closed.completes {
                true => self.note("lanes closed"),
                false => self.note("closures carried"),
            },
            Entry::Outcome(_, outcome) => {
                self.note(match outcome.verdict {
                    Verdict::Due { .. } => "orders answered: due",
                    Verdict::Cancelled => "orders answered: cancelled",
                    Verdict::Opened => "orders answered: opened",
                    Verdict::TooLate => "orders answered: too late",
                    Verdict::Finished => "orders answered: finished",
                    Verdict::Unknown => "orders answered: unknown",
                    Verdict::Replayed => "orders answered: replayed",
                    Verdict::Already => "orders answered: already",
                    Verdict::StillWaiting => "orders answered: still waiting",
                    Verdict::TooLarge => "orders answered: too large",
                    Verdict::Announced { .. } => "orders answered: announced",
                    Verdict::Taken { .. } => "orders answered: taken",
                });
                let origin = outcome.origin;
                let is_over = self.is_over_with(index, origin);
                match outcome.verdict {
                    Verdict::Finished => assert!(is_over, "{origin} is called finished and is not"),
                    Verdict::Replayed if self.is_rightful(index) => {
                        let waits = self.naive.waiting.contains_key(&origin);
                        assert!(waits, "{origin} does not wait although it was sent back");
                    }
                    Verdict::Due { .. } | Verdict::Cancelled if self.is_rightful(index) => {
                        let waits = self.naive.waiting.contains_key(&origin);
                        assert!(waits || is_over, "{origin} does not wait");
                    }
                    Verdict::Due { .. }
                    | Verdict::Cancelled
                    | Verdict::Opened
                    | Verdict::TooLate
                    | Verdict::Unknown
                    | Verdict::Replayed
                    | Verdict::Already
                    | Verdict::StillWaiting
                    | Verdict::TooLarge
                    | Verdict::Announced { .. }
                    | Verdict::Taken { .. } => {}
                }
            }
            Entry::Claim(..)
            | Entry::Checkpoint(..)
            | Entry::Order(_)
            | Entry::Replay(_)
            | Entry::Skipped => {}
        }
    }

    /// Whether a record was handled, became a letter, or was skipped by order.
    fn is_over_with(&self, index: usize, origin: i64) -> bool {
        // Sent back, it is not over until it is again.
        if let Some(replay) = self.replay_in(index, origin) {
            let turn = (origin, replay);
            return self.ended.contains(&turn)
                || self.succeeded_again.contains(&turn)
                || self.workers[index].letters.contains(&turn)
                || self.is_being_saved(index, origin);
        }
        self.succeeded.contains_key(&origin)
            || self.buried.contains(&origin)
            || self.workers[index].letters.iter().any(|(letter, _)| *letter == origin)
            || self.is_being_saved(index, origin)
            || origin < self.skipped()
    }

    /// What must hold when a handler is called.
    pub(super) fn check_start(&mut self, index: usize, attempt: &Attempt) {
        let origin = attempt.record.at.offset;
        assert_eq!(*attempt.record, self.original(origin), "it is handled as it was produced");
        let turn = (origin, self.replay_of(index, attempt.id));
        let is_new = self.workers[index].tried.insert((turn, attempt.number));
        assert!(is_new, "{origin} is tried for the {}. time twice", attempt.number);
        if !self.is_rightful(index) {
            return;
        }
        let key = self.source[origin as usize].0;
        let mut named = false;
        let naive = &self.naive;
        let mark = naive.mark.unwrap_or(0);
        match naive.waiting.get(&origin) {
            Some(waits) if attempt.number == waits.attempt + 1 => {
                assert!(waits.due <= self.now, "{origin} is early by {}", waits.due - self.now);
                assert!(!waits.cancelled, "{origin} is handled although it was cancelled");
                if let Some(leader) = waits.behind {
                    // One that was sent back may come to wait when this one is on its way already.
                    let waits = naive.waiting.get(&leader).is_some_and(|waits| waits.replay == 0);
                    let waits = waits && !self.is_over_with(index, leader);
                    assert!(!waits, "{origin} is handled before {leader}, which it named");
                    named = true;
                }
            }
            Some(_) => {}
            None => {
                let is_complete = origin < mark || naive.ahead.contains(&origin);
                assert!(!is_complete, "{origin} is handled although the log says that it is complete");
            }
        }
        if key == 0 {
            return;
        }
        for earlier in 0..origin {
            let is_lane = self.source[earlier as usize].0 == key;
            let is_over = self.is_over_with(index, earlier);
            let is_excused = self.workers[index].excused.contains(&(earlier, origin));
            assert!(!is_lane || is_over || is_excused, "{origin} is handled before {earlier} of its lane");
        }
        let lane = format!("key-{key}");
        let closed = naive.closed.iter().any(|(letter, (of, held))| {
            (*letter < origin || *letter == origin && held.is_some()) && of == lane.as_bytes()
        });
        assert!(!closed, "{origin} is handled although its lane is closed");
        if named {
            self.note("handled after the one they named");
        }
    }

    fn is_being_saved(&self, index: usize, origin: i64) -> bool {
        self.workers[index].sent.iter().any(|(_, sent)| match sent {
            Sent::Transaction { letters, .. } => letters.iter().any(|(letter, _)| *letter == origin),
            _ => false,
        })
    }

    /// What an operator's reset skipped.
    pub(super) fn skipped(&self) -> i64 {
        self.resets.last().copied().unwrap_or(0)
    }

    /// Whoever has read all of the log says of it what the plain fold says.
    pub(super) fn check_agreement(&mut self, index: usize) {
        let worker = &self.workers[index];
        let Some(partition) = worker.flow.partitions.get(0) else { return };
        let Some(aside) = &partition.aside else { return };
        // Whoever reads what somebody else has left does not say so before it was to begin.
        if self.cut_at.is_some() && !aside.owner.has_started() {
            return;
        }
        if self.log.range(worker.shelf_at..).next().is_some() {
            return;
        }
        let naive = &self.naive;
        let shelf = &aside.owner.shelf;
        let waiting: Vec<_> = naive.waiting.keys().copied().collect();
        let mut theirs: Vec<_> = shelf.waiting.iter().map(|waiting| waiting.origin).collect();
        theirs.sort_unstable();
        assert_eq!(theirs, waiting, "the same waits");
        for waiting in shelf.waiting.iter() {
            let plain = &naive.waiting[&waiting.origin];
            assert_eq!(
                (waiting.at, waiting.due.millis(), waiting.attempt, waiting.replay, waiting.cancelled),
                (plain.at, plain.due, plain.attempt, plain.replay, plain.cancelled),
                "{} waits alike",
                waiting.origin
            );
        }
        let closed: Vec<_> = shelf.closures().map(|(letter, _)| letter).collect();
        assert_eq!(closed, naive.closed.keys().copied().collect::<Vec<_>>(), "the same lanes are closed");
        assert_eq!(shelf.orders().count(), naive.orders.len(), "the same orders are open");
        let replays: Vec<_> = shelf.replays.from(0).map(|(at, _)| at).collect();
        assert_eq!(
            replays,
            naive.replays.keys().copied().collect::<Vec<_>>(),
            "the same letters are sent back"
        );
        for (letter, closure) in shelf.closures() {
            assert_eq!(closure.announced, naive.closed[&letter].1, "{letter} is announced alike");
        }
        assert_eq!(shelf.progress().map(|progress| progress.mark()), naive.settled_mark(), "the same mark");
        if !aside.owner.is_running() {
            return;
        }
        // And what is in memory agrees with that, but for what is on its way.
        for (letter, (lane, _)) in &naive.closed {
            let letters = partition.lanes.letters(&Bytes::from(lane.clone()));
            assert!(letters.contains(letter), "{letter} closes its lane in the log and not in memory");
        }
        self.note("agreements");
    }

    pub(super) fn check_end(&mut self, owner: usize) {
        let skipped = self.skipped();
        for origin in 0..self.source.len() as i64 {
            let is_over = match self.exactly_once {
                true => self.visible.keys().any(|(seen, _)| *seen == origin),
                false => self.succeeded.contains_key(&origin),
            };
            assert!(is_over || self.buried.contains(&origin) || origin < skipped, "{origin} is lost");
            if self.exactly_once && self.resets.is_empty() {
                let times = |replay: u32| self.visible.get(&(origin, replay)).copied().unwrap_or(0);
                for replay in 0..99 {
                    // An order that is there twice may be carried out twice, by two owners.
                    let orders = self.orders_back((origin, replay)).max(1);
                    let times = times(replay);
                    assert!(times <= orders, "{origin} is there {times} times after replay {replay}");
                }
                let is_letter = self.buried.contains(&origin);
                let was_sent_back = self.accepted.iter().any(|(letter, _)| *letter == origin);
                assert!(times(0) == 0 || !is_letter || was_sent_back, "{origin} is handled and a letter");
            }
        }
        for turn in &self.accepted {
            assert!(self.ended.contains(turn), "{turn:?} was sent back and is lost");
        }
        for (key, handled) in self.handled.iter().filter(|(key, _)| **key > 0) {
            let mut last: BTreeMap<i64, usize> = BTreeMap::new();
            // What became a letter, by order say, was not handled again when those before it were; and what
            // a former owner handled last may count.
            let was_sent_back = |origin: &i64| self.accepted.iter().any(|(letter, _)| letter == origin);
            let to_the_end = |origin: &i64| {
                !self.buried.contains(origin) && !self.blurred.contains(origin) && !was_sent_back(origin)
            };
            for (index, origin) in handled.iter().enumerate().filter(|(_, origin)| to_the_end(origin)) {
                last.insert(*origin, index);
            }
            let order: Vec<_> = last.values().copied().collect();
            assert!(order.is_sorted(), "lane {key} was last handled in the order {handled:?}");
        }
        self.check_agreement(owner);
        self.check_nothing_is_left(owner);
        self.count_the_log();
    }

    /// What is over takes no memory, and no place that another could have.
    fn check_nothing_is_left(&self, owner: usize) {
        let worker = &self.workers[owner];
        let flow = &worker.flow;
        assert_eq!((flow.bytes, flow.returns), (0, 0), "bytes and returns that are counted for ever");
        assert_eq!(
            flow.running() as usize,
            worker.running.len() + worker.orphans.len(),
            "places at the handler"
        );
        let partition = flow.partitions.get(0).unwrap();
        assert_eq!((partition.bytes, partition.active), (0, 0), "bytes and work of the partition");
        assert!(partition.lanes.is_empty(), "a lane that nothing is in");
        assert_eq!(flow.tickets.iter().count(), 0, "records in memory that nobody knows of");
        let aside = partition.aside.as_ref().unwrap();
        assert!(aside.owner.is_at_rest(), "something is on its way for ever");
    }

    fn count_the_log(&mut self) {
        *self.seen.entry("void entries").or_default() += self.naive.void;
    }
}

pub(super) fn in_short(entry: &Entry) -> String {
    let what = match entry {
        Entry::Claim(..) => "claim".to_owned(),
        Entry::Checkpoint(_, one) => {
            let done: Vec<_> = one.done.iter().map(|done| (done.origin, done.attempt)).collect();
            format!("checkpoint {:?} begins {} done {done:?}", one.progress, one.begins)
        }
        Entry::Wait(_, wait) => format!("wait {:?} due {}", wait.done(), wait.due().millis()),
        Entry::Closed(_, closed) => format!("closed {} {}", closed.origin, closed.completes),
        Entry::Outcome(_, outcome) => format!("{outcome:?}"),
        Entry::Order(order) => {
            format!("order {} {} {:?} {:?}", order.id, order.origin, order.deed, order.job)
        }
        Entry::Replay(wait) => format!("replay {:?} {:?}", wait.done(), wait.trail.replay),
        Entry::Skipped => "skipped".to_owned(),
    };
    match entry.stamp() {
        Some(stamp) => format!("[{stamp}] {what}"),
        None => what,
    }
}
