//! What waits for the transaction of its offset: output of handlers, and letters.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use redrive_core::Failure;
use redrive_core::letter::{Letter, Size};
use redrive_core::shelf::Stamp;
use redrive_kafka::{Outgoing, Refusal};

use super::telling::Story;

/// What may wait of one partition before no more of its records are taken: all of it goes into one
/// transaction, which has to end within its time.
const MOST_WAITING: usize = 10_000;

/// A record: its partition and offset.
pub(super) type At = (i32, i64);

/// All that waits, by the record that it comes from.
#[derive(Default)]
pub(super) struct Output {
    waiting: BTreeMap<At, VecDeque<Waiting>>,
    counts: HashMap<i32, usize>,
    /// What is to be written to the shelf of each partition, in its order.
    entries: BTreeMap<i32, VecDeque<(Stamp, Outgoing)>>,
    /// Partitions with a letter that was refused, and when to try it again.
    held: HashMap<i32, Duration>,
    /// Records whose output is refused for good, and why.
    refused: HashMap<At, Failure>,
}

struct Waiting {
    outgoing: Outgoing,
    /// What it is, if it is a letter.
    letter: Option<Box<Burying>>,
}

/// A letter, how much of it is left, and what is told of it.
pub(super) struct Burying {
    pub(super) letter: Letter,
    size: Size,
    pub(super) story: Story,
}

/// Where something that is published comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A record: its output or its letter, and which of them.
    Record(At, usize),
    /// The owner of a shelf partition, and which of its entries.
    Entry(i32, usize),
}

impl Output {
    /// What a handler wants to publish with its offset.
    pub(super) fn add(&mut self, at: At, output: Vec<Outgoing>) {
        *self.counts.entry(at.0).or_default() += output.len();
        let waiting = output.into_iter().map(|outgoing| Waiting { outgoing, letter: None });
        self.waiting.entry(at).or_default().extend(waiting);
    }

    /// A letter that is published with its offset.
    pub(super) fn add_letter(&mut self, at: At, outgoing: Outgoing, letter: Letter, story: Story) {
        *self.counts.entry(at.0).or_default() += 1;
        let letter = Some(Box::new(Burying { letter, size: Size::Whole, story }));
        self.waiting.entry(at).or_default().push_back(Waiting { outgoing, letter });
    }

    /// An entry for the shelf of a partition.
    pub(super) fn add_entry(&mut self, partition: i32, stamp: Stamp, entry: Outgoing) {
        self.entries.entry(partition).or_default().push_back((stamp, entry));
    }

    /// The mark of an entry that was loaded from there.
    pub(super) fn entry(&self, partition: i32, nth: usize) -> Option<Stamp> {
        self.entries.get(&partition)?.get(nth).map(|(stamp, _)| *stamp)
    }

    /// Something else is to be written instead of an entry, or nothing.
    pub(super) fn replace_entry(&mut self, partition: i32, nth: usize, by: Option<Outgoing>) {
        let Some(entries) = self.entries.get_mut(&partition) else { return };
        match (by, entries.get_mut(nth)) {
            (Some(by), Some((_, outgoing))) => *outgoing = by,
            (Some(_), None) => {}
            (None, _) => drop(entries.remove(nth)),
        }
    }

    /// Whether so much waits of this partition that no more of it should come, or so little that more may;
    /// in between it stays as it is.
    pub(super) fn is_full(&self, partition: i32) -> Option<bool> {
        match self.counts.get(&partition).copied().unwrap_or(0) {
            MOST_WAITING.. => Some(true),
            count if count <= MOST_WAITING / 2 => Some(false),
            _ => None,
        }
    }

    /// What is known to be refused of a partition; it is as true after it has begun again.
    pub(super) fn take_refusals(&mut self, partition: i32) -> HashMap<At, Failure> {
        self.refused.extract_if(|at, _| at.0 == partition).collect()
    }

    pub(super) fn put_refusals(&mut self, refusals: HashMap<At, Failure>) {
        self.refused.extend(refusals);
    }

    /// A partition is no longer ours, or begins again.
    pub(super) fn forget(&mut self, partition: i32) {
        self.held.remove(&partition);
        self.counts.remove(&partition);
        self.refused.retain(|at, _| at.0 != partition);
        self.waiting.retain(|at, _| at.0 != partition);
        self.entries.remove(&partition);
    }

    /// All of this is published. Says which letters were among it.
    pub(super) fn published(&mut self, sources: &[Source]) -> Vec<Burying> {
        let mut letters = Vec::new();
        for source in sources {
            match source {
                // They are all published, or none is: each from the front, whatever came behind since.
                Source::Record(at, _) => {
                    let Some(waiting) = self.waiting.get_mut(at) else { continue };
                    letters.extend(waiting.pop_front().and_then(|one| one.letter).map(|letter| *letter));
                    if waiting.is_empty() {
                        self.waiting.remove(at);
                    }
                    self.refused.remove(at);
                    if let Some(count) = self.counts.get_mut(&at.0) {
                        *count = count.saturating_sub(1);
                    }
                }
                Source::Entry(partition, _) => {
                    self.entries.get_mut(partition).and_then(VecDeque::pop_front);
                }
            }
        }
        letters
    }

    /// A letter of this partition is refused: it is tried again at that time.
    pub(super) fn hold(&mut self, partition: i32, until: Duration) {
        self.held.insert(partition, until);
    }

    /// Whether a letter of this partition waits until it is tried again.
    pub(super) fn is_held(&mut self, partition: i32, now: Duration) -> bool {
        self.held.retain(|_, until| *until > now);
        self.held.contains_key(&partition)
    }

    /// The output of a record is refused for good: its attempts fail from now on, if they have output.
    pub(super) fn refuse(&mut self, at: At, failure: Failure) {
        self.refused.insert(at, failure);
    }

    /// Why a record cannot have output.
    pub(super) fn refusal(&self, at: At) -> Option<&Failure> {
        self.refused.get(&at)
    }

    /// All that waits of these partitions, and where each of it comes from: output and letters, then what
    /// the shelves say of them.
    pub(super) fn load(&self, partitions: &BTreeSet<i32>) -> (Vec<Outgoing>, Vec<Source>) {
        let (mut outgoing, mut sources) = (Vec::new(), Vec::new());
        for (at, waiting) in self.waiting.iter().filter(|(at, _)| partitions.contains(&at.0)) {
            for (index, one) in waiting.iter().enumerate() {
                outgoing.push(one.outgoing.clone());
                sources.push(Source::Record(*at, index));
            }
        }
        for (partition, entries) in self.entries.iter().filter(|(of, _)| partitions.contains(of)) {
            outgoing.extend(entries.iter().map(|(_, outgoing)| outgoing.clone()));
            sources.extend((0..entries.len()).map(|nth| Source::Entry(*partition, nth)));
        }
        (outgoing, sources)
    }

    /// The letter that was loaded from there, if it was one.
    pub(super) fn letter(&self, at: At, nth: usize) -> Option<&Burying> {
        self.waiting.get(&at)?.get(nth)?.letter.as_deref()
    }

    /// Makes a letter smaller that is too large. Whether it could be.
    pub(super) fn shrink(&mut self, at: At, nth: usize, kind: Refusal) -> bool {
        let waiting = self.waiting.get_mut(&at).and_then(|all| all.get_mut(nth));
        let Some(Waiting { outgoing, letter: Some(burying) }) = waiting else { return false };
        let Some(smaller) = burying.size.smaller().filter(|_| kind == Refusal::TooLarge) else {
            return false;
        };
        burying.size = smaller;
        let letter = burying.letter.clone().shrunk(smaller, None);
        (outgoing.value, outgoing.headers) = (letter.value, letter.headers);
        true
    }
}
