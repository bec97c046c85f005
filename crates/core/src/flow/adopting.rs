//! A flow that runs and is told to go on differently: paused, or by other rules. What is on its way stays so.

use std::num::NonZeroU32;

use super::loss::Loss;
use super::surge::Surge;
use super::{Flow, Settings};
use crate::route::Rules;
use crate::settings::{MaxLoss, SurgeGuard};

/// What of the settings can be changed while a flow runs.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// What decides about failures from now on; where records wait stays as it was.
    pub rules: Rules,
    /// How many first tries run at once.
    pub concurrency: NonZeroU32,
    /// How many retries run at once, beside the first tries.
    pub retry_concurrency: NonZeroU32,
    /// When many failures are an outage.
    pub surge_guard: Option<SurgeGuard>,
    /// How much may be dropped.
    pub max_loss: Option<MaxLoss>,
}

impl Flow {
    /// Nothing starts until it is told otherwise, first tries, retries, probes and what is due alike; what
    /// runs may end, and what is in memory and on the shelf stays there.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether nothing starts because somebody wants it so.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Goes on by other rules and limits. A wait that was decided upon is not shortened or prolonged, and
    /// what runs beyond a lower limit ends first.
    pub fn adopt(&mut self, adopted: Adopted) {
        let Adopted { rules, concurrency, retry_concurrency, surge_guard, max_loss } = adopted;
        let strategy = self.settings.rules.strategy.clone();
        if surge_guard != self.settings.surge_guard {
            self.surge = Surge::new(surge_guard);
        }
        if max_loss != self.settings.max_loss {
            self.loss = Loss::new(max_loss);
        }
        let rules = Rules { strategy, ..rules };
        let settings = self.settings.clone();
        self.settings = Settings { rules, concurrency, retry_concurrency, surge_guard, max_loss, ..settings };
    }
}
