//! Counts what happened by kinds. Only of what fails: what goes well is counted by the flow alone.

use redrive_core::route::Reason;
use redrive_core::{Class, Failure};

use crate::status::{Failures, Tally};

/// So many types of errors are told apart in a subscription; whatever comes later is `other`.
const TYPES: usize = 50;
/// The longest name of a type.
const LONGEST: usize = 100;
const OTHER: &str = "other";

impl Tally {
    pub(super) fn failed(&mut self, class: Class, failure: &Failure) {
        let error_type = failure.outermost().type_name.as_str();
        let error_type = if error_type.is_empty() { OTHER } else { error_type };
        let end = error_type.char_indices().nth(LONGEST).map_or(error_type.len(), |(end, _)| end);
        self.count_failure(class, &error_type[..end]);
    }

    fn count_failure(&mut self, class: Class, error_type: &str) {
        let has_room = self.failures.len() < TYPES || error_type == OTHER;
        let is_it = |one: &&mut Failures| one.class == class && *one.error_type == *error_type;
        match self.failures.iter_mut().find(is_it) {
            Some(found) => found.count += 1,
            None if has_room => {
                self.failures.push(Failures { class, error_type: error_type.into(), count: 1 });
            }
            None => self.count_failure(class, OTHER),
        }
    }

    pub(super) fn buried(&mut self, reason: Reason) {
        self.letters[reason as usize] += 1;
    }

    pub(super) fn dropped(&mut self, reason: Reason) {
        self.dropped[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::Cause;

    #[test]
    fn however_many_types_of_errors_there_are_few_are_told_apart() {
        let mut tally = Tally::default();
        for number in 0..10_000 {
            tally.failed(Class::Transient, &Failure::new(Cause::new(format!("Type{number}"), "x")));
            tally.failed(Class::Outage, &Failure::new(Cause::new("Same".repeat(1_000), "x")));
        }
        assert!(tally.failures.len() <= TYPES + 4, "{}", tally.failures.len());
        assert_eq!(tally.failures.iter().map(|one| one.count).sum::<u64>(), 20_000);
        assert!(tally.failures.iter().all(|one| one.error_type.len() <= LONGEST));
        let other = tally.failures.iter().find(|one| &*one.error_type == OTHER);
        assert_eq!(other.map(|one| (one.class, one.count)), Some((Class::Transient, 9_951)));
    }
}
