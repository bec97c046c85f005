//! Sends spans to a collector: OTLP over HTTP, in batches, by a task of its own.
//!
//! What cannot be sent is tried again twice if the collector is away for a moment, and then dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use redrive::{Class, Clock, Failure};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::http::Caller;
use crate::leaving::Leaving;

/// How many spans go at once, and how long the first of them waits for others.
const BATCH: usize = 1_000;
const WAIT: Duration = Duration::from_secs(1);
/// How long what is left may take when there are no more attempts.
const LAST: Duration = Duration::from_secs(5);
/// The waits before a batch is tried again.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many spans were dropped since the start.
pub(super) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Where spans wait to be sent.
pub(super) struct Queue {
    spans: mpsc::Sender<Span>,
    /// How many of them are neither sent nor dropped.
    waiting: Arc<AtomicU64>,
}

/// What sends them.
pub(super) struct Exporter {
    pub(super) caller: Caller,
    pub(super) timeout: Duration,
    pub(super) resource: Resource,
    pub(super) clock: Clock,
    spans: mpsc::Receiver<Span>,
    waiting: Arc<AtomicU64>,
    is_failing: bool,
}

impl Queue {
    /// Never waits: a span for which there is no room is dropped.
    pub(super) fn put(&self, span: Span) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.spans.try_send(span).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Exporter {
    pub(super) fn new(caller: Caller, timeout: Duration, resource: Resource, queue: usize) -> (Queue, Self) {
        let (sender, spans) = mpsc::channel(queue);
        let waiting = Arc::<AtomicU64>::default();
        let queue = Queue { spans: sender, waiting: waiting.clone() };
        let clock = Clock::system();
        (queue, Self { caller, timeout, resource, clock, spans, waiting, is_failing: false })
    }

    /// Sends until there are no more attempts, and then for a few seconds at most.
    pub(super) async fn run(mut self, leaving: Leaving, mut attempts: tokio::sync::watch::Receiver<()>) {
        let (clock, waiting) = (self.clock.clone(), self.waiting.clone());
        let end = async {
            // Nothing is ever told: it is an error when whoever could is gone.
            while attempts.changed().await.is_ok() {}
            clock.sleep(LAST).await;
        };
        tokio::select! {
            () = self.send_all() => {}
            () = end => {
                let dropped = waiting.swap(0, Ordering::Relaxed);
                DROPPED.fetch_add(dropped, Ordering::Relaxed);
                warn!(dropped, "spans were dropped: there was no more time to send them");
            }
        }
        drop(leaving);
    }

    async fn send_all(&mut self) {
        loop {
            let mut batch = Vec::new();
            if self.spans.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            let until = self.clock.now().steady + WAIT;
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                let more = tokio::select! {
                    biased;
                    more = self.spans.recv_many(&mut batch, room) => more,
                    () = self.clock.sleep_until(until) => 0,
                };
                if more == 0 {
                    break;
                }
            }
            self.send(batch).await;
        }
    }

    async fn send(&mut self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        let body = self.body(spans);
        let mut waits = AGAIN.into_iter();
        let dropped = loop {
            let failure = match self.post(body.clone()).await {
                Ok(refused) => break refused.min(count),
                Err(failure) => failure,
            };
            self.tell(&failure);
            // At the end there is no time to wait.
            let may_try_again = failure.presumed == Some(Class::Outage) && !self.spans.is_closed();
            match waits.next().filter(|_| may_try_again) {
                Some(wait) => self.clock.sleep(wait).await,
                None => break count,
            }
        };
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        DROPPED.fetch_add(dropped, Ordering::Relaxed);
        if dropped == 0 && std::mem::take(&mut self.is_failing) {
            info!("spans are sent again");
        }
    }

    /// How many of them the collector refused; or why it has none.
    async fn post(&self, body: Bytes) -> Result<u64, Failure> {
        let answer = tokio::select! {
            answer = self.caller.post("application/x-protobuf", body, self.timeout) => answer?,
            () = self.clock.sleep(self.timeout) => {
                let cause = redrive::Cause::new("redrive::Timeout", "no answer in time");
                return Err(Failure::new(cause).presumably(Class::Outage));
            }
        };
        let refused =
            ExportTraceServiceResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
        let refused = refused.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(refused).unwrap_or_default())
    }

    /// Said once, and again when it goes well: there may be one a second.
    fn tell(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let why = &failure.outermost().message;
            warn!(why, "spans are not sent: the collector does not take them");
        }
    }

    fn body(&self, spans: Vec<Span>) -> Bytes {
        let scope = InstrumentationScope {
            name: "redrive".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
        let spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        };
        Bytes::from(ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec())
    }
}
