//! What erasing letters comes to, letter by letter, before anything is done: what gets a tombstone, what is deleted,
//! and what stays in Kafka for which reason; where that is wanted, what is written again so that nothing has to stay.

use std::collections::BTreeSet;
use std::fmt;

use redrive::Settings;
use redrive_core::Origin;
use redrive_kafka::Walk;

use super::carry_out::{compacted, read, tombstone};
use super::cut::Purge;
use crate::jobs::Followed;
use crate::replay::Error;

/// Why a letter stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stays {
    /// Letters lie before it that are not meant.
    Behind,
    /// Its topic is compacted, and it has another key than its origin: a tombstone might remove others with it.
    OtherKey,
    /// A replay is about to send it.
    Held,
}

/// What is deleted of a partition after other letters were written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// All below this goes.
    pub below: Origin,
    /// The letters that are erased.
    pub erased: Vec<Origin>,
    /// How many are written again.
    pub moved: u64,
}

/// What erasing letters comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erasure {
    /// Letters that get a tombstone.
    pub tombstones: Vec<Origin>,
    /// What is deleted; what stays of it is among those that stay.
    pub purge: Purge,
    /// Partitions where others are written again, so that all that is meant can be deleted.
    pub rewrites: Vec<Rewrite>,
    /// Letters that stay in Kafka, and why.
    pub stay: Vec<(Origin, Stays)>,
}

impl Erasure {
    /// Of these letters, where there are these others; whether these may be written again.
    pub async fn plan(
        settings: &Settings,
        letters: &[Origin],
        all: &[Origin],
        rewrites: bool,
    ) -> Result<Self, Error> {
        let held = Followed::read(settings).await?.state.held(letters, None);
        let is_held = |letter: &Origin| held.get(letter).is_some_and(|hold| !hold.sent);
        let (held, mut free): (Vec<Origin>, Vec<Origin>) = letters.iter().cloned().partition(is_held);
        free.sort_unstable();
        let compacted = compacted(settings, &free).await?;
        let (marked, plain): (Vec<Origin>, Vec<Origin>) =
            free.into_iter().partition(|letter| compacted.contains(&letter.topic));
        let (walk, mut tombstones) = (Walk::new(settings)?, Vec::new());
        for run in marked.chunk_by(|one, other| one.topic == other.topic && one.partition == other.partition)
        {
            let records = read(&walk, run).await?;
            tombstones.extend(
                records.iter().filter(|record| tombstone(record).is_some()).map(|record| record.at.clone()),
            );
        }
        tombstones.sort_unstable();
        let others = marked.into_iter().filter(|letter| tombstones.binary_search(letter).is_err());
        let mut stay: Vec<_> = others.map(|letter| (letter, Stays::OtherKey)).collect();
        let (purge, rewrites) = match rewrites {
            true => rewritten(&plain, all),
            false => (Purge::of(&plain, all), Vec::new()),
        };
        stay.extend(purge.stay.iter().map(|letter| (letter.clone(), Stays::Behind)));
        stay.extend(held.into_iter().map(|letter| (letter, Stays::Held)));
        stay.sort_unstable();
        Ok(Self { tombstones, purge, rewrites, stay })
    }

    /// The letters that go.
    #[must_use]
    pub fn goes(&self) -> Vec<Origin> {
        let cut = self.purge.cuts.iter().flat_map(|cut| &cut.asked);
        let rewritten = self.rewrites.iter().flat_map(|rewrite| &rewrite.erased);
        self.tombstones.iter().chain(cut).chain(rewritten).cloned().collect()
    }

    /// The letters of which nothing is told any more: those that go, and those that Kafka keeps all the same. In order.
    #[must_use]
    pub fn erased(&self) -> Vec<Origin> {
        let stay = self.stay.iter().filter(|(_, why)| match why {
            Stays::Behind | Stays::OtherKey => true,
            Stays::Held => false,
        });
        let mut erased: Vec<Origin> = self.goes();
        erased.extend(stay.map(|(letter, _)| letter.clone()));
        erased.sort_unstable();
        erased.dedup();
        erased
    }
}

/// What is deleted as it is, and where others have to be written again first.
fn rewritten(asked: &[Origin], all: &[Origin]) -> (Purge, Vec<Rewrite>) {
    let plain = Purge::of(asked, all);
    let place = |letter: &Origin| (letter.topic.clone(), letter.partition);
    let behind: BTreeSet<_> = plain.stay.iter().map(place).collect();
    let (cuts, _) = plain.cuts.into_iter().partition(|cut| !behind.contains(&place(&cut.below)));
    let asked: BTreeSet<&Origin> = asked.iter().collect();
    let rewrite = |(topic, partition)| {
        let is_here = |letter: &&&Origin| letter.topic == topic && letter.partition == partition;
        let erased: Vec<Origin> = asked.iter().filter(is_here).map(|letter| (*letter).clone()).collect();
        let last = erased.last()?;
        let is_moved = |letter: &&Origin| {
            let is_here = letter.topic == topic && letter.partition == partition;
            is_here && letter.offset < last.offset && !asked.contains(*letter)
        };
        let moved = all.iter().filter(is_moved).count() as u64;
        Some(Rewrite { below: Origin { offset: last.offset + 1, ..last.clone() }, erased, moved })
    };
    (Purge { cuts, stay: Vec::new() }, behind.into_iter().filter_map(rewrite).collect())
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Behind => "other letters lie before it",
            Self::OtherKey => "its topic is compacted and it is not keyed by its origin",
            Self::Held => "a replay is about to send it",
        })
    }
}
