//! The endpoint: takes every record, does nothing, and knows when the first and the last came.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::{Outcome, clock};

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    /// How old what is in the body was, in nanoseconds.
    ages: Mutex<Vec<u64>>,
}

/// Serves until it is killed; says where on stdout.
pub(crate) async fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let seen = Arc::new(Seen::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let seen = seen.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&seen, request));
            // Whoever hangs up has gone.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(seen: &Seen, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let at = clock::nanos();
    let path = request.uri().path().to_owned();
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    match path.as_str() {
        "/seen" => return Ok(Response::new(Full::from(seen.told()))),
        "/ages" => seen.note(at, &body),
        _ => {}
    }
    if seen.count.fetch_add(1, Ordering::Relaxed) == 0 {
        seen.first.store(at, Ordering::Relaxed);
    }
    seen.last.fetch_max(at, Ordering::Relaxed);
    Ok(Response::new(Full::default()))
}

impl Seen {
    /// The body begins with the time at which it was made.
    fn note(&self, at: u64, body: &[u8]) {
        let made = body.get(..19).and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        let Some(made) = made else { return };
        self.ages.lock().unwrap_or_else(PoisonError::into_inner).push(at.saturating_sub(made));
    }

    /// Count, first, last, and the ages that half, 99% and all of them had at most.
    fn told(&self) -> String {
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.sort_unstable();
        let share = |of: usize| ages.get((ages.len() * of / 1_000).min(ages.len().saturating_sub(1)));
        let ages = [500, 990, 1_000].map(|of| share(of).copied().unwrap_or_default());
        let counts = [&self.count, &self.first, &self.last].map(|one| one.load(Ordering::Relaxed));
        let all: Vec<String> = counts.iter().chain(&ages).map(u64::to_string).collect();
        all.join(" ")
    }
}
