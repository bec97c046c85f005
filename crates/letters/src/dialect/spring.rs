//! Spring Kafka. The recoverer writes `kafka_dlt-...`, retry topics write the same fields as `kafka_...`.

use super::values::{Values, chain};
use crate::letter::Letter;
use redrive_core::Timestamp;

const FAMILIES: [&str; 2] = ["kafka_dlt-", "kafka_"];
const FIELDS: &[&str] = &[
    "original-topic",
    "original-partition",
    "original-offset",
    "original-timestamp",
    "original-timestamp-type",
    "original-consumer-group",
    "exception-fqcn",
    "exception-cause-fqcn",
    "exception-message",
    "exception-stacktrace",
    "key-exception-fqcn",
    "key-exception-message",
    "key-exception-stacktrace",
];

pub(super) fn marks(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.strip_prefix(family).is_some_and(|field| FIELDS.contains(&field)))
}

pub(super) fn owns(name: &str) -> bool {
    marks(name) || name.starts_with("retry_topic-") || name == "kafka_deliveryAttempt"
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    let named = |family: &str, field: &str| format!("{family}{field}");
    for family in FAMILIES {
        let source = &mut letter.source;
        source.topic = source.topic.take().or_else(|| values.first_text(&named(family, "original-topic")));
        source.partition =
            source.partition.or_else(|| values.first_int(&named(family, "original-partition")));
        source.offset = source.offset.or_else(|| values.first_long(&named(family, "original-offset")));
        let timestamp = source
            .timestamp
            .or_else(|| values.first_long(&named(family, "original-timestamp")).map(Timestamp::from_millis));
        source.timestamp = timestamp;
        let group = letter.group.take();
        letter.group = group.or_else(|| values.first_text(&named(family, "original-consumer-group")));
    }
    // Whoever wrote exceptions last replaced them; the recoverer's stand for what happened behind retries, too.
    for (family, kind) in FAMILIES.into_iter().flat_map(|family| [(family, ""), (family, "key-")]) {
        let text = |field: &str| values.text(&format!("{family}{kind}exception-{field}"));
        let (wrapper, cause, message) = (text("fqcn"), text("cause-fqcn"), text("message"));
        if letter.error_type.is_some() || (wrapper.is_none() && cause.is_none() && message.is_none()) {
            continue;
        }
        letter.chain = chain([(wrapper.as_ref(), message.as_ref()), (cause.as_ref(), None)]);
        // The outermost is Spring's own wrapper; its cause is what a person looks for.
        letter.error_type = cause.or(wrapper);
        letter.message = message;
        letter.stack = text("stacktrace");
    }
    letter.attempts = attempts(values);
    let began = values.minimal("retry_topic-original-timestamp").map(Timestamp::from_millis);
    letter.source.timestamp = letter.source.timestamp.or(began);
}

/// Four bytes; older ones wrote one. It is the number of the attempt to come: the first retry carries 2, and a letter
/// counts one attempt that nobody makes.
fn attempts(values: &mut Values<'_>) -> Option<u32> {
    let to_come = values.minimal("retry_topic-attempts");
    let made = to_come.and_then(|attempt| attempt.checked_sub(1));
    let made = made.or_else(|| values.int("kafka_deliveryAttempt").map(i64::from));
    made.and_then(|attempts| u32::try_from(attempts).ok())
}
