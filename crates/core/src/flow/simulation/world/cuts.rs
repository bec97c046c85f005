//! Somebody else cuts the log, and whoever takes over next has to say so.

use super::*;
use crate::shelf::Missing;

impl World {
    /// Some run, somebody cuts the log at any record, some more run; in the end one more takes over. What was live
    /// and is gone is told by the first who would have to go on without it.
    pub(in super::super) fn run_and_be_cut(&mut self) {
        let before = 50 + self.roll(300) as u32;
        self.run(before);
        self.cut_by_another();
        if self.cut_at.is_none() {
            return;
        }
        for _ in 0..self.roll(60) {
            if !self.is_noticed {
                self.step();
            }
        }
        self.calm = true;
        for index in 0..self.workers.len() {
            self.fire(index);
        }
        while !self.late.is_empty() || !self.late_cuts.is_empty() {
            self.land_late();
        }
        self.owner = None;
        self.assign();
        for _ in 0..10_000 {
            let Some(owner) = self.owner.filter(|_| !self.is_noticed) else { return };
            // Where it begins was found out, so the log was looked at.
            if matches!(self.workers[owner].flow.phase(0), Some(Phase::Beginning | Phase::Running)) {
                return;
            }
            self.deliver_shelf(owner);
            self.land(owner);
            self.act(owner);
            self.answer(owner);
        }
        panic!("nobody takes over");
    }

    fn cut_by_another(&mut self) {
        let places: Vec<_> = self.log.range(self.start..).map(|(at, _)| *at).collect();
        // Before the source has begun nothing waits, and orders are about nothing.
        if places.len() < 2 || self.naive.mark.is_none() {
            return;
        }
        let to = places[1 + self.roll(places.len() as u64 - 1) as usize];
        let lost = self.naive.lowest_live().is_some_and(|live| live < to);
        self.tell(|| format!("somebody cuts the log from {} to {to}, lost: {lost}", self.start));
        self.note(if lost {
            "cuts by others: something live is gone"
        } else {
            "cuts by others: all is dead"
        });
        (self.start, self.cut_at) = (to, Some(to));
    }

    /// Whoever takes over says whether the log was cut by somebody else.
    pub(super) fn check_beginning(&mut self, index: usize, mark: Option<i64>, missing: Option<Missing>) {
        let Some(cut_at) = self.cut_at else {
            assert_eq!(missing, None, "nobody else has cut the log, which begins at {}", self.start);
            return;
        };
        // One that had read beyond the cut has what was cut off in memory.
        let from = self.workers[index].shelf_from;
        if from < cut_at {
            assert_eq!(missing, None, "it has read all of it");
            return;
        }
        // A log that does not say how far it has come, although it did, is told whoever cut it.
        let is_blank = mark.is_none() && self.naive.mark.is_some();
        self.is_noticed = missing.is_some() || is_blank;
        let is_lost = self.naive.lowest_live().is_some_and(|live| live < from);
        match (self.is_noticed, is_lost) {
            (true, true) => self.note("noticed: something live is gone"),
            (true, false) => self.note("noticed: what is gone was dead"),
            (false, true) => panic!("what was live below {from} is gone, and nobody says so"),
            (false, false) => {
                let rest = Naive::of(self.log.range(from..));
                let (rest, whole) = (format!("{:?}", rest.essence()), format!("{:?}", self.naive.essence()));
                assert_eq!(rest, whole, "what is not told changes nothing");
                self.note("not noticed, as it changes nothing");
            }
        }
        if let Some(missing) = missing {
            let first = self.log.range(from..).next().map(|(at, _)| *at);
            assert_eq!(Some(missing.to), first, "the first record");
            let live = self.naive.lowest_live().unwrap_or(i64::MAX);
            assert!(missing.from.is_none_or(|from| from <= live), "{missing:?}, and {live} is live");
        }
    }
}
