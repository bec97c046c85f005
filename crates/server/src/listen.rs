//! The address, the paths, and what is answered on each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::desk::{Desk, Letters};
use crate::guard::Guard;
use crate::{Watched, answer, api, health, metrics, subscriptions};

/// Why nothing is told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Everyone could ask.
    #[error("cannot listen on {address}: others can reach it, and there is no token to keep them out")]
    Open {
        /// Which.
        address: SocketAddr,
    },
}

/// An address that is taken, on which nothing is told yet.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

/// It tells, until this is dropped.
pub struct Serving {
    tasks: Vec<JoinHandle<()>>,
    desk: Option<Arc<Desk>>,
}

impl Serving {
    /// Tells nothing more. Replays that run here end what is on its way, for so long; others can go on with them.
    pub async fn stop(self, patience: Duration) {
        self.tasks.iter().for_each(JoinHandle::abort);
        if let Some(desk) = &self.desk {
            desk.stop(patience).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

pub(crate) struct Shared {
    watched: Watched,
    guard: Guard,
    /// Where letters are dealt with, or why they are not.
    pub(crate) desk: Result<Arc<Desk>, String>,
}

impl Listener {
    /// Takes the address. One that others can reach is refused without a token.
    pub async fn bind(address: SocketAddr, token: Option<String>) -> Result<Self, Error> {
        let is_loopback = address.ip().is_loopback();
        if token.is_none() && !is_loopback {
            return Err(Error::Open { address });
        }
        let failed = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, guard: Guard::new(token, is_loopback) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells of these subscriptions from now on, and deals with letters; or says why it does not.
    #[must_use]
    pub fn serve(self, watched: Watched, letters: Result<Letters, String>) -> Serving {
        let desk = letters.map(|letters| Arc::new(Desk::new(letters)));
        let known = desk.clone().ok();
        let router = router(Arc::new(Shared { watched, guard: self.guard, desk }));
        let listener = self.listener;
        let mut tasks = vec![tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                warn!(%error, "nothing is told over HTTP any more");
            }
        })];
        tasks.extend(known.clone().map(|desk| tokio::spawn(desk.follow())));
        Serving { tasks, desk: known }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let metrics = Router::new().route("/metrics", get(scrape));
    let guarded = api::routes()
        .into_iter()
        .fold(metrics, |router, route| router.route(route.path, route.handler))
        .route_layer(middleware::from_fn(by_own_page))
        .route_layer(middleware::from_fn_with_state(shared.clone(), with_token));
    Router::new()
        .route("/healthz", get(|| async { health::alive() }))
        .route("/readyz", get(ready))
        .merge(guarded)
        .fallback(|| async { answer::problem(StatusCode::NOT_FOUND, PATHS) })
        .method_not_allowed_fallback(|| async {
            answer::problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "GET asks, POST changes; /api/v1/openapi.json tells what",
            )
        })
        .layer(middleware::from_fn_with_state(shared.clone(), by_our_name))
        .with_state(shared)
}

const PATHS: &str =
    "there are /healthz, /readyz, /metrics and /api/v1/..., which /api/v1/openapi.json tells of";

/// Changes come from programs, or from pages of this process, and as JSON, which no form of a page can send.
async fn by_own_page(request: Request, next: Next) -> Response {
    let headers = request.headers();
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    if !Guard::is_own_page(headers) {
        return answer::problem(
            StatusCode::FORBIDDEN,
            "a page of another site asks for it; changes come from programs, or from pages of this process",
        );
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return answer::problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "changes are sent as JSON: Content-Type: application/json",
        );
    }
    next.run(request).await
}

async fn with_token(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if shared.guard.admits(request.headers()) {
        return next.run(request).await;
    }
    let refused = answer::problem(
        StatusCode::UNAUTHORIZED,
        "the token of this process is needed: Authorization: Bearer TOKEN",
    );
    ([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response()
}

async fn by_our_name(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if shared.guard.is_ours(host) {
        return next.run(request).await;
    }
    answer::problem(
        StatusCode::MISDIRECTED_REQUEST,
        "this process only answers to localhost; behind another name it needs server.token",
    )
}

async fn ready(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    health::ready(&shared.watched, shared.guard.admits(&headers))
}

async fn scrape(State(shared): State<Arc<Shared>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let at_risk = shared.desk.as_ref().map(|desk| desk.at_risk()).unwrap_or_default();
    ([(header::CONTENT_TYPE, kind)], metrics::page(&shared.watched, &at_risk)).into_response()
}

pub(crate) async fn all(State(shared): State<Arc<Shared>>) -> Response {
    subscriptions::all(&shared.watched)
}

pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match named {
        Ok(Path((topic, group))) => subscriptions::one(&shared.watched, &topic, &group),
        Err(error) => answer::problem(error.status(), &error.body_text()),
    }
}
