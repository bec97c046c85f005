//! The address, the paths, and what is answered on each.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::guard::Guard;
use crate::{Watched, answer, health, metrics, subscriptions};

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
pub struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    watched: Watched,
    guard: Guard,
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

    /// Tells of these subscriptions from now on.
    #[must_use]
    pub fn serve(self, watched: Watched) -> Serving {
        let shared = Arc::new(Shared { watched, guard: self.guard });
        let router = router(shared);
        let listener = self.listener;
        Serving(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                warn!(%error, "nothing is told over HTTP any more");
            }
        }))
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(scrape))
        .route("/api/v1/subscriptions", get(all))
        .route("/api/v1/subscriptions/{topic}/{*group}", get(one))
        .route_layer(middleware::from_fn_with_state(shared.clone(), with_token));
    Router::new()
        .route("/healthz", get(|| async { health::alive() }))
        .route("/readyz", get(ready))
        .merge(guarded)
        .fallback(|| async { answer::problem(StatusCode::NOT_FOUND, PATHS) })
        .method_not_allowed_fallback(|| async {
            answer::problem(StatusCode::METHOD_NOT_ALLOWED, "it can only be asked, with GET")
        })
        .layer(middleware::from_fn_with_state(shared.clone(), by_our_name))
        .with_state(shared)
}

const PATHS: &str = "there are /healthz, /readyz, /metrics and /api/v1/subscriptions";

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
    ([(header::CONTENT_TYPE, kind)], metrics::page(&shared.watched)).into_response()
}

async fn all(State(shared): State<Arc<Shared>>) -> Response {
    subscriptions::all(&shared.watched)
}

async fn one(
    State(shared): State<Arc<Shared>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match named {
        Ok(Path((topic, group))) => subscriptions::one(&shared.watched, &topic, &group),
        Err(error) => answer::problem(error.status(), &error.body_text()),
    }
}
