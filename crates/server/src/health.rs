//! Whether the process lives, and whether it is ready; if not, why and what mends it.

use axum::http::StatusCode;
use axum::response::Response;
use redrive::{Problem, State, Status};
use serde_json::{Value, json};

use crate::{Subscription, Watched, answer};

/// It answers, so it lives.
pub(crate) fn alive() -> Response {
    answer::json(StatusCode::OK, &json!({ "alive": true }))
}

/// Whether every subscription runs and nothing is wrong with any. `whole` tells what is.
pub(crate) fn ready(watched: &Watched, whole: bool) -> Response {
    let reasons: Vec<Value> = watched.subscriptions.iter().flat_map(reasons).collect();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = match whole {
        true => json!({ "ready": reasons.is_empty(), "reasons": reasons }),
        false => json!({ "ready": reasons.is_empty() }),
    };
    answer::json(status, &body)
}

fn reasons(subscription: &Subscription) -> Vec<Value> {
    let status = subscription.status.borrow();
    if status.is_ready() {
        return Vec::new();
    }
    let mut reasons: Vec<Value> = status.problems.iter().map(|one| reason(&status, one)).collect();
    if reasons.is_empty() {
        let what = match status.state {
            State::Stopped => "it has stopped",
            State::Starting | State::Running | State::Failed => "it has not started yet",
        };
        let problem = Problem {
            kind: status.state.name(),
            partition: None,
            what: what.to_owned(),
            remedy: "wait for it".to_owned(),
        };
        reasons.push(reason(&status, &problem));
    }
    reasons
}

fn reason(status: &Status, problem: &Problem) -> Value {
    let mut value = shown(problem);
    value["topic"] = status.topic.as_str().into();
    value["group"] = status.group.as_str().into();
    value
}

/// A problem as JSON.
pub(crate) fn shown(problem: &Problem) -> Value {
    json!({
        "kind": problem.kind,
        "partition": problem.partition,
        "what": problem.what,
        "remedy": problem.remedy,
    })
}
