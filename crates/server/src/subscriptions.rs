//! `/api/v1/subscriptions`: the state of each as JSON.

use axum::http::StatusCode;
use axum::response::Response;
use redrive::{Class, Status};
use redrive_core::route::Reason;
use serde_json::{Map, Value, json};

use crate::{Subscription, Watched, answer, health};

pub(crate) fn all(watched: &Watched) -> Response {
    let all: Vec<Value> = watched.subscriptions.iter().map(shown).collect();
    answer::json(StatusCode::OK, &json!({ "subscriptions": all }))
}

pub(crate) fn one(watched: &Watched, topic: &str, group: &str) -> Response {
    let is_it = |one: &&Subscription| {
        let status = one.status.borrow();
        status.topic.as_str() == topic && status.group == group
    };
    match watched.subscriptions.iter().find(is_it) {
        Some(found) => answer::json(StatusCode::OK, &shown(found)),
        None => answer::problem(StatusCode::NOT_FOUND, "there is no such subscription in this process"),
    }
}

fn shown(subscription: &Subscription) -> Value {
    let status = subscription.status.borrow();
    let problems: Vec<Value> = status.problems.iter().map(health::shown).collect();
    let partitions: Vec<Value> = status
        .marks
        .iter()
        .map(|(partition, mark)| json!({ "partition": partition, "mark": mark }))
        .collect();
    let paused = status
        .paused
        .as_ref()
        .map(|pause| json!({ "by": pause.by, "reason": pause.reason, "since_ms": pause.since.millis() }));
    json!({
        "name": subscription.name,
        "topic": status.topic.as_str(),
        "group": status.group,
        "state": status.state.name(),
        "ready": status.is_ready(),
        "paused": paused,
        "problems": problems,
        "partitions": partitions,
        "lag": status.lag,
        "running": status.running,
        "in_memory": status.in_memory,
        "totals": totals(&status),
        "waiting": waiting(&status),
        "loss_percent": f64::from(status.loss) / 1_000.0,
    })
}

fn totals(status: &Status) -> Value {
    let counts = &status.counts;
    let failed: Map<String, Value> = Class::ALL
        .into_iter()
        .map(|class| (class.name().to_owned(), counts.failed[class as usize].into()))
        .collect();
    let letters: Map<String, Value> = Reason::ALL
        .into_iter()
        .map(|reason| (reason.name().to_owned(), status.tally.letters[reason as usize].into()))
        .collect();
    json!({
        "consumed": counts.consumed,
        "attempts": counts.attempts,
        "handled": counts.handled,
        "failed": failed,
        "shelved": counts.shelved,
        "released": counts.released,
        "letters": letters,
        "dropped": counts.dropped,
        "publish_errors": status.publish_errors,
    })
}

fn waiting(status: &Status) -> Value {
    json!({
        "records": status.shelf.waiting,
        "bytes": status.shelf.waiting_bytes,
        "lanes_closed": status.shelf.lanes_closed,
    })
}
