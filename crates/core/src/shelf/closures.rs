//! The letters that close lanes, and how many lanes these are: a lane may be closed by several.

use std::collections::BTreeMap;

use bytes::Bytes;
use hashbrown::HashMap;

use super::entry::Announced;

/// A lane that a letter closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closure {
    /// The business key.
    pub lane: Bytes,
    /// Where the newest entry that says so stands.
    pub at: i64,
    /// Who is about to send the letters of the lane back from this one on, if somebody announced that.
    pub announced: Option<Announced>,
}

/// All of them, by the offsets of the letters.
#[derive(Debug, Default)]
pub(super) struct Closures {
    by_letter: BTreeMap<i64, Closure>,
    /// By how many letters each lane is closed.
    letters: HashMap<Bytes, u32>,
}

impl Closures {
    pub(super) fn insert(&mut self, letter: i64, closure: Closure) {
        self.remove(letter);
        *self.letters.entry(closure.lane.clone()).or_default() += 1;
        self.by_letter.insert(letter, closure);
    }

    pub(super) fn remove(&mut self, letter: i64) {
        let Some(Closure { lane, .. }) = self.by_letter.remove(&letter) else { return };
        if let Some(letters) = self.letters.get_mut(&lane) {
            *letters -= 1;
            if *letters == 0 {
                self.letters.remove(&lane);
            }
        }
    }

    pub(super) fn get(&self, letter: i64) -> Option<&Closure> {
        self.by_letter.get(&letter)
    }

    pub(super) fn get_mut(&mut self, letter: i64) -> Option<&mut Closure> {
        self.by_letter.get_mut(&letter)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &Closure)> {
        self.by_letter.iter().map(|(letter, closure)| (*letter, closure))
    }

    pub(super) fn lanes(&self) -> usize {
        self.letters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closure(lane: &'static str) -> Closure {
        Closure { lane: Bytes::from_static(lane.as_bytes()), at: 0, announced: None }
    }

    #[test]
    fn a_lane_that_several_letters_close_is_one_lane_until_the_last_is_dealt_with() {
        let mut closures = Closures::default();
        for (letter, lane) in [(1, "a"), (2, "a"), (3, "b"), (2, "a")] {
            closures.insert(letter, closure(lane));
        }
        assert_eq!((closures.iter().len(), closures.lanes()), (3, 2));
        closures.remove(1);
        closures.remove(1);
        assert_eq!((closures.iter().len(), closures.lanes()), (2, 2));
        closures.remove(2);
        assert_eq!((closures.iter().len(), closures.lanes()), (1, 1));
    }
}
