//! Spring Cloud Stream: `x-original-...`, numbers in binary, and `x-exception-...`.

use super::values::{Values, chain};
use crate::letter::Letter;
use redrive_core::Timestamp;

pub(super) fn owns(name: &str) -> bool {
    matches!(
        name,
        "x-original-topic"
            | "x-original-partition"
            | "x-original-offset"
            | "x-original-timestamp"
            | "x-original-timestamp-type"
            | "x-exception-fqcn"
            | "x-exception-message"
            | "x-exception-stacktrace"
    )
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    letter.source.topic = values.text("x-original-topic");
    letter.source.partition = values.int("x-original-partition");
    letter.source.offset = values.long("x-original-offset");
    letter.source.timestamp = values.long("x-original-timestamp").map(Timestamp::from_millis);
    letter.error_type = values.text("x-exception-fqcn");
    letter.message = values.text("x-exception-message");
    letter.stack = values.text("x-exception-stacktrace");
    letter.chain = chain([(letter.error_type.as_ref(), letter.message.as_ref()), (None, None)]);
    // The topic is `error.<destination>.<group>`.
    let group = letter.source.topic.as_deref().and_then(|topic| {
        letter.at.topic.as_str().strip_prefix("error.")?.strip_prefix(topic)?.strip_prefix('.')
    });
    letter.group = group.map(ToOwned::to_owned);
}
