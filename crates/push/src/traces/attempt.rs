//! The span of an attempt, from its beginning to its end, however it ends.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags, Status};
use redrive::{Cause, Class, Clock, Failure, Mask, Received, Record};
use redrive_core::classify::Subject;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use super::Shared;
use super::context::{Carried, Context, state};
use crate::duration;
use crate::http::event;

/// Makes the spans of one subscription.
pub(crate) struct Tracer {
    pub(super) shared: Arc<Shared>,
    /// Whose rules name the classes.
    pub(super) title: String,
    pub(super) group: String,
    pub(super) mask: Mask,
    /// Of first tries and of retries.
    pub(super) timeouts: [Duration; 2],
    pub(super) random: SystemRandom,
    pub(super) clock: Clock,
}

/// An attempt that runs. If it is dropped before it ended, the worker ended it.
pub(crate) struct Attempt<'a> {
    pub(crate) carried: Option<Carried>,
    open: Option<Open<'a>>,
}

/// A span that has not ended.
struct Open<'a> {
    tracer: &'a Tracer,
    received: Received,
    context: Context,
    parent: Option<Context>,
    state: Option<String>,
    /// By the calendar, and by the steady clock.
    began: (u64, Duration),
    /// When the worker ends it.
    limit: Duration,
}

impl Tracer {
    /// Begins the span of an attempt, for which the worker waits for `limit`, and says what it carries.
    ///
    /// It is a child of the span that made the record, and linked to it. What the producer does not record is
    /// not recorded here either, and its context passes as it is. A record without a context has a trace of its
    /// own, the same in all its attempts.
    pub(super) fn begin(&self, received: &Received, limit: Duration) -> Attempt<'_> {
        let nothing = Attempt { carried: None, open: None };
        let parent = Context::of(&received.headers);
        if parent.is_some_and(|parent| !parent.is_sampled()) {
            return nothing;
        }
        let mut span = [0; 8];
        if self.random.fill(&mut span).is_err() || span == [0; 8] {
            return nothing;
        }
        let context = match parent {
            Some(parent) => parent.child(span),
            None => {
                let trace = self.trace(received);
                Context::root(trace, span, is_sampled(trace, self.shared.sample))
            }
        };
        let state = parent.and_then(|_| state(&received.headers));
        let open = context.is_sampled().then(|| Open {
            tracer: self,
            received: received.clone(),
            context,
            parent,
            state: state.clone(),
            began: (self.clock.unix_nanos(), self.clock.now().steady),
            limit,
        });
        Attempt { carried: Some(Carried { parent: context, state }), open }
    }

    /// How long the worker waits for this attempt if it is alone.
    pub(super) fn limit(&self, received: &Received) -> Duration {
        self.timeouts[usize::from(received.attempt() > 1)]
    }

    /// The trace of a record that has none: made of what is the same in all its attempts, on any instance.
    fn trace(&self, record: &Record) -> [u8; 16] {
        let timestamp = record.timestamp.map(redrive::Timestamp::millis);
        let what = format!("{}\n{}\n{timestamp:?}", self.group, event::origin(record, &self.group));
        let hash = digest::digest(&digest::SHA256, what.as_bytes());
        let mut trace = [0; 16];
        trace.copy_from_slice(&hash.as_ref()[..16]);
        trace
    }

    /// The class that the rules name, and the type of the error, without what must not be repeated.
    fn failed(&self, failure: &Failure, record: &Record) -> Failed {
        let failure = self.mask.apply(failure.clone(), record);
        let subject = Subject { topic: &record.at.topic, headers: &record.headers };
        let class = self.shared.class(&self.title, &failure, subject);
        Failed { error: failure.outermost().type_name.clone(), class }
    }
}

/// How an attempt failed.
struct Failed {
    error: String,
    class: Option<Class>,
}

impl Attempt<'_> {
    /// It ended by itself.
    pub(super) fn end(mut self, outcome: &Result<(), Failure>) {
        if let Some(open) = self.open.take() {
            let failed = outcome.as_ref().err().map(|failure| open.tracer.failed(failure, &open.received));
            open.close(failed.as_ref());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let failed = open.ended();
            open.close(Some(&failed));
        }
    }
}

impl Open<'_> {
    /// Why the worker ended it: it took too long, or its partition is given up or the worker stops.
    fn ended(&self) -> Failed {
        let passed = self.tracer.clock.now().steady.saturating_sub(self.began.1);
        // The worker began to count a little earlier.
        let early = (self.limit / 10).min(Duration::from_millis(100));
        if passed + early < self.limit {
            return Failed { error: "redrive::CutOff".to_owned(), class: None };
        }
        let what = format!("no answer within {}", duration(self.tracer.limit(&self.received)));
        let failure = Failure::new(Cause::new("redrive::Timeout", what)).presumably(Class::Outage);
        self.tracer.failed(&failure, &self.received)
    }

    fn close(self, failed: Option<&Failed>) {
        let passed = self.tracer.clock.now().steady.saturating_sub(self.began.1);
        let end = self.began.0.saturating_add(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
        let at = &self.received.at;
        let mut attributes = vec![
            text("messaging.system", "kafka"),
            text("messaging.operation.type", "process"),
            text("messaging.operation.name", "process"),
            text("messaging.destination.name", at.topic.as_str()),
            text("messaging.destination.partition.id", &at.partition.to_string()),
            attribute("messaging.kafka.offset", Value::IntValue(at.offset)),
            text("messaging.consumer.group.name", &self.tracer.group),
            attribute("redrive.attempt", Value::IntValue(self.received.attempt().into())),
        ];
        if let Some(failed) = failed {
            attributes.push(text("error.type", &failed.error));
            attributes.extend(failed.class.map(|class| text("redrive.class", class.name())));
        }
        let code = if failed.is_some() { StatusCode::Error } else { StatusCode::Unset };
        let link = self.parent.map(|parent| Link {
            trace_id: parent.trace.to_vec(),
            span_id: parent.span.to_vec(),
            trace_state: self.state.clone().unwrap_or_default(),
            flags: flags(parent, true),
            ..Link::default()
        });
        self.tracer.shared.put(Span {
            trace_id: self.context.trace.to_vec(),
            span_id: self.context.span.to_vec(),
            trace_state: self.state.unwrap_or_default(),
            parent_span_id: self.parent.map(|parent| parent.span.to_vec()).unwrap_or_default(),
            flags: flags(self.context, self.parent.is_some()),
            name: format!("process {}", at.topic),
            kind: SpanKind::Consumer.into(),
            start_time_unix_nano: self.began.0,
            end_time_unix_nano: end,
            attributes,
            links: link.into_iter().collect(),
            status: Some(Status { message: String::new(), code: code.into() }),
            ..Span::default()
        });
    }
}

/// The flags of a context, and whether what they speak of is elsewhere.
fn flags(context: Context, is_remote: bool) -> u32 {
    let remote = if is_remote { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };
    u32::from(context.flags) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
}

/// Whether a new trace is among those that are recorded: by its id, so that whoever asks comes to the same.
fn is_sampled(trace: [u8; 16], share: f64) -> bool {
    let (_, last) = trace.split_at(8);
    let number = last.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    (number as f64 / 2_f64.powi(64)) < share || share >= 1.0
}

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_recorded_and_each_always_or_never() {
        let trace = |number: u64| {
            let hash = digest::digest(&digest::SHA256, &number.to_be_bytes());
            <[u8; 16]>::try_from(&hash.as_ref()[..16]).unwrap()
        };
        let count = |share: f64| (0..10_000).filter(|number| is_sampled(trace(*number), share)).count();
        assert_eq!((count(0.0), count(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&count(0.1)), "{}", count(0.1));
        assert!((0..10_000).all(|number| !is_sampled(trace(number), 0.1) || is_sampled(trace(number), 0.2)));
        assert!(is_sampled([0xff; 16], 1.0));
    }
}
