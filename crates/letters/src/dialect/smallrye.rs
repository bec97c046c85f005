//! SmallRye Reactive Messaging: `dead-letter-...` and, behind delayed retries, `delayed-retry-...`; all text.

use super::values::{Values, chain};
use crate::letter::Letter;

const DEAD: &[&str] =
    &["exception-class-name", "cause-class-name", "reason", "cause", "topic", "partition", "offset"];

pub(super) fn owns(name: &str) -> bool {
    name.starts_with("delayed-retry-")
        || name.strip_prefix("dead-letter-").is_some_and(|field| DEAD.contains(&field))
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    // Behind delayed retries the letter's own fields name the retry topic.
    letter.source.topic = values.text("delayed-retry-topic").or_else(|| values.text("dead-letter-topic"));
    letter.source.partition =
        values.number("delayed-retry-partition").or_else(|| values.number("dead-letter-partition"));
    letter.source.offset =
        values.number("delayed-retry-offset").or_else(|| values.number("dead-letter-offset"));
    letter.source.timestamp = values.moment("delayed-retry-original-timestamp");
    letter.first_failed_at = values.moment("delayed-retry-first-processing-timestamp");
    letter.attempts = values.number("delayed-retry-count");
    let outer = (values.text("dead-letter-exception-class-name"), values.text("dead-letter-reason"));
    let inner = (values.text("dead-letter-cause-class-name"), values.text("dead-letter-cause"));
    letter.chain = chain([(outer.0.as_ref(), outer.1.as_ref()), (inner.0.as_ref(), inner.1.as_ref())]);
    letter.error_type = outer.0.or(inner.0);
    letter.message = outer.1.or(inner.1);
}
