//! Letters that lie elsewhere in their partition now: they were written again, unchanged, when others before or among
//! them were erased. What was said of one is said of it in its new place.

use std::collections::BTreeMap;

use redrive_core::{Origin, Topic};

use super::{BadSelection, Selection};

/// Where letters went, by where they were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moves(BTreeMap<(Topic, i32), BTreeMap<i64, i64>>);

/// Some letters that were written again: where they were, and where each is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved(Selection);

impl Moved {
    /// Letters of one partition that lay at the first offset of each pair, and lie at the second.
    #[must_use]
    pub fn of(topic: &Topic, partition: i32, pairs: &[(i64, i64)]) -> Self {
        let at = |offset: i64| Origin { topic: topic.clone(), partition, offset };
        let places: Vec<Origin> =
            pairs.iter().map(|(from, _)| at(*from)).chain(pairs.iter().map(|(_, to)| at(*to))).collect();
        Self(Selection::of(&places))
    }

    /// As it was written.
    pub(crate) fn read(bytes: bytes::Bytes) -> Result<Self, BadSelection> {
        let selection = Selection::read(vec![bytes])?;
        if selection.len() % 2 == 1 { Err(BadSelection::Damaged) } else { Ok(Self(selection)) }
    }

    /// As it is written; none if there are too many for one record.
    pub(crate) fn write(&self) -> Option<bytes::Bytes> {
        match self.0.chunks() {
            [chunk] => Some(chunk.clone()),
            _ => None,
        }
    }

    /// Where they were, and where they are.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Origin, Origin)> + '_ {
        let half = usize::try_from(self.0.len() / 2).unwrap_or(usize::MAX);
        self.0.iter().take(half).zip(self.0.iter().skip(half))
    }
}

impl Moves {
    /// Letters were moved.
    pub(super) fn take(&mut self, moved: &Moved, anew: &[Topic]) {
        for (from, to) in moved.pairs().filter(|(from, _)| !anew.contains(&from.topic)) {
            // Always towards the end of the same partition, so following them comes to an end.
            let is_onward =
                from.topic == to.topic && from.partition == to.partition && from.offset < to.offset;
            if is_onward {
                self.0.entry((from.topic, from.partition)).or_default().insert(from.offset, to.offset);
            }
        }
    }

    /// Whether nothing was ever moved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a letter is now.
    #[must_use]
    pub fn now(&self, mut letter: Origin) -> Origin {
        if self.is_empty() {
            return letter;
        }
        let Some(partition) = self.0.get(&(letter.topic.clone(), letter.partition)) else { return letter };
        while let Some(to) = partition.get(&letter.offset) {
            letter.offset = *to;
        }
        letter
    }

    /// Whether what lay here lies elsewhere now.
    #[must_use]
    pub fn has_left(&self, letter: &Origin) -> bool {
        let partition = self.0.get(&(letter.topic.clone(), letter.partition));
        partition.is_some_and(|partition| partition.contains_key(&letter.offset))
    }

    /// Every place that letters have left.
    pub fn left(&self) -> impl Iterator<Item = Origin> + '_ {
        self.0.iter().flat_map(|((topic, partition), offsets)| {
            let at = |offset: &i64| Origin { topic: topic.clone(), partition: *partition, offset: *offset };
            offsets.keys().map(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_that_was_moved_twice_is_where_it_was_moved_last() {
        let topic: Topic = "a.dlq".parse().unwrap();
        let at = |partition: i32, offset: i64| Origin { topic: topic.clone(), partition, offset };
        let first = Moved::of(&topic, 0, &[(1, 10), (3, 11)]);
        let first = Moved::read(first.write().unwrap()).unwrap();
        let mut moves = Moves::default();
        moves.take(&first, &[]);
        moves.take(&Moved::of(&topic, 0, &[(10, 20)]), &[]);
        // Backwards: nobody wrote that.
        moves.take(&Moved::of(&topic, 0, &[(20, 1)]), &[]);
        assert_eq!((moves.now(at(0, 1)), moves.now(at(0, 3))), (at(0, 20), at(0, 11)));
        assert_eq!((moves.now(at(0, 2)), moves.now(at(1, 1))), (at(0, 2), at(1, 1)));
        assert_eq!(moves.left().collect::<Vec<_>>(), [at(0, 1), at(0, 3), at(0, 10)]);
        let mut other = Moves::default();
        other.take(&first, std::slice::from_ref(&topic));
        assert!(other.is_empty(), "of another topic of that name");
    }
}
