//! I1: what was sent was handled, or is stored somewhere else.

use std::collections::BTreeSet;

use super::{Spot, some};

/// Knows what was sent and what became of it.
#[derive(Debug, Default)]
pub struct NothingLost {
    sent: BTreeSet<Spot>,
    ended: BTreeSet<Spot>,
}

impl NothingLost {
    /// This was sent, and must end somewhere.
    pub fn sent(&mut self, spot: Spot) {
        self.sent.insert(spot);
    }

    /// This was handled: the handler said that it is done.
    pub fn handled(&mut self, spot: Spot) {
        self.ended.insert(spot);
    }

    /// There is a letter of this.
    pub fn buried(&mut self, spot: Spot) {
        self.ended.insert(spot);
    }

    /// What was sent and did not end, so far.
    #[must_use]
    pub fn missing(&self) -> Vec<Spot> {
        self.sent.difference(&self.ended).copied().collect()
    }

    /// # Panics
    /// If something is lost, or something ended that was never sent.
    pub fn check(&self) {
        let (missing, strange) = (self.missing(), self.ended.difference(&self.sent).collect::<Vec<_>>());
        assert!(missing.is_empty(), "lost: {}", some(&missing));
        assert!(strange.is_empty(), "never sent: {}", some(&strange));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_handled_nor_a_letter_is_missing() {
        let mut watch = NothingLost::default();
        [(0, 1), (0, 2), (1, 1)].into_iter().for_each(|spot| watch.sent(spot));
        watch.handled((0, 1));
        watch.buried((1, 1));
        assert_eq!(watch.missing(), [(0, 2)]);
    }
}
