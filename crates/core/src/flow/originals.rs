//! Originals that pointers name: how long they can be read back, and what is done before they cannot.

use std::sync::Arc;
use std::time::Duration;

use super::partition::{Aside, Carried, Carry};
use super::{Action, Flow, Notice, Now};
use crate::record::Record;
use crate::settings::Payload;
use crate::shelf::{ClaimId, Wait};
use crate::time::Timestamp;

/// The longest time before its end at which an original is read back.
const LONGEST_MARGIN: Duration = Duration::from_hours(24);
/// How often pointers to old originals are looked for.
const LOOK: Duration = Duration::from_mins(1);

/// How long the source keeps what was consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Always.
    Always,
    /// For so long after it was produced, at least.
    For(Duration),
}

impl Kept {
    /// When an original is gone, at the earliest.
    #[must_use]
    pub fn expires(self, original: &Record) -> Option<Timestamp> {
        match self {
            Self::Always => None,
            Self::For(time) => original.timestamp.map(|produced| produced.plus(time)),
        }
    }

    /// Whether it is sure that an original is there for longer than this.
    #[must_use]
    pub fn outlasts(self, original: &Record, until: Timestamp) -> bool {
        match (self, original.timestamp) {
            (Self::Always, _) => true,
            (Self::For(_), None) => false,
            (Self::For(time), Some(produced)) => produced.plus(safe(time)) > until,
        }
    }
}

/// For how long originals are relied on that are kept for so long.
fn safe(time: Duration) -> Duration {
    time.saturating_sub((time / 10).min(LONGEST_MARGIN))
}

/// What became of an entry that does not fit on the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Smaller {
    /// It is a pointer now, under the same mark.
    Pointer,
    /// It need not be written: what it says stands in the log already.
    Left,
    /// It is as large as it was.
    No,
}

impl Flow {
    /// An entry does not fit on the shelf: nothing of it was written. A record waits as a pointer then, if its
    /// original is there for long enough; what was only carried stays where it is.
    pub fn too_large(&mut self, partition: i32, claim: ClaimId, seq: u64) -> Smaller {
        let kept = self.settings.shelf.as_ref().and_then(|shelf| shelf.originals);
        let Some(aside) = self.partitions.aside(partition) else { return Smaller::No };
        let Some((wait, is_carried)) = aside.owner.unfit(claim, seq) else { return Smaller::No };
        let origin = wait.record.at.offset;
        if is_carried {
            let expires = kept.and_then(|kept| kept.expires(&wait.record));
            if aside.unfit.insert(origin) {
                self.actions.push_back(Action::Tell(Notice::Unfit { partition, origin, expires }));
            }
            self.append_failed(partition, claim, seq);
            return Smaller::Left;
        }
        let outlasts = |kept: &Kept| !wait.is_pointer() && kept.outlasts(&wait.record, wait.due());
        let Some(kept) = kept.filter(outlasts) else {
            // A letter stays what it is: it must not hold its partition.
            return if self.refuse_replay(partition, seq, origin) { Smaller::Left } else { Smaller::No };
        };
        let pointer = wait.pointing(kept.expires(&wait.record));
        aside.owner.replace(seq, pointer);
        aside.unfit.insert(origin);
        Smaller::Pointer
    }

    /// The record as it is set aside: whole, or only where its original is.
    pub(super) fn written(&self, wait: Wait) -> Wait {
        let shelf = self.settings.shelf.as_ref();
        match shelf.map(|shelf| (shelf.payload, shelf.originals)) {
            // What was sent back may be all that is left of it.
            _ if wait.done().replay > 0 => wait,
            Some((Payload::Pointer, Some(kept))) if kept.outlasts(&wait.record, wait.due()) => {
                wait.pointing(kept.expires(&wait.record))
            }
            _ => wait,
        }
    }

    /// Whether an original should be read back now, as it may be gone soon.
    pub(super) fn expires_soon(&self, wait: &Wait) -> bool {
        let kept = self.settings.shelf.as_ref().and_then(|shelf| shelf.originals);
        // Nobody can say how long it is there: the sooner the better.
        wait.is_pointer() && !kept.is_some_and(|kept| kept.outlasts(&wait.record, self.wall))
    }

    /// The original of a pointer was read back; `None` if it is gone.
    pub fn recalled(&mut self, partition: i32, offset: i64, original: Option<&Record>) {
        let Some(aside) = self.partitions.aside(partition) else { return };
        let asked = aside.recalling.remove(&offset);
        let carried = aside.carry.as_mut().and_then(|carry| carry.recalling.remove(&offset));
        let whole = |wait: &Arc<Wait>| original.and_then(|original| wait.with(original));
        if let Some(carried) = carried {
            // Of one that is gone it is said when its time has come.
            if let Some(whole) = whole(&carried) {
                self.carry_one(partition, &whole);
            }
            self.carry_more(partition);
        }
        if let Some(wait) = asked {
            match whole(&wait) {
                Some(whole) => self.returned(partition, Arc::new(whole), false),
                None => self.returned(partition, wait, true),
            }
        }
    }

    /// Carries pointers to the end of the log with what they point to, before that is gone.
    pub(super) fn roll_forward(&mut self, now: Now) {
        let kept = self.settings.shelf.as_ref().map(|shelf| shelf.originals);
        let time = match kept {
            None | Some(Some(Kept::Always)) => return,
            Some(Some(Kept::For(time))) => safe(time),
            Some(None) => Duration::ZERO,
        };
        let is_due = |aside: &Aside| {
            let oldest = aside.owner.shelf.oldest_pointer();
            aside.owner.is_running()
                && oldest.is_some_and(|oldest| oldest.plus(time) <= now.wall)
                && aside.looked.is_none_or(|looked| now.steady >= looked.saturating_add(LOOK))
        };
        let due = self.partitions.iter().filter(|(_, state)| state.aside.as_ref().is_some_and(is_due));
        for partition in due.map(|(number, _)| number).collect::<Vec<_>>() {
            self.roll_partition(partition, now.wall.minus(time), now.steady);
        }
    }

    fn roll_partition(&mut self, partition: i32, old: Timestamp, now: Duration) {
        // What was carried before may have come to its end, or nowhere.
        self.carry_more(partition);
        let Some(aside) = self.partitions.aside(partition) else { return };
        aside.looked = Some(now);
        if aside.carry.is_none() {
            let mut old = aside.owner.shelf.old_pointers(old);
            old.retain(|origin| !aside.unfit.contains(origin));
            if old.is_empty() {
                return;
            }
            old.sort_unstable();
            aside.carry = Some(Carry::of(Carried::Expiring, old));
        }
        self.carry_more(partition);
    }
}
