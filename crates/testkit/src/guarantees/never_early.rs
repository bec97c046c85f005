//! I2: no record is handed to the handler before the time that its last failure asked for.
//!
//! An attempt whose failure nobody heard of, as its process died, is made again under its own number, at any
//! time. The next number means that the failure counted: then its time counts, and it must be known.

use std::collections::HashMap;

use super::{Spot, some};

/// Knows what each failed attempt asked for.
#[derive(Debug, Default)]
pub struct NeverEarly {
    /// By record and attempt: when the next one is due.
    asked: HashMap<Spot, HashMap<u32, Option<i64>>>,
    broken: Vec<String>,
    waits: usize,
}

impl NeverEarly {
    /// An attempt failed; the next may be made at `due`, or at any time.
    pub fn failed(&mut self, spot: Spot, attempt: u32, due: Option<i64>) {
        self.asked.entry(spot).or_default().insert(attempt, due);
    }

    /// An attempt begins at this time.
    pub fn starts(&mut self, spot: Spot, attempt: u32, at: i64) {
        if attempt <= 1 {
            return;
        }
        match self.asked.get(&spot).and_then(|asked| asked.get(&(attempt - 1))) {
            None => self.broken.push(format!("{spot:?}: attempt {attempt} came out of nothing")),
            Some(None) => {}
            Some(Some(due)) if at < *due => {
                self.broken.push(format!("{spot:?}: attempt {attempt} was {} ms early", due - at));
            }
            Some(Some(_)) => self.waits += 1,
        }
    }

    /// How many attempts were made in their time.
    #[must_use]
    pub fn waits(&self) -> usize {
        self.waits
    }

    /// # Panics
    /// If something was early, or an attempt was counted that never was.
    pub fn check(&self) {
        assert!(self.broken.is_empty(), "not in its time: {}", some(&self.broken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> NeverEarly {
        let mut watch = NeverEarly::default();
        watch.starts((0, 1), 1, 100);
        watch.failed((0, 1), 1, Some(150));
        watch
    }

    #[test]
    fn in_time_or_again_is_right() {
        let mut watch = asked();
        watch.starts((0, 1), 1, 110);
        watch.failed((0, 1), 1, Some(160));
        watch.starts((0, 1), 2, 160);
        watch.check();
        assert_eq!(watch.waits(), 1);
    }

    #[test]
    #[should_panic(expected = "1 ms early")]
    fn early_is_not() {
        let mut watch = asked();
        watch.starts((0, 1), 2, 149);
        watch.check();
    }

    #[test]
    #[should_panic(expected = "out of nothing")]
    fn an_attempt_that_was_never_made_is_not_counted() {
        let mut watch = asked();
        watch.starts((0, 1), 3, 1_000);
        watch.check();
    }
}
