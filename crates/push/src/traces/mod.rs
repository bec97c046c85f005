//! A span for each attempt, sent to a collector, and its context for whoever is called.
//!
//! A handler comes in and goes out wrapped: without traces there is no wrapper, and nothing here costs anything.
//! A span has where the record stands and how the attempt ended; never a key, a value or a message. Nothing that
//! becomes of spans affects a record.

mod attempt;
mod context;
mod export;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use redrive::{BatchHandler, Class, Clock, Failure, Handler, Received};
use redrive_config::Subscription;
use redrive_core::Rules;
use redrive_core::classify::Subject;
use ring::rand::SystemRandom;
use tokio::sync::watch;

use crate::BadHandler;
use crate::http::Caller;
use crate::leaving::Leaving;
use attempt::{Attempt, text};
use export::{Exporter, Queue};

pub(crate) use attempt::Tracer;
pub(crate) use context::Carried;

/// Where the spans of a process go.
pub struct Traces {
    shared: Arc<Shared>,
    exporter: Mutex<Option<Exporter>>,
}

/// What all subscriptions share.
struct Shared {
    queue: Queue,
    sample: f64,
    /// By the title of the subscription; they change with a reload.
    rules: RwLock<HashMap<String, Rules>>,
    /// Gone with the last who may have spans.
    attempts: watch::Sender<()>,
}

impl Traces {
    /// To the collector of the configuration, in the name of the service.
    pub fn new(traces: &redrive_config::Traces, service: Option<&str>) -> Result<Self, BadHandler> {
        let caller = Caller::new(&traces.endpoint).map_err(|(what, remedy)| BadHandler {
            subscription: "traces".to_owned(),
            what,
            remedy: remedy.replace("handler.http.", "traces."),
        })?;
        let resource = Resource {
            attributes: vec![
                text("service.name", service.unwrap_or("redrive")),
                text("service.instance.id", &uuid::Uuid::new_v4().to_string()),
                text("telemetry.sdk.name", "redrive"),
                text("telemetry.sdk.language", "rust"),
                text("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
            ],
            ..Resource::default()
        };
        let (queue, exporter) = Exporter::new(caller, traces.timeout, resource, traces.queue.get() as usize);
        let shared = Shared {
            queue,
            sample: traces.sample,
            rules: RwLock::default(),
            attempts: watch::Sender::new(()),
        };
        Ok(Self { shared: Arc::new(shared), exporter: Some(exporter).into() })
    }

    /// Sends spans from now on, on the runtime that this is called on. It ends when this is dropped and all
    /// handlers are; [`stopped`](crate::stopped) waits for that.
    pub fn start(&self) {
        let exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(Leaving::new(), self.shared.attempts.subscribe()));
        }
    }

    /// The rules of these subscriptions name the classes from now on.
    pub fn reload(&self, subscriptions: &[Subscription]) {
        let mut rules = self.shared.rules.write().unwrap_or_else(PoisonError::into_inner);
        rules.extend(subscriptions.iter().map(|one| (title(one), one.rules.clone())));
    }

    pub(crate) fn tracer(&self, subscription: &Subscription) -> Tracer {
        self.reload(std::slice::from_ref(subscription));
        Tracer {
            shared: self.shared.clone(),
            title: title(subscription),
            group: subscription.group.clone(),
            mask: subscription.mask.clone(),
            timeouts: [subscription.timeout, subscription.retry_timeout],
            random: SystemRandom::new(),
            clock: Clock::system(),
        }
    }
}

/// A name may be changed by whoever edits the file; topic and group are what it is.
fn title(subscription: &Subscription) -> String {
    format!("{}/{}", subscription.topic, subscription.group)
}

impl Shared {
    fn put(&self, span: Span) {
        self.queue.put(span);
    }

    fn class(&self, title: &str, failure: &Failure, subject: Subject<'_>) -> Option<Class> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.get(title).map(|rules| rules.classify(failure, subject).0)
    }
}

/// How many spans were dropped since the start.
pub(crate) fn dropped() -> u64 {
    export::dropped()
}

/// A handler that tells whom it calls of the attempt's span, if there is one.
pub(crate) trait Carry: Send + Sync + 'static {
    fn carry(
        &self,
        received: Received,
        trace: Option<&Carried>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The same of several records, each with its own.
pub(crate) trait CarryAll: Send + Sync + 'static {
    fn carry_all(
        &self,
        batch: Vec<Received>,
        traces: &[Option<&Carried>],
    ) -> impl Future<Output = Vec<Result<(), Failure>>> + Send;
}

/// A handler whose attempts have spans.
pub(crate) struct Traced<H> {
    pub(crate) handler: H,
    pub(crate) tracer: Tracer,
}

impl<H: Carry> Handler for Traced<H> {
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        let attempt = self.tracer.begin(&received, self.tracer.limit(&received));
        let outcome = self.handler.carry(received, attempt.carried.as_ref()).await;
        attempt.end(&outcome);
        outcome
    }
}

impl<H: CarryAll> BatchHandler for Traced<H> {
    async fn handle(&self, batch: Vec<Received>) -> Vec<Result<(), Failure>> {
        let limit: Duration = batch.iter().map(|one| self.tracer.limit(one)).max().unwrap_or_default();
        let attempts: Vec<Attempt<'_>> = batch.iter().map(|one| self.tracer.begin(one, limit)).collect();
        let carried: Vec<_> = attempts.iter().map(|attempt| attempt.carried.as_ref()).collect();
        let outcomes = self.handler.carry_all(batch, &carried).await;
        attempts.into_iter().zip(&outcomes).for_each(|(attempt, outcome)| attempt.end(outcome));
        outcomes
    }
}
