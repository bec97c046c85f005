//! Payloads of waiting records, within a budget: those that are due first are kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::shelf::Wait;
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Cache {
    budget: usize,
    used: usize,
    waits: HashMap<(i32, i64), Arc<Wait>>,
    by_due: BTreeSet<(Timestamp, i32, i64)>,
}

impl Cache {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }

    pub(super) fn insert(&mut self, partition: i32, wait: Arc<Wait>) {
        let key = (partition, wait.record.at.offset);
        self.take(key.0, key.1);
        let (size, due) = (wait.size(), wait.due());
        while self.used + size > self.budget {
            // Whatever is due last is read back when it is needed.
            match self.by_due.last().copied() {
                Some((last, partition, origin)) if last > due => drop(self.take(partition, origin)),
                Some(_) | None => return,
            }
        }
        self.used += size;
        self.by_due.insert((due, key.0, key.1));
        self.waits.insert(key, wait);
    }

    pub(super) fn take(&mut self, partition: i32, origin: i64) -> Option<Arc<Wait>> {
        let wait = self.waits.remove(&(partition, origin))?;
        self.used -= wait.size();
        self.by_due.remove(&(wait.due(), partition, origin));
        Some(wait)
    }

    pub(super) fn get(&self, partition: i32, origin: i64) -> Option<&Arc<Wait>> {
        self.waits.get(&(partition, origin))
    }

    pub(super) fn forget(&mut self, partition: i32) {
        let gone: Vec<_> = self.waits.keys().filter(|key| key.0 == partition).copied().collect();
        for (partition, origin) in gone {
            self.take(partition, origin);
        }
    }
}
