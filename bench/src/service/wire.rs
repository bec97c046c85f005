//! Plain HTTP: the load client, which is as bare as it can be, and a question to the endpoint.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Outcome;

/// What a request of Redrive carries for a record of the load.
const HEADERS: [(&str, &str); 13] = [
    ("ce-id", "bench-load-12345/11/123456"),
    ("ce-specversion", "1.0"),
    ("ce-source", "/kafka/bench-load-12345"),
    ("ce-type", "redrive.record"),
    ("ce-time", "2027-01-15T08:00:00.123Z"),
    ("ce-subject", "key-1234"),
    ("redrive-topic", "bench-load-12345"),
    ("redrive-partition", "11"),
    ("redrive-offset", "123456"),
    ("redrive-attempt", "1"),
    ("redrive-key", "key-1234"),
    ("content-type", "application/octet-stream"),
    ("user-agent", "redrive/0.1.0"),
];

async fn connect(address: &str) -> Outcome<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// So many requests over so many kept connections, one after the other on each.
pub(crate) async fn load(address: &str, requests: u64, concurrency: usize, size: usize) -> Outcome<()> {
    let mut headers = HeaderMap::new();
    headers.insert("host", address.parse()?);
    for (name, value) in HEADERS {
        headers.insert(name, value.parse()?);
    }
    let body = Bytes::from(vec![b'v'; size]);
    let mut all = tokio::task::JoinSet::new();
    for connection in 0..concurrency as u64 {
        let mut sender = connect(address).await?;
        let (headers, body) = (headers.clone(), body.clone());
        let share = requests / concurrency as u64 + u64::from(connection < requests % concurrency as u64);
        all.spawn(async move {
            for _ in 0..share {
                let mut request = Request::new(Full::new(body.clone()));
                *request.method_mut() = Method::POST;
                *request.uri_mut() = hyper::Uri::from_static("/records");
                *request.headers_mut() = headers.clone();
                let answer = sender.send_request(request).await?;
                answer.into_body().collect().await?;
                sender.ready().await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(ended) = all.join_next().await {
        ended??;
    }
    Ok(())
}

/// What the endpoint has seen.
pub(crate) struct Seen {
    pub(crate) count: u64,
    /// Requests a second, from the first to the last.
    pub(crate) rate: f64,
    /// Milliseconds in which half, 99% and all came.
    pub(crate) ages: [f64; 3],
}

pub(crate) async fn seen(address: &str) -> Outcome<Seen> {
    let mut sender = connect(address).await?;
    let request = Request::builder().uri("/seen").header("host", address).body(Full::default())?;
    let body = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
    let numbers: Vec<u64> =
        std::str::from_utf8(&body)?.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [count, first, last, p50, p99, all] = numbers[..] else { return Err("six numbers".into()) };
    let seconds = last.saturating_sub(first).max(1) as f64 / 1e9;
    let ages = [p50, p99, all].map(|nanos| nanos as f64 / 1e6);
    Ok(Seen { count, rate: count as f64 / seconds, ages })
}
