//! Records pushed to an HTTP endpoint: one request each, or several in a batch.

mod answer;
mod batch;
mod connect;
pub(crate) mod event;
mod fault;
mod sign;
mod tls;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use redrive::{Class, Clock, Failure, Handler, Received, Subscription};
use redrive_config::{Batch, Credentials, Http};
use redrive_core::mask::{Hidden, Mask};
use redrive_core::settings::{Endpoint, HttpVersion, Tombstones};

use crate::Wrong;
use crate::traces::{Carried, Carry, Traced, Tracer};
use answer::Answer;
use batch::Batches;
use connect::Connect;
use sign::Signer;

/// A connection that nobody uses is closed after this time.
const IDLE: Duration = Duration::from_secs(30);
/// How often an HTTP/2 connection in use is asked whether it is still there, and how long it may take to say so.
const ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5));
/// How long a body may take behind its head.
const BODY: Duration = Duration::from_secs(1);

/// Gives the subscription its endpoint.
pub(crate) fn handled(
    configured: Subscription,
    http: &Http,
    subscription: &redrive_config::Subscription,
    tracer: Option<Tracer>,
) -> Result<Subscription, Wrong> {
    let push = Push {
        client: Caller::new(http)?,
        group: subscription.group.clone(),
        timeouts: [subscription.timeout, subscription.retry_timeout],
        tombstones: http.tombstones,
        max_body: http.max_body.get(),
    };
    // An endpoint that repeats what it was sent must not have it written down.
    let mask = Mask { texts: secrets(http), ..subscription.mask.clone() };
    let configured = configured.handler_name(http.url.to_string()).mask(mask);
    Ok(match (http.batch, tracer) {
        (None, None) => configured.handler(push),
        (None, Some(tracer)) => configured.handler(Traced { handler: push, tracer }),
        (Some(Batch { records, format }), None) => {
            configured.batch_handler(records, Batches { push, format })
        }
        (Some(Batch { records, format }), Some(tracer)) => {
            configured.batch_handler(records, Traced { handler: Batches { push, format }, tracer })
        }
    })
}

/// Calls one endpoint, over connections that are kept.
pub(crate) struct Caller {
    client: Client<Connect, Full<Bytes>>,
    endpoint: Endpoint,
    uri: Uri,
    /// What every request carries.
    headers: HeaderMap,
    signer: Option<Signer>,
    max_answer: usize,
    clock: Clock,
}

/// The handler: a request for each record.
struct Push {
    client: Caller,
    group: String,
    /// Of first tries and of retries.
    timeouts: [Duration; 2],
    tombstones: Tombstones,
    max_body: u64,
}

impl Caller {
    pub(crate) fn new(http: &Http) -> Result<Self, Wrong> {
        let endpoint = http.url.clone();
        let bad_url = |error: String| (format!("url: {error}"), "write http://HOST:PORT/PATH".to_owned());
        let tls = tls::config(http)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", endpoint.authority(), endpoint.path);
        let uri = uri.parse().map_err(|error| bad_url(format!("{endpoint} cannot be called: {error}")))?;
        let connect = Connect::new(&endpoint.place, tls).map_err(bad_url)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_only(http.version == HttpVersion::Two)
            .http2_adaptive_window(true)
            .http2_keep_alive_interval(ALIVE.0)
            .http2_keep_alive_timeout(ALIVE.1)
            .build(connect);
        Ok(Self {
            client,
            endpoint,
            uri,
            headers: always(http)?,
            signer: http.signature_secret.as_ref().map(Signer::new),
            max_answer: usize::try_from(http.max_answer.get()).unwrap_or(usize::MAX),
            clock: Clock::system(),
        })
    }

    /// Sends a request; what comes back is an answer's head, or the failure that there is none. If the future
    /// is dropped, so is the request, with its connection.
    async fn send(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<hyper::body::Incoming>, Failure> {
        if let Some(signer) = &self.signer {
            let at = self.clock.now().wall.millis() / 1_000;
            let id = headers.get("ce-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
            let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
            let signature = signer.signature(at, path, id, headers.contains_key("redrive-tombstone"), &body);
            headers.extend(HeaderValue::try_from(signature).ok().map(|value| (SIGNATURE, value)));
        }
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let length = body.len();
        let mut request = Request::new(Full::new(body));
        // Also where there is no body, which many a server would wait for otherwise.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        self.client.request(request).await.map_err(|error| fault::unanswered(&self.endpoint, &error))
    }

    /// Sends a request and reads its answer. The worker gives the attempt `timeout`; within it the body may take
    /// as long as `patience` behind its head, which has said already what counts most.
    async fn call(
        &self,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let began = self.clock.now().steady;
        let response = self.send(headers, body).await?;
        let until = began.saturating_add(timeout / 10 * 9);
        let until = until.min(self.clock.now().steady.saturating_add(patience));
        Ok(Answer::read(response, self.max_answer, &self.clock, until).await)
    }

    /// Posts something that no record depends on; what comes back is the body of a good answer.
    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, Failure> {
        let answer = self.call(headers, body, timeout, BODY).await?;
        answer.outcome(self.clock.now().wall).result("http")?;
        Ok(answer.body)
    }
}

const SIGNATURE: HeaderName = HeaderName::from_static("redrive-signature");

/// What is sent with every request and is nobody else's business. Very short ones would hide half of every text.
fn secrets(http: &Http) -> Vec<Hidden> {
    let mut secrets: Vec<String> = http.headers.iter().map(|header| header.value.clone()).collect();
    secrets.extend(http.signature_secret.as_ref().map(|secret| secret.0.clone()));
    match &http.credentials {
        Some(Credentials::Bearer(token)) => secrets.push(token.0.clone()),
        Some(Credentials::Basic(pair)) => {
            secrets.push(STANDARD.encode(&pair.0));
            secrets.extend(pair.0.split_once(':').map(|(_, password)| password.to_owned()));
        }
        None => {}
    }
    secrets.into_iter().filter(|secret| secret.len() >= 4).map(Hidden).collect()
}

/// The headers that every request to this endpoint carries. Their values are not shown, whatever is wrong.
fn always(http: &Http) -> Result<HeaderMap, Wrong> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("redrive/", env!("CARGO_PKG_VERSION"))));
    let (key, authorization) = match &http.credentials {
        None => ("", None),
        Some(Credentials::Bearer(token)) => ("bearer", Some(format!("Bearer {}", token.0))),
        Some(Credentials::Basic(pair)) => ("basic", Some(format!("Basic {}", STANDARD.encode(&pair.0)))),
    };
    let authorization = authorization.map(|value| (key, AUTHORIZATION.as_str(), value));
    let more = http.headers.iter().map(|header| ("headers", header.name.as_str(), header.value.clone()));
    for (key, name, value) in more.chain(authorization) {
        let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            let what = format!("{key}: this holds a character that a header cannot carry");
            return Err((what, "look for line breaks at the end of it".to_owned()));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Push {
    /// Why a record cannot be sent at all.
    fn refuse(&self, record: &redrive::Record) -> Option<Failure> {
        let length = record.value.as_ref().map_or(0, Bytes::len) as u64;
        let what = if length > self.max_body {
            format!(
                "its value has {length} bytes, and {} are sent at most: handler.http.max-body",
                self.max_body
            )
        } else if !event::fits(record) {
            "it has more or longer headers than a request can carry".to_owned()
        } else {
            return None;
        };
        Some(fault::coded("record-too-large", what, Class::Permanent))
    }

    /// How long the worker waits for this attempt.
    fn timeout(&self, received: &Received) -> Duration {
        self.timeouts[usize::from(received.attempt() > 1)]
    }

    fn skips(&self, record: &redrive::Record) -> bool {
        self.tombstones == Tombstones::Skip && record.value.is_none()
    }
}

impl Handler for Push {
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        self.carry(received, None).await
    }
}

impl Carry for Push {
    async fn carry(&self, received: Received, trace: Option<&Carried>) -> Result<(), Failure> {
        if self.skips(&received) {
            return Ok(());
        }
        if let Some(refused) = self.refuse(&received) {
            return Err(refused);
        }
        let mut headers =
            event::headers(&received, &event::origin(&received, &self.group), received.attempt());
        if let Some(trace) = trace {
            trace.put(&mut headers);
        }
        let (timeout, body) = (self.timeout(&received), received.value.clone().unwrap_or_default());
        let answer = self.client.call(headers, body, timeout, BODY).await?;
        answer.outcome(self.client.clock.now().wall).result("http")
    }
}
