//! What waits for the transaction of its offset: output of handlers, and letters.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use redrive_core::Failure;
use redrive_core::letter::{Letter, Size};
use redrive_kafka::{Outgoing, Refusal};

use super::telling::Story;

/// What goes into one transaction at most: it has to end within its time.
const MOST_IN_ONE: usize = 5_000;
const MOST_BYTES_IN_ONE: usize = 16 << 20;
/// What may wait of one partition before no more of its records are taken.
const MOST_WAITING: usize = 20_000;

/// A record: its partition and offset.
pub(super) type At = (i32, i64);

/// All that waits, by the record that it comes from.
#[derive(Default)]
pub(super) struct Output {
    waiting: BTreeMap<At, Vec<Waiting>>,
    counts: HashMap<i32, usize>,
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

/// What one transaction publishes, and from where each of it comes.
#[derive(Default)]
pub(super) struct Load {
    pub(super) outgoing: Vec<Outgoing>,
    pub(super) sources: Vec<(At, usize)>,
    bytes: usize,
}

impl Waiting {
    fn bytes(&self) -> usize {
        let length = |bytes: Option<&bytes::Bytes>| bytes.map_or(0, bytes::Bytes::len);
        length(self.outgoing.key.as_ref()) + length(self.outgoing.value.as_ref()) + 100
    }
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
        self.waiting.entry(at).or_default().push(Waiting { outgoing, letter });
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
    }

    /// Everything below the mark is published. Says which letters were among it.
    pub(super) fn published(&mut self, partition: i32, mark: i64) -> Vec<Burying> {
        self.refused.retain(|at, _| at.0 != partition || at.1 >= mark);
        let mut published = self.waiting.split_off(&(partition, i64::MIN));
        let mut later = published.split_off(&(partition, mark));
        self.waiting.append(&mut later);
        let gone: usize = published.values().map(Vec::len).sum();
        if let Some(count) = self.counts.get_mut(&partition) {
            *count = count.saturating_sub(gone);
        }
        published.into_values().flatten().filter_map(|one| one.letter.map(|letter| *letter)).collect()
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

    /// Loads what is below the mark, as much as goes into one transaction. Says how far that is.
    pub(super) fn load(&self, load: &mut Load, partition: i32, mark: i64) -> i64 {
        for (at, waiting) in self.waiting.range((partition, i64::MIN)..(partition, mark)) {
            let more: usize = waiting.iter().map(Waiting::bytes).sum();
            let is_full =
                load.outgoing.len() + waiting.len() > MOST_IN_ONE || load.bytes + more > MOST_BYTES_IN_ONE;
            if is_full && !load.outgoing.is_empty() {
                // All below is complete, so any lower mark is right too; the rest is for the next one.
                return at.1;
            }
            load.bytes += more;
            for (index, one) in waiting.iter().enumerate() {
                load.outgoing.push(one.outgoing.clone());
                load.sources.push((*at, index));
            }
        }
        mark
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
