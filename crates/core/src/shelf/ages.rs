//! How old the originals are that pointers name: by the minute, so that a minute of millions takes no more
//! room than one of a few.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::time::Timestamp;

/// In milliseconds.
const MINUTE: i64 = 60_000;

/// By the minute in which they were produced, the origins between which the pointers of it are.
#[derive(Debug, Default)]
pub(super) struct Ages(BTreeMap<i64, RangeInclusive<i64>>);

impl Ages {
    pub(super) fn add(&mut self, timestamp: Timestamp, origin: i64) {
        let minute = timestamp.millis().div_euclid(MINUTE);
        let origins = self.0.entry(minute).or_insert(origin..=origin);
        *origins = origin.min(*origins.start())..=origin.max(*origins.end());
    }

    /// None was produced before this.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        Some(Timestamp::from_millis(self.0.first_key_value()?.0.saturating_mul(MINUTE)))
    }

    /// Whether a pointer may name an original that was produced by then.
    pub(super) fn up_to(&self, old: Timestamp) -> impl Fn(i64) -> bool + use<> {
        let old: Vec<_> =
            self.0.range(..=old.millis().div_euclid(MINUTE)).map(|(_, one)| one.clone()).collect();
        move |origin| old.iter().any(|origins| origins.contains(&origin))
    }

    /// Nothing that was produced by then is pointed at any more.
    pub(super) fn forget(&mut self, old: Timestamp) {
        self.0 = self.0.split_off(&(old.millis().div_euclid(MINUTE) + 1));
    }
}
