//! `/api/v1`: what the command line does with letters, groups, replays and waiting records, over HTTP.

mod delayed;
mod groups;
mod letters;
mod openapi;
pub(crate) mod replays;
mod resolve;
mod schemas;

use std::sync::Arc;

use axum::extract::Path;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use bytes::Bytes;
use redrive_core::Origin;

use crate::desk::Desk;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;
use crate::{answer, listen};

/// An answer, or why there is none.
pub(crate) type Answer = Result<Response, Problem>;

/// Something that can be asked or done.
pub(crate) struct Route {
    #[cfg_attr(not(test), expect(dead_code, reason = "the document is compared with it"))]
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) handler: MethodRouter<Arc<Shared>>,
}

/// Everything that there is.
pub(crate) fn routes() -> Vec<Route> {
    let asked = |path, handler| Route { method: "get", path, handler };
    let done = |path, handler| Route { method: "post", path, handler };
    vec![
        asked("/api/v1/openapi.json", get(document)),
        asked("/api/v1/subscriptions", get(listen::all)),
        asked("/api/v1/subscriptions/{topic}/{*group}", get(listen::one)),
        asked("/api/v1/letters", get(letters::list)),
        asked("/api/v1/letters/{topic}/{partition}/{offset}", get(letters::show)),
        asked("/api/v1/letters/{topic}/{partition}/{offset}/payload", get(letters::payload)),
        done("/api/v1/letters/resolve", post(resolve::resolve)),
        asked("/api/v1/groups", get(groups::list)),
        done("/api/v1/groups/{id}", post(groups::say)),
        asked("/api/v1/stats", get(groups::stats)),
        asked("/api/v1/replays", get(replays::list)),
        done("/api/v1/replays", post(replays::begin::begin)),
        asked("/api/v1/replays/{id}", get(replays::show)),
        done("/api/v1/replays/{id}/pause", post(replays::change::pause)),
        done("/api/v1/replays/{id}/resume", post(replays::change::resume)),
        done("/api/v1/replays/{id}/cancel", post(replays::change::cancel)),
        asked("/api/v1/delayed", get(delayed::list)),
        done("/api/v1/delayed/{topic}/{partition}/{offset}/release", post(delayed::release)),
        done("/api/v1/delayed/{topic}/{partition}/{offset}/reschedule", post(delayed::reschedule)),
        done("/api/v1/delayed/{topic}/{partition}/{offset}/cancel", post(delayed::cancel)),
    ]
}

async fn document() -> Response {
    answer::json(StatusCode::OK, &openapi::document())
}

/// Where letters are dealt with; or why they are not here.
fn desk(shared: &Shared) -> Result<&Arc<Desk>, Problem> {
    shared.desk.as_ref().map_err(|why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.clone()))
}

/// A record that is named in a path.
type Named = Result<Path<(String, String, String)>, PathRejection>;

fn place(named: Named) -> Result<Origin, Problem> {
    let Path((topic, partition, offset)) = named.map_err(|error| Problem::bad(error.body_text()))?;
    let text = format!("{topic}/{partition}/{offset}");
    text.parse().map_err(|error| {
        Problem::bad(format!("`{text}` names no record: {error}; write topic/partition/offset"))
    })
}

/// The document that a change comes with.
fn body(body: Result<Bytes, BytesRejection>) -> Result<Given, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    Given::in_body(&body)
}
