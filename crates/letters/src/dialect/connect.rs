//! Kafka Connect: `__connect.errors.`, all of it text. The record's timestamp is the original one.

use super::values::{Values, chain};
use crate::letter::Letter;

const PREFIX: &str = "__connect.errors.";

pub(super) fn owns(name: &str) -> bool {
    name.starts_with(PREFIX)
}

pub(super) fn read(values: &mut Values<'_>, letter: &mut Letter) {
    letter.source.topic = values.text("__connect.errors.topic");
    letter.source.partition = values.number("__connect.errors.partition");
    letter.source.offset = values.number("__connect.errors.offset");
    letter.source.timestamp = letter.timestamp;
    let connector = values.text("__connect.errors.connector.name");
    // As the group of a sink connector is named, unless it is told otherwise.
    letter.group = connector.as_ref().map(|name| format!("connect-{name}"));
    letter.service = connector;
    letter.instance = values.text("__connect.errors.task.id");
    let (stage, class) = (values.text("__connect.errors.stage"), values.text("__connect.errors.class.name"));
    letter.handler = match (stage, class) {
        (Some(stage), Some(class)) => Some(format!("{stage} {class}")),
        (stage, class) => stage.or(class),
    };
    letter.error_type = values.text("__connect.errors.exception.class.name");
    letter.message = values.text("__connect.errors.exception.message");
    letter.stack = values.text("__connect.errors.exception.stacktrace");
    letter.chain = chain([(letter.error_type.as_ref(), letter.message.as_ref()), (None, None)]);
}
