//! Handlers that are not written in Rust, and whom to notify: what the configuration file names.
//!
//! A record comes in and goes out to an HTTP endpoint or to a program; its answer comes back as success or as a failure with
//! everything that a classification may ask for. docs/http.md is the contract for the other side. Nothing here
//! decides what becomes of a record, and no secret is ever shown.
#![warn(missing_docs)]

mod command;
mod escape;
mod http;
mod leaving;
mod line;
mod notify;
mod outcome;
mod traces;

use redrive::Subscription;
use redrive_config::Handler;

use notify::Notifier;

pub use traces::Traces;

/// A handler that the configuration names and that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{subscription}: {what}; {remedy}")]
pub struct BadHandler {
    /// Whose handler it is: `TOPIC as GROUP`; `traces` if it is the collector.
    pub subscription: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// What is wrong, and its remedy, before it is known whose it is.
type Wrong = (String, String);

/// The subscription of the configuration file with the handler and the listeners that the file names.
///
/// Files that it names are read here, so that what cannot work is refused before anything runs.
pub fn handled(subscription: &redrive_config::Subscription) -> Result<Subscription, BadHandler> {
    handled_with(subscription, None)
}

/// The same, with a span for each attempt.
pub fn traced(
    subscription: &redrive_config::Subscription,
    traces: &Traces,
) -> Result<Subscription, BadHandler> {
    handled_with(subscription, Some(traces))
}

fn handled_with(
    subscription: &redrive_config::Subscription,
    traces: Option<&Traces>,
) -> Result<Subscription, BadHandler> {
    let tracer = traces.map(|traces| traces.tracer(subscription));
    let bad = |(what, remedy): Wrong| BadHandler {
        subscription: format!("{} as {}", subscription.topic, subscription.group),
        what,
        remedy,
    };
    let mut configured = Subscription::configured(subscription.clone());
    if let Some(notify) = &subscription.notify {
        configured = configured.listener(Notifier::new(notify, &subscription.group).map_err(bad)?);
    }
    match &subscription.handler {
        Some(Handler::Http(http)) => http::handled(configured, http, subscription, tracer).map_err(bad),
        Some(Handler::Command(command)) => {
            command::handled(configured, command, &subscription.group, tracer).map_err(bad)
        }
        None => Err(bad((
            "no handler is named".to_owned(),
            "write handler.http.url = \"http://HOST:PORT/PATH\"".to_owned(),
        ))),
    }
}

/// Waits until what the handlers leave behind is done: their programs end, being asked to and then made to, and
/// the last events are posted, or dropped after a few seconds. Whoever does not wait for it at the end of the
/// process ends programs at once and loses events.
pub async fn stopped() {
    leaving::nobody().await;
}

/// How many events of `notify` were dropped since the start, of all subscriptions.
#[must_use]
pub fn dropped_events() -> u64 {
    notify::dropped()
}

/// How many spans the collector did not get since the start, of all subscriptions.
#[must_use]
pub fn dropped_spans() -> u64 {
    traces::dropped()
}

/// A duration in words.
fn duration(time: std::time::Duration) -> String {
    redrive_core::duration::print(time)
}
