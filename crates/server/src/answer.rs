//! Answers as JSON, and what is wrong with a question as problem+json (RFC 9457).

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An answer as JSON.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    let kind = "application/json";
    (status, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], format!("{body}\n"))
        .into_response()
}

/// Why there is no answer.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("error");
    let body = json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
    });
    let kind = "application/problem+json";
    (status, [(header::CONTENT_TYPE, kind)], format!("{body}\n")).into_response()
}
