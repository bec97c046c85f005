//! What users write: a handler of one record, of a typed value, or of a batch.

use std::any::Any;
use std::collections::HashMap;
use std::error::Error;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use redrive_core::flow::{Attempt, Id};
use redrive_core::{Cause, Class, Failure, Record};
use redrive_kafka::Outgoing;
use serde::de::DeserializeOwned;

/// A record, given to a handler: the record itself, and what the worker knows about this attempt.
#[derive(Debug, Clone)]
pub struct Received {
    record: Arc<Record>,
    attempt: u32,
    id: Id,
    sink: Arc<Sink>,
}

impl Received {
    pub(crate) fn new(attempt: Attempt, sink: &Arc<Sink>) -> Self {
        Self { record: attempt.record, attempt: attempt.number, id: attempt.id, sink: sink.clone() }
    }

    /// Which attempt this is; the first is 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The value as text, if it is there and is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.record.value.as_deref()?).ok()
    }

    /// The value read as JSON. What cannot be read is a permanent failure, `undecodable`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let value = self.record.value.as_deref().unwrap_or(b"null");
        serde_json::from_slice(value).map_err(|error| Failure::undecodable(&error))
    }

    /// Publishes a record if this attempt succeeds: before the offset counts as complete or, with
    /// exactly-once delivery, in the same transaction as the offset. If the attempt fails it is forgotten.
    pub fn send(&self, outgoing: Outgoing) {
        self.sink.put((self.id, self.attempt), outgoing);
    }
}

impl Deref for Received {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

/// What attempts want to publish, until they end. One for all: most attempts publish nothing, and those
/// should cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    count: AtomicUsize,
    output: Mutex<HashMap<(Id, u32), Vec<Outgoing>>>,
}

impl Sink {
    fn put(&self, attempt: (Id, u32), outgoing: Outgoing) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.entry(attempt).or_default().push(outgoing);
        self.count.store(output.len(), Ordering::Release);
    }

    /// What this attempt wanted to publish.
    pub(crate) fn take(&self, attempt: (Id, u32)) -> Vec<Outgoing> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = output.remove(&attempt).unwrap_or_default();
        self.count.store(output.len(), Ordering::Release);
        taken
    }
}

/// Handles one record after the other; several at the same time, if they are of different lanes.
///
/// An async closure over [`Received`] is a handler. Its error may be anything that converts into a
/// boxed error: an error type (its chain of sources is kept), a text, an `anyhow::Error`, or a
/// [`Failure`]. A struct implements this trait and can use `?` on any error.
pub trait Handler: Send + Sync + 'static {
    /// Handles a record; `Ok` means that it is done for good.
    fn handle(&self, received: Received) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The name in dead letters and events.
    fn name(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }
}

impl<F, Answer, E> Handler for F
where
    F: Fn(Received) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<(), E>> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        self(received).await.map_err(Failure::from_any)
    }
}

/// Handles several records at once; none of them waits for another, so each has its own outcome.
pub trait BatchHandler: Send + Sync + 'static {
    /// Handles the records; the outcomes are in their order, one each.
    fn handle(&self, batch: Vec<Received>) -> impl Future<Output = Vec<Result<(), Failure>>> + Send;

    /// The name in dead letters and events.
    fn name(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }
}

impl<F, Answer> BatchHandler for F
where
    F: Fn(Vec<Received>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Vec<Result<(), Failure>>> + Send,
{
    async fn handle(&self, batch: Vec<Received>) -> Vec<Result<(), Failure>> {
        self(batch).await
    }
}

/// A handler of values that are read from JSON first.
pub(crate) struct Typed<T, F> {
    pub(crate) handle: F,
    pub(crate) reads: PhantomData<fn() -> T>,
}

impl<T, F, Answer, E> Handler for Typed<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, Received) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<(), E>> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        let value = received.json()?;
        (self.handle)(value, received).await.map_err(Failure::from_any)
    }

    fn name(&self) -> String {
        std::any::type_name::<F>().to_owned()
    }
}

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handler whose type is forgotten.
#[derive(Clone)]
pub(crate) enum Work {
    One(Arc<dyn One>),
    Batch { handler: Arc<dyn Many>, most: usize },
}

pub(crate) trait One: Send + Sync {
    fn call(self: Arc<Self>, received: Received) -> Boxed<Result<(), Failure>>;
    fn name(&self) -> String;
}

pub(crate) trait Many: Send + Sync {
    fn call(self: Arc<Self>, batch: Vec<Received>) -> Boxed<Vec<Result<(), Failure>>>;
    fn name(&self) -> String;
}

impl<H: Handler> One for H {
    fn call(self: Arc<Self>, received: Received) -> Boxed<Result<(), Failure>> {
        let handled = AssertUnwindSafe(async move { self.handle(received).await });
        Box::pin(handled.catch_unwind().map(|answer| match answer {
            Ok(answer) => answer,
            Err(payload) => Err(panicked(payload.as_ref())),
        }))
    }

    fn name(&self) -> String {
        Handler::name(self)
    }
}

impl<H: BatchHandler> Many for H {
    fn call(self: Arc<Self>, batch: Vec<Received>) -> Boxed<Vec<Result<(), Failure>>> {
        let count = batch.len();
        let handled = AssertUnwindSafe(async move { self.handle(batch).await });
        Box::pin(handled.catch_unwind().map(move |answer| match answer {
            Ok(answers) => each(answers, count),
            Err(payload) => vec![Err(panicked(payload.as_ref())); count],
        }))
    }

    fn name(&self) -> String {
        BatchHandler::name(self)
    }
}

impl Work {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::One(handler) => handler.name(),
            Self::Batch { handler, .. } => handler.name(),
        }
    }
}

/// One outcome for each record, whatever the handler of a batch answered.
fn each(answers: Vec<Result<(), Failure>>, records: usize) -> Vec<Result<(), Failure>> {
    if answers.len() == records {
        return answers;
    }
    let what = format!("the handler gave {} outcomes for {records} records", answers.len());
    let failure = Failure::new(Cause::new("redrive::Outcomes", what)).presumably(Class::Permanent);
    vec![Err(failure); records]
}

fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let what = text.unwrap_or_else(|| "the handler panicked".to_owned());
    Failure::new(Cause::new("redrive::Panic", what)).presumably(Class::Permanent)
}
