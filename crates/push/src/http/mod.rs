//! Records pushed to an HTTP endpoint: one request each, or several in a batch.

mod answer;
mod batch;
mod connect;
pub(crate) mod event;
mod fault;
mod fields;
mod lines;
mod sign;
mod tls;
mod wire;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};
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
pub(crate) use fields::Fields;
use lines::Lines;
use sign::Signer;
use wire::{Head, SMALL, Wire, Written};

/// A connection that nobody uses is closed after this time.
const IDLE: Duration = Duration::from_secs(30);
/// How often an HTTP/2 connection in use is asked whether it is still there, and how long it may take to say so.
const ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5));
/// How long a body may take behind its head where that says that all is well.
const BODY: Duration = Duration::from_secs(1);
/// How long it may take where it says why something failed: whoever looks at the failure wants to know.
const WHY: Duration = Duration::from_secs(5);

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
    way: Way,
    endpoint: Endpoint,
    uri: Uri,
    /// What every request carries.
    headers: HeaderMap,
    /// What every request that is written here begins with, these headers included.
    begin: Vec<u8>,
    signer: Option<Signer>,
    max_answer: usize,
    clock: Clock,
}

/// How requests get there.
enum Way {
    /// One at a time on a connection, which is certainly of HTTP/1.1.
    Lines(Lines),
    /// Maybe several at a time, if the other side speaks HTTP/2.
    Client(Box<Client<Connect, Full<Bytes>>>),
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
        let is_plain = tls.is_none() && http.version != HttpVersion::Two;
        let uri = match (is_plain, tls.is_some()) {
            (true, _) => endpoint.path.clone(),
            (false, true) => format!("https://{}{}", endpoint.authority(), endpoint.path),
            (false, false) => format!("http://{}{}", endpoint.authority(), endpoint.path),
        };
        let uri = uri.parse().map_err(|error| bad_url(format!("{endpoint} cannot be called: {error}")))?;
        let connect = Connect::new(&endpoint.place, tls).map_err(bad_url)?;
        let mut headers = always(http)?;
        let way = if is_plain {
            let host = HeaderValue::try_from(endpoint.authority());
            let host = host.map_err(|error| bad_url(format!("{endpoint} cannot be called: {error}")))?;
            headers.entry(HOST).or_insert(host);
            Way::Lines(Lines::new(connect, Clock::system(), IDLE))
        } else {
            Way::Client(Box::new(multiplexed(connect, http.version)))
        };
        Ok(Self {
            begin: begin(&way, &uri, &headers),
            way,
            endpoint,
            uri,
            headers,
            signer: http.signature_secret.as_ref().map(Signer::new),
            max_answer: usize::try_from(http.max_answer.get()).unwrap_or(usize::MAX),
            clock: Clock::system(),
        })
    }

    /// For the headers of a request with so long a body.
    fn headers(&self, body: usize) -> Fields {
        Fields::behind(&self.begin, USUAL + body.min(SMALL))
    }

    /// Adds what is known when all the rest is: the proof and the length.
    fn end(&self, headers: &mut Fields, body: &[u8], of: Signed<'_>) {
        if let Some(signer) = &self.signer {
            let at = self.clock.now().wall.millis() / 1_000;
            let signature = signer.signature(at, path(&self.uri), of.id, of.is_tombstone, body);
            headers.put(SIGNATURE, signature.as_bytes());
        }
        // Also where there is no body, which many a server would wait for otherwise.
        headers.put_number(CONTENT_LENGTH.as_str(), body.len());
    }

    fn request(&self, headers: &Fields, body: Bytes) -> Request<Full<Bytes>> {
        let mut headers = headers.map();
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    /// Sends a request and reads its answer, or says the failure that there is none. The worker gives the attempt
    /// `timeout`; within it the body of an answer that all is well may take as long as `patience` behind its head, which
    /// has said already what counts most. If the future is dropped, so is the request, with its connection.
    async fn call(
        &self,
        mut headers: Fields,
        body: Bytes,
        of: Signed<'_>,
        [timeout, patience]: [Duration; 2],
    ) -> Result<Answer, Failure> {
        let began = self.clock.now().steady;
        let until = |status: StatusCode| {
            let until = began.saturating_add(timeout / 10 * 9);
            let patience = if status.is_success() { patience } else { patience.max(WHY) };
            until.min(self.clock.now().steady.saturating_add(patience))
        };
        self.end(&mut headers, &body, of);
        let (most, clock) = (self.max_answer, &self.clock);
        match &self.way {
            Way::Lines(lines) => {
                let request = Written::new(headers, body);
                let read = async |head: Head, body: &mut Wire| {
                    Answer::read(head.status, head.headers, body, most, clock, until).await
                };
                let answer = lines.exchange(&request, read).await;
                answer.map_err(|error| fault::unanswered(&self.endpoint, &error))
            }
            Way::Client(client) => match client.request(self.request(&headers, body)).await {
                Ok(response) => {
                    let (head, mut body) = response.into_parts();
                    Ok(Answer::read(head.status, head.headers, &mut body, most, clock, until).await)
                }
                Err(error) => Err(fault::unanswered(&self.endpoint, &error)),
            },
        }
    }

    /// Posts something that no record depends on; what comes back is the body of a good answer.
    pub(crate) async fn post(&self, kind: &str, body: Bytes, timeout: Duration) -> Result<Bytes, Failure> {
        let mut headers = self.headers(body.len());
        headers.put(CONTENT_TYPE.as_str(), kind.as_bytes());
        let answer = self.call(headers, body, Signed::default(), [timeout, BODY]).await?;
        answer.result(&self.clock)?;
        Ok(answer.body)
    }
}

/// What a signature is of besides path and body: the header `ce-id`, and whether there is no value.
#[derive(Default, Clone, Copy)]
struct Signed<'a> {
    id: &'a str,
    is_tombstone: bool,
}

/// What every request on a line begins with. Whoever else writes requests does so from their parts.
fn begin(way: &Way, uri: &Uri, headers: &HeaderMap) -> Vec<u8> {
    let Way::Lines(_) = way else { return Vec::new() };
    let mut begin = format!("POST {} HTTP/1.1\r\n", path(uri)).into_bytes();
    for (name, value) in headers {
        begin.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].into_iter().flatten());
    }
    begin
}

fn path(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

/// A client that sends several requests at a time over a connection of HTTP/2, if it is one.
fn multiplexed(connect: Connect, version: HttpVersion) -> Client<Connect, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http2_only(version == HttpVersion::Two)
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(ALIVE.0)
        .http2_keep_alive_timeout(ALIVE.1)
        .build(connect)
}

const SIGNATURE: &str = "redrive-signature";
/// About what the headers of a record take.
const USUAL: usize = 640;

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
        let (timeout, body) = (self.timeout(&received), received.value.clone().unwrap_or_default());
        let origin = event::origin(&received, &self.group);
        let mut headers = self.client.headers(body.len());
        event::headers(&received, &origin, received.attempt(), &mut headers);
        if let Some(trace) = trace {
            trace.put(&mut headers);
        }
        let id = if self.client.signer.is_some() { origin.to_string() } else { String::new() };
        let of = Signed { id: &id, is_tombstone: received.value.is_none() };
        let answer = self.client.call(headers, body, of, [timeout, BODY]).await?;
        answer.result(&self.client.clock)
    }
}
