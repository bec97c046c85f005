//! Payloads of waiting records, within a budget: those that are due first are kept. What is due later is
//! packed when it gets tight, and read back from the shelf when there is no room even for that.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::shelf::Wait;
use crate::time::Timestamp;

/// What a packed record takes beside its bytes: its places in the tables.
const BESIDE: usize = 150;

/// Which record: its partition and origin.
type Which = (i32, i64);
type ByDue = BTreeSet<(Timestamp, Which)>;

#[derive(Debug, Default)]
pub(super) struct Cache {
    budget: usize,
    used: usize,
    kept: HashMap<Which, Kept>,
    whole: ByDue,
    packed: ByDue,
    /// How much of it each partition uses.
    uses: HashMap<i32, usize>,
    /// Of these partitions something is missing: what is due before this is here.
    missing: HashMap<i32, Timestamp>,
}

#[derive(Debug)]
struct Kept {
    due: Timestamp,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Whole(Arc<Wait>),
    Packed(Box<[u8]>),
}

impl Form {
    fn size(&self) -> usize {
        match self {
            Self::Whole(wait) => wait.size(),
            Self::Packed(bytes) => bytes.len() + BESIDE,
        }
    }
}

impl Cache {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Keeps a record, at the cost of those that are due later. One that is due after something that is
    /// missing is read back together with that.
    pub(super) fn insert(&mut self, partition: i32, wait: Arc<Wait>) {
        let (which, due) = ((partition, wait.record.at.offset), wait.due());
        self.remove(which);
        if self.missing.get(&partition).is_some_and(|missing| *missing <= due) {
            return;
        }
        self.add(which, Kept { due, form: Form::Whole(wait) });
        while self.used > self.budget {
            if let Some((_, which)) = self.whole.last().copied()
                && let Some(Kept { due, form: Form::Whole(wait) }) = self.remove(which)
            {
                self.add(which, Kept { due, form: Form::Packed(wait.pack()) });
            } else if let Some((due, which)) = self.packed.last().copied() {
                self.remove(which);
                self.misses(which.0, due);
            } else {
                return;
            }
        }
    }

    /// Something of this partition that is due then is not here.
    pub(super) fn misses(&mut self, partition: i32, due: Timestamp) {
        let missing = self.missing.entry(partition).or_insert(due);
        *missing = due.min(*missing);
    }

    /// All of this partition that is due before this is here, or on its way; without it, all.
    pub(super) fn has_until(&mut self, partition: i32, due: Option<Timestamp>) {
        match due {
            Some(due) => self.missing.insert(partition, due),
            None => self.missing.remove(&partition),
        };
    }

    /// The partitions of which something is missing, and what is due before is not.
    pub(super) fn missing(&self) -> impl Iterator<Item = (i32, Timestamp)> {
        self.missing.iter().map(|(partition, due)| (*partition, *due))
    }

    /// How much of this partition may be added until it has its share of the budget.
    pub(super) fn room(&self, partition: i32, partitions: usize) -> (usize, usize) {
        let share = self.budget / partitions.max(1);
        (share.saturating_sub(self.uses.get(&partition).copied().unwrap_or(0)), share)
    }

    pub(super) fn contains(&self, partition: i32, origin: i64) -> bool {
        self.kept.contains_key(&(partition, origin))
    }

    pub(super) fn take(&mut self, partition: i32, origin: i64) -> Option<Arc<Wait>> {
        match self.remove((partition, origin))?.form {
            Form::Whole(wait) => Some(wait),
            Form::Packed(bytes) => Wait::unpack(bytes).map(Arc::new),
        }
    }

    pub(super) fn get(&self, partition: i32, origin: i64) -> Option<Arc<Wait>> {
        match &self.kept.get(&(partition, origin))?.form {
            Form::Whole(wait) => Some(wait.clone()),
            Form::Packed(bytes) => Wait::unpack(bytes.clone()).map(Arc::new),
        }
    }

    pub(super) fn forget(&mut self, partition: i32) {
        let gone: Vec<_> = self.kept.keys().filter(|which| which.0 == partition).copied().collect();
        for which in gone {
            self.remove(which);
        }
        self.missing.remove(&partition);
    }

    fn add(&mut self, which: Which, kept: Kept) {
        let size = kept.form.size();
        self.used += size;
        *self.uses.entry(which.0).or_default() += size;
        let by_due = match kept.form {
            Form::Whole(_) => &mut self.whole,
            Form::Packed(_) => &mut self.packed,
        };
        by_due.insert((kept.due, which));
        self.kept.insert(which, kept);
    }

    fn remove(&mut self, which: Which) -> Option<Kept> {
        let kept = self.kept.remove(&which)?;
        let size = kept.form.size();
        self.used -= size;
        if let Some(used) = self.uses.get_mut(&which.0) {
            *used -= size;
            if *used == 0 {
                self.uses.remove(&which.0);
            }
        }
        let by_due = match kept.form {
            Form::Whole(_) => &mut self.whole,
            Form::Packed(_) => &mut self.packed,
        };
        by_due.remove(&(kept.due, which));
        Some(kept)
    }
}
