//! What erasing letters comes to, letter by letter, before anything is done: what gets a tombstone, what is deleted,
//! and what stays in Kafka for which reason.

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

/// What erasing letters comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erasure {
    /// Letters that get a tombstone.
    pub tombstones: Vec<Origin>,
    /// What is deleted; what stays of it is among those that stay.
    pub purge: Purge,
    /// Letters that stay, and why.
    pub stay: Vec<(Origin, Stays)>,
}

impl Erasure {
    /// Of these letters, where there are these others.
    pub async fn plan(settings: &Settings, letters: &[Origin], all: &[Origin]) -> Result<Self, Error> {
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
        let purge = Purge::of(&plain, all);
        stay.extend(purge.stay.iter().map(|letter| (letter.clone(), Stays::Behind)));
        stay.extend(held.into_iter().map(|letter| (letter, Stays::Held)));
        stay.sort_unstable();
        Ok(Self { tombstones, purge, stay })
    }

    /// The letters that go.
    #[must_use]
    pub fn goes(&self) -> Vec<Origin> {
        let cut = self.purge.cuts.iter().flat_map(|cut| &cut.asked);
        self.tombstones.iter().chain(cut).cloned().collect()
    }
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
