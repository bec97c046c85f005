//! The headers that the how-tos have people write: those of a delay service, and those of a hand-made retry.
//! Some of these names are so plain that they are taken for theirs only beside one that is not.

use super::values::Values;
use crate::letter::Letter;

pub(super) fn marks(name: &str) -> bool {
    matches!(
        name,
        "X_DELAY_ROUTE"
            | "X_DELAY_COUNTER"
            | "X_DELAY_REASON"
            | "dlq-reason"
            | "dlq-time"
            | "failure-reason"
            | "failure-time"
            | "exception-class"
    )
}

pub(super) fn owns(name: &str) -> bool {
    marks(name) || matches!(name, "retry-count" | "original-topic" | "reprocessed-from" | "reprocessed-at")
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    // Each retry adds its own: the first names the topic where it all began.
    letter.source.topic = values.first_text("original-topic");
    letter.attempts = values.number("retry-count").or_else(|| values.number("X_DELAY_COUNTER"));
    letter.error_type = values.text("exception-class");
    // What the error said comes before what was made of it ("too many retries").
    let reasons = ["failure-reason", "dlq-reason", "X_DELAY_REASON"];
    letter.message = reasons.into_iter().find_map(|name| values.text(name));
    letter.first_failed_at = values.first_moment("failure-time");
    letter.buried_at = values.moment("dlq-time").or_else(|| values.moment("failure-time"));
}
