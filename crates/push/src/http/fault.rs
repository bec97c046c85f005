//! What goes wrong where there is no answer, and its class: an endpoint that cannot be reached is an outage.

use std::error::Error;
use std::io;

use redrive::{Cause, Class, Failure};
use redrive_core::settings::Endpoint;

use super::connect::NoConnection;
use super::wire::Lost;

/// The failure that a request without an answer stands for.
pub(super) fn unanswered(endpoint: &Endpoint, error: &(dyn Error + 'static)) -> Failure {
    let (code, what) = code(error);
    // Why TLS fails is what a person has to know first.
    let why = causes(error).find_map(|cause| cause.downcast_ref::<NoConnection>());
    match why.filter(|_| code == "tls") {
        Some(why) => told(endpoint, code, &why.to_string(), error),
        None => told(endpoint, code, what, error),
    }
}

/// The failure of a request whose answer broke off where it was needed.
pub(super) fn broken_off(endpoint: &Endpoint, error: &(dyn Error + 'static)) -> Failure {
    told(endpoint, "reset", "the connection broke before the answer was complete", error)
}

/// A failure that is known by its code.
pub(super) fn coded(code: &str, message: String, class: Class) -> Failure {
    let cause = Cause { code: Some(code.to_owned()), ..Cause::new(format!("http.{code}"), message) };
    Failure::new(cause).presumably(class)
}

fn told(endpoint: &Endpoint, code: &str, what: &str, error: &(dyn Error + 'static)) -> Failure {
    let mut failure = coded(code, format!("{endpoint}: {what}"), Class::Outage);
    for inner in causes(error) {
        failure = failure.caused_by(Cause::new(kind(inner), inner.to_string()));
    }
    failure
}

/// What lies inside an error, from the outside in.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let this = next?;
        next = this.source();
        Some(this)
    })
}

fn kind(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<io::Error>() {
        Some(error) => format!("io.{:?}", error.kind()),
        None => "Error".to_owned(),
    }
}

/// What a fault is called, and in words.
fn code(error: &(dyn Error + 'static)) -> (&'static str, &'static str) {
    if let Some(no_connection) = causes(error).find_map(|cause| cause.downcast_ref::<NoConnection>()) {
        return match no_connection {
            NoConnection::Name { .. } => ("dns", "its name is not known"),
            NoConnection::Tls(_) => ("tls", "no TLS"),
            NoConnection::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => ("refused", "connection refused"),
                // Of a Unix socket.
                io::ErrorKind::NotFound => ("refused", "there is no such socket"),
                _ => ("unreachable", "it cannot be reached"),
            },
        };
    }
    if causes(error).any(<dyn Error>::is::<io::Error>) {
        return ("reset", "the connection broke before the answer came");
    }
    if let Some(lost) = causes(error).find_map(|cause| cause.downcast_ref::<Lost>()) {
        return match lost {
            Lost::Closed | Lost::Broke(_) => ("reset", "the connection was closed before the answer came"),
            Lost::Parse(_) | Lost::NotHttp(_) => ("protocol", "what it answers is not HTTP"),
        };
    }
    match causes(error).find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
        Some(error) if error.is_parse() => ("protocol", "what it answers is not HTTP"),
        Some(error) if error.is_incomplete_message() || error.is_closed() || error.is_canceled() => {
            ("reset", "the connection was closed before the answer came")
        }
        _ => ("protocol", "the request could not be carried out"),
    }
}
