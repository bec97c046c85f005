//! One shelf partition, folded: the state that its owner has too, and beside it what people want to see.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use redrive_core::shelf::{BadEntry, Entry, Folded, Outcome, Shelf, Verdict, Wait, Waiting};
use redrive_core::{Class, Origin, Record, Timestamp, Topic};

use super::record::{Closure, Delayed, Standing};
use super::view::Keep;

/// What an entry takes of the log beside its key, value and headers.
const FRAME: usize = 70;
/// Texts that are kept once for all that say the same.
const MOST_TEXTS: usize = 10_000;

#[derive(Default)]
pub(super) struct Part {
    pub(super) shelf: Shelf,
    /// The offset from which to read on.
    pub(super) next: i64,
    /// Records that are no entries.
    pub(super) foreign: u64,
    source: Option<Topic>,
    facts: HashMap<i64, Facts>,
    texts: HashSet<Arc<str>>,
}

/// What the index does not know of a record.
struct Facts {
    key: Option<Bytes>,
    lane: Option<Bytes>,
    since: Option<Timestamp>,
    class: Option<Class>,
    error_type: Option<Arc<str>>,
    error_message: Option<Arc<str>>,
}

impl Part {
    /// A partition whose log begins at this offset.
    pub(super) fn from(offset: i64) -> Self {
        Self { next: offset, ..Self::default() }
    }

    /// Applies one record of the log. An outcome that counts is handed back.
    pub(super) fn read(&mut self, record: &Record, keep: &Keep) -> Result<Option<Outcome>, BadEntry> {
        self.next = record.at.offset + 1;
        let entry = match Entry::read(record) {
            Ok(entry) => entry,
            Err(error @ BadEntry::Newer(_)) => return Err(error),
            Err(BadEntry::Foreign | BadEntry::Malformed { .. }) => {
                self.foreign += 1;
                return Ok(None);
            }
        };
        let size = u32::try_from(record.size() + FRAME).unwrap_or(u32::MAX);
        match self.shelf.fold(record.at.offset, &entry, size) {
            Folded::Counted => {}
            Folded::Claimed | Folded::Ordered | Folded::Void | Folded::Foreign | Folded::Skipped => {
                return Ok(None);
            }
        }
        match entry {
            Entry::Wait(_, wait) => self.waits(&wait, record.timestamp, keep),
            Entry::Checkpoint(_, checkpoint) => {
                for done in checkpoint.done {
                    self.forget(done.origin);
                }
            }
            Entry::Closed(_, closed) => self.forget(closed.origin),
            Entry::Outcome(_, outcome) => return Ok(Some(outcome)),
            Entry::Claim(..) | Entry::Order(_) | Entry::Replay(_) | Entry::Skipped => {}
        }
        Ok(None)
    }

    fn waits(&mut self, wait: &Wait, written: Option<Timestamp>, keep: &Keep) {
        let trail = &wait.trail;
        if self.source.is_none() {
            self.source = Some(wait.record.at.topic.clone());
        }
        if !keep(wait) {
            return;
        }
        let key = wait.record.key.clone();
        // Most often the same: kept once.
        let lane = trail.lane.clone().map(|lane| key.clone().filter(|key| *key == lane).unwrap_or(lane));
        let facts = Facts {
            key,
            lane,
            since: trail.first_failed_at.or(written),
            class: trail.class,
            error_type: trail.error_type.as_deref().map(|text| self.text(text)),
            error_message: trail.error_message.as_deref().map(|text| self.text(text)),
        };
        self.facts.insert(wait.record.at.offset, facts);
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        if self.texts.len() < MOST_TEXTS {
            self.texts.insert(text.clone());
        }
        text
    }

    fn forget(&mut self, origin: i64) {
        if !self.shelf.waiting.contains(origin) {
            self.facts.remove(&origin);
        }
    }

    /// The topic of the records that wait here, as far as anything says so.
    fn source(&self) -> Option<Topic> {
        let named = || self.shelf.identity().and_then(|identity| identity.topic.parse().ok());
        self.source.clone().or_else(named)
    }

    /// The waiting records that were kept, in no order.
    pub(super) fn records(&self, partition: i32) -> impl Iterator<Item = Delayed> {
        let letters = self.first_letters();
        self.facts.iter().filter_map(move |(origin, facts)| {
            let waiting = self.shelf.waiting.get(*origin)?;
            let standing = self.standing(&waiting, facts, &letters);
            Some(Delayed {
                origin: Origin { topic: self.source()?, partition, offset: *origin },
                due: waiting.due,
                earliest: self.earliest(waiting.due, standing),
                since: facts.since,
                attempts: waiting.attempt,
                replays: waiting.replay,
                class: facts.class,
                error_type: facts.error_type.clone(),
                error_message: facts.error_message.clone(),
                key: facts.key.clone(),
                lane: facts.lane.clone(),
                standing,
                cancelled: waiting.cancelled,
                size: waiting.size,
                at: waiting.at,
            })
        })
    }

    fn standing(&self, waiting: &Waiting, facts: &Facts, letters: &BTreeMap<&Bytes, i64>) -> Standing {
        let letter = facts.lane.as_ref().and_then(|lane| letters.get(lane).copied());
        if let Some(letter) = letter.filter(|letter| *letter < waiting.origin) {
            return Standing::Closed { letter };
        }
        let stands = |leader: &i64| self.shelf.waiting.contains(*leader) || self.shelf.is_closing(*leader);
        let named = self.shelf.behind(waiting.origin).filter(stands);
        let first = waiting.lane.and_then(|lane| self.shelf.waiting.first_of(lane));
        match named.or(first.filter(|first| *first != waiting.origin)) {
            Some(leader) => Standing::Behind { leader },
            None => Standing::First,
        }
    }

    fn earliest(&self, due: Timestamp, standing: Standing) -> Option<Timestamp> {
        match standing {
            Standing::First => Some(due),
            Standing::Behind { leader } => self.shelf.waiting.get(leader).map(|leader| leader.due.max(due)),
            Standing::Closed { .. } => None,
        }
    }

    /// The first letter of each closed lane.
    fn first_letters(&self) -> BTreeMap<&Bytes, i64> {
        let mut letters = BTreeMap::new();
        for (letter, closure) in self.shelf.closures() {
            letters.entry(&closure.lane).or_insert(letter);
        }
        letters
    }

    pub(super) fn closures(&self, partition: i32) -> impl Iterator<Item = Closure> {
        self.shelf.closures().filter_map(move |(letter, closure)| {
            let letter = Origin { topic: self.source()?, partition, offset: letter };
            Some(Closure { lane: closure.lane.clone(), letter })
        })
    }

    /// The origins of this record's lane, in order, itself included.
    pub(super) fn lane_of(&self, origin: i64) -> Vec<i64> {
        let lane = self.shelf.waiting.get(origin).and_then(|waiting| waiting.lane);
        lane.map_or_else(Vec::new, |lane| self.shelf.waiting.of_lane(lane).collect())
    }

    /// What an owner that had read as much would say of something that does not wait.
    pub(super) fn absent(&self, origin: i64) -> Verdict {
        let is_complete = self
            .shelf
            .progress()
            .is_some_and(|progress| origin < progress.mark() || progress.ahead().contains(origin));
        if is_complete { Verdict::Finished } else { Verdict::Unknown }
    }
}
