//! Kafka Streams: `__streams.errors.`, all of it text. The record's timestamp is the original one.

use super::values::{Values, chain};
use crate::letter::Letter;

const PREFIX: &str = "__streams.errors.";

pub(super) fn owns(name: &str) -> bool {
    name.starts_with(PREFIX)
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    letter.source.topic = values.text("__streams.errors.topic");
    letter.source.partition = values.number("__streams.errors.partition");
    letter.source.offset = values.number("__streams.errors.offset");
    letter.source.timestamp = letter.timestamp;
    letter.error_type = values.text("__streams.errors.exception");
    letter.message = values.text("__streams.errors.message");
    letter.stack = values.text("__streams.errors.stacktrace");
    letter.chain = chain([(letter.error_type.as_ref(), letter.message.as_ref()), (None, None)]);
}
