//! A handler in words: what is called, without its credentials.

use redrive_config::Handler;

/// Who handles the records.
pub(crate) fn handler(handler: Option<&Handler>) -> String {
    match handler {
        Some(Handler::Http(http)) => http.url.to_string(),
        // Its arguments may be secrets.
        Some(Handler::Command(command)) => format!("the program {}", command.program),
        None => "the program that brings its own handler".to_owned(),
    }
}

/// What a handler does that no transaction of Kafka's can take back.
pub(crate) fn side_effects(handler: Option<&Handler>) -> &'static str {
    match handler {
        Some(Handler::Http(_)) => "what the endpoint does itself",
        Some(Handler::Command(_)) => "what the program does itself",
        None => "what the handler does itself",
    }
}
