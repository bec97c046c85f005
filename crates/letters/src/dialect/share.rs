//! Share groups: `__dlq.errors.`, all of it text. The payload is there only where the group copies it.

use super::values::Values;
use crate::letter::Letter;

const PREFIX: &str = "__dlq.errors.";

pub(super) fn owns(name: &str) -> bool {
    name.starts_with(PREFIX)
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    letter.source.topic = values.text("__dlq.errors.topic");
    letter.source.partition = values.number("__dlq.errors.partition");
    letter.source.offset = values.number("__dlq.errors.offset");
    letter.group = values.text("__dlq.errors.group");
    letter.attempts = values.number("__dlq.errors.delivery.count");
    letter.message = values.text("__dlq.errors.message");
    if letter.payload.is_none() {
        letter.pointer = letter.origin();
    }
}
