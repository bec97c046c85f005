//! The answers of owners, read from the shelf as they come to count.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use redrive_core::shelf::{Announced, Outcome};
use redrive_core::{Origin, Topic};
use redrive_kafka::Settings;

use crate::Clock;
use crate::delayed::{Error, View};

/// Follows the shelf of a subscription for answers. Opened before an order is given, it misses none.
pub struct Answers {
    view: View,
}

impl Answers {
    /// Reads these partitions of a shelf to their ends, or all if none is named: only so is it known what counts.
    pub async fn open(settings: &Settings, shelf: Topic, partitions: &[i32]) -> Result<Self, Error> {
        let view = View::read(settings, shelf, partitions, Arc::new(|_| false), |_| {}).await?;
        Ok(Self { view })
    }

    /// Reads on until each of these orders, by partition and id, has its outcome, or the time is over: then those
    /// that came are there. Who has none may be asked for again.
    pub async fn wait(
        &mut self,
        orders: impl IntoIterator<Item = (i32, String)>,
        wait: Duration,
        clock: &Clock,
    ) -> Result<HashMap<String, Outcome>, Error> {
        let orders: BTreeSet<_> = orders.into_iter().collect();
        let deadline = clock.now().steady.saturating_add(wait);
        let outcomes = self.view.outcomes(orders, deadline, clock).await?;
        Ok(outcomes.into_iter().map(|outcome| (outcome.id.clone(), outcome)).collect())
    }

    /// Whether this letter closes its lane, as far as was read.
    #[must_use]
    pub fn closes(&self, letter: &Origin) -> bool {
        self.view.closure(letter).is_some()
    }

    /// How many letters of these partitions were sent back and are not answered, as far as was read.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.view.unanswered_replays()
    }

    /// Who announced that the letters of the lane that this one closed are sent back, as far as was read.
    #[must_use]
    pub fn announced(&self, letter: &Origin) -> Option<&Announced> {
        self.view.closure(letter)?.announced.as_ref()
    }
}
