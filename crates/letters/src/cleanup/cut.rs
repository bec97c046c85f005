//! What deleting letters really deletes. Kafka deletes the beginning of a partition and nothing else: a letter goes
//! only with all that lie before it.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::{Origin, Topic};

/// What is deleted of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// All below this goes.
    pub below: Origin,
    /// Letters that go and were asked for.
    pub asked: Vec<Origin>,
    /// Letters that go although they were not.
    pub others: u64,
}

/// What deleting letters comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purge {
    /// By partition.
    pub cuts: Vec<Cut>,
    /// Letters that were asked for and stay: others that were not lie before them.
    pub stay: Vec<Origin>,
}

impl Purge {
    /// Of these letters, where there are these others: only what was asked for goes.
    #[must_use]
    pub fn of(asked: &[Origin], all: &[Origin]) -> Self {
        let asked: BTreeSet<&Origin> = asked.iter().collect();
        let mut partitions: BTreeMap<(&Topic, i32), Vec<&Origin>> = BTreeMap::new();
        for letter in all.iter().chain(asked.iter().copied()) {
            partitions.entry((&letter.topic, letter.partition)).or_default().push(letter);
        }
        let mut purge = Self::default();
        for letters in partitions.into_values() {
            let mut letters = letters;
            letters.sort_unstable();
            letters.dedup();
            let goes: Vec<Origin> = letters
                .iter()
                .take_while(|letter| asked.contains(*letter))
                .map(|letter| (*letter).clone())
                .collect();
            let stay = letters.iter().skip(goes.len()).filter(|letter| asked.contains(*letter));
            purge.stay.extend(stay.map(|letter| (*letter).clone()));
            if let Some(last) = goes.last() {
                let below = Origin { offset: last.offset + 1, ..last.clone() };
                purge.cuts.push(Cut { below, asked: goes, others: 0 });
            }
        }
        purge
    }

    /// Of everything below an offset, where there are these letters.
    #[must_use]
    pub fn below(below: &Origin, all: &[Origin]) -> Self {
        let goes = |letter: &&Origin| {
            letter.topic == below.topic && letter.partition == below.partition && letter.offset < below.offset
        };
        let asked: Vec<Origin> = all.iter().filter(goes).cloned().collect();
        Self { cuts: vec![Cut { below: below.clone(), asked, others: 0 }], stay: Vec::new() }
    }

    /// How many letters go.
    #[must_use]
    pub fn letters(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.asked.len() as u64 + cut.others).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letter(partition: i32, offset: i64) -> Origin {
        Origin { topic: "orders.g.dlq".parse().unwrap(), partition, offset }
    }

    #[test]
    fn a_letter_behind_another_that_is_wanted_stays() {
        let all = [letter(0, 3), letter(0, 5), letter(0, 9), letter(0, 12)];
        let purge = Purge::of(&[letter(0, 3), letter(0, 5), letter(0, 12)], &all);
        assert_eq!(purge.cuts.len(), 1);
        assert_eq!((&purge.cuts[0].below, purge.letters()), (&letter(0, 6), 2));
        assert_eq!(purge.stay, [letter(0, 12)]);
    }

    proptest! {
        #[test]
        fn nothing_goes_that_was_not_asked_for(
            all in prop::collection::btree_map((0..3_i32, 0..30_i64), any::<bool>(), 0..60),
        ) {
            let letters: Vec<_> = all.keys().map(|(partition, offset)| letter(*partition, *offset)).collect();
            let asked: Vec<_> = all.iter().filter(|(_, asked)| **asked).map(|((p, o), _)| letter(*p, *o)).collect();
            let purge = Purge::of(&asked, &letters);
            for cut in &purge.cuts {
                let gone = letters.iter().filter(|one| one.partition == cut.below.partition && one.offset < cut.below.offset);
                prop_assert_eq!(gone.cloned().collect::<Vec<_>>(), cut.asked.clone());
                prop_assert!(cut.asked.iter().all(|one| asked.contains(one)));
            }
            prop_assert_eq!(purge.letters() as usize + purge.stay.len(), asked.len());
        }
    }
}
