//! Whether the log of a shelf begins where its owners left it.
//!
//! A cut is named in a checkpoint that is read back before it is made, and every checkpoint names where the
//! log began for its writer. So a log whose first record is named by no checkpoint in it was cut by somebody
//! else, and what stood before that record is gone, whatever it was.

use super::entry::Entry;

/// Where a log begins, as the owner knows it that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// The first record that is there.
    pub at: i64,
    /// Where it begins once it is cut, if that is about to be done: at a checkpoint that counts, below which
    /// nothing is live.
    pub cut: Option<i64>,
}

/// What somebody else cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// From here on something may have been live, as far as the log still says.
    pub from: Option<i64>,
    /// The first record that is there.
    pub to: i64,
}

/// What the log says of its first record.
#[derive(Debug, Default)]
pub(super) struct Start {
    first: Option<i64>,
    /// Whether the first entry of an owner is one that a log begins with.
    is_proper: Option<bool>,
    is_named: bool,
    /// The highest place before the first record at which the log may once have begun.
    before: Option<i64>,
    /// What the last checkpoint that counts says.
    told: Option<Beginning>,
}

impl Start {
    /// A record was read, whatever it is.
    pub(super) fn read(&mut self, at: i64) {
        self.first.get_or_insert(at);
    }

    /// It is an entry.
    pub(super) fn read_entry(&mut self, at: i64, entry: &Entry) {
        self.read(at);
        if entry.stamp().is_some() {
            let is_proper = matches!(entry, Entry::Claim(..) | Entry::Checkpoint(..));
            self.is_proper.get_or_insert(is_proper);
        }
        // Whether it counts or not: its writer knew what it read, and a place that was safe to cut at stays so.
        if let Entry::Checkpoint(_, checkpoint) = entry
            && let Some(Beginning { at, cut }) = checkpoint.log
        {
            self.names(at);
            cut.into_iter().for_each(|cut| self.names(cut));
        }
    }

    fn names(&mut self, place: i64) {
        let Some(first) = self.first else { return };
        self.is_named |= place == first;
        if place < first {
            self.before = self.before.max(Some(place));
        }
    }

    /// A checkpoint counts that says this.
    pub(super) fn tells(&mut self, beginning: Option<Beginning>) {
        self.told = beginning;
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.first
    }

    /// Where the log is about to be cut, as the last checkpoint says that counts.
    pub(super) fn cut(&self) -> Option<i64> {
        self.told?.cut
    }

    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// What is missing although no owner cut it off.
    pub(super) fn missing(&self) -> Option<Missing> {
        // A log that begins with its first offset was never cut. It may be one that was made anew, where what a
        // former owner had on its way landed first.
        let to = self.first.filter(|first| *first > 0)?;
        let is_whole = match self.told {
            Some(_) => self.is_named,
            // Of a program that did not name its cuts, which left a checkpoint in front all the same.
            None => self.is_proper.unwrap_or(true),
        };
        (!is_whole).then_some(Missing { from: self.before, to })
    }
}
