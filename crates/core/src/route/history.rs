//! What has been tried so far: enough to decide what comes next, small enough for a header.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::Route;
use crate::class::Class;
use crate::origin::Origin;
use crate::time::Timestamp;

/// The past of a record that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Which record it is.
    pub origin: Origin,
    /// When it failed first; `None` if it has just done so.
    pub first_failed_at: Option<Timestamp>,
    /// The retries so far.
    pub retries: Retries,
}

/// How often a record was tried again, by where it waited. Each kind goes through its own policy,
/// so that three tries in place and then a delayed one remember both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retries {
    /// In memory.
    pub in_place: u32,
    /// While the flow waited.
    pub blocked: u32,
    /// On the shelf or in another topic.
    pub set_aside: u32,
}

/// A text that is not three numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not count retries as in-place/blocked/set-aside, such as 3/0/1")]
pub struct BadRetries(String);

impl History {
    /// A record that never failed before.
    #[must_use]
    pub fn of(origin: Origin) -> Self {
        Self { origin, first_failed_at: None, retries: Retries::default() }
    }

    /// The history after a failure at `now` that was given this route.
    #[must_use]
    pub fn after(mut self, route: &Route, now: Timestamp) -> Self {
        self.first_failed_at.get_or_insert(now);
        match route {
            Route::Again { .. } => self.retries.in_place = self.retries.in_place.saturating_add(1),
            Route::Block { .. } => self.retries.blocked = self.retries.blocked.saturating_add(1),
            Route::Shelve { .. } | Route::Forward { .. } => {
                self.retries.set_aside = self.retries.set_aside.saturating_add(1);
            }
            Route::Bury(_) | Route::Drop(_) => {}
        }
        self
    }
}

impl Retries {
    /// The number of the next retry of this class.
    #[must_use]
    pub fn next(&self, class: Class) -> NonZeroU32 {
        let so_far = match class {
            Class::Permanent | Class::Transient => self.in_place,
            Class::Outage => self.blocked,
            Class::NotReady => self.set_aside,
        };
        NonZeroU32::MIN.saturating_add(so_far)
    }
}

impl fmt::Display for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.in_place, self.blocked, self.set_aside)
    }
}

impl FromStr for Retries {
    type Err = BadRetries;

    fn from_str(text: &str) -> Result<Self, BadRetries> {
        let numbers: Option<Vec<u32>> = text.split('/').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[in_place, blocked, set_aside]) => Ok(Self { in_place, blocked, set_aside }),
            Some(_) | None => Err(BadRetries(text.to_owned())),
        }
    }
}
