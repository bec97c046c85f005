//! I4: a read-committed reader sees each output once.

use std::collections::BTreeMap;

use super::some;

/// Knows what must be seen, and how often it was.
#[derive(Debug, Default)]
pub struct Once(BTreeMap<String, u32>);

impl Once {
    /// This must be seen once.
    pub fn expect(&mut self, what: impl Into<String>) {
        self.0.entry(what.into()).or_default();
    }

    /// This was seen.
    pub fn seen(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    /// Whether everything was seen.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.of(|times| times == 0).is_empty()
    }

    /// # Panics
    /// If something was not seen, or more than once.
    pub fn check(&self) {
        let (never, often) = (self.of(|times| times == 0), self.of(|times| times > 1));
        assert!(often.is_empty(), "seen more than once: {}", some(&often));
        assert!(never.is_empty(), "never seen: {}", some(&never));
    }

    fn of(&self, wrong: fn(u32) -> bool) -> Vec<&String> {
        self.0.iter().filter(|(_, times)| wrong(**times)).map(|(what, _)| what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times: usize) -> Once {
        let mut once = Once::default();
        once.expect("a");
        (0..times).for_each(|_| once.seen("a"));
        once
    }

    #[test]
    fn once_is_right() {
        seen(1).check();
    }

    #[test]
    #[should_panic(expected = "seen more than once")]
    fn twice_is_not() {
        seen(2).check();
    }

    #[test]
    #[should_panic(expected = "never seen")]
    fn never_is_not() {
        seen(0).check();
    }
}
