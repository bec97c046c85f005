//! Tells a URL of each record that is set aside or dead-lettered, before and after.
//!
//! The worker's loop only puts an event into a queue. A task of its own posts them, one after the other; what is
//! too much, too slow or refused is dropped, counted and told in the log, and the record goes its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redrive::{Clock, Event, Listener, Told};
use redrive_config::Notify;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};
use uuid::Uuid;

use crate::Wrong;
use crate::http::{Caller, event};
use crate::leaving::Leaving;

/// How long what is left may take when nobody tells anything any more.
const LAST: Duration = Duration::from_secs(5);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many events were dropped since the start, by all.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// The listener.
pub(crate) struct Notifier {
    group: String,
    clock: Clock,
    queue: mpsc::Sender<Value>,
    poster: std::sync::Mutex<Option<Poster>>,
    dropped: Arc<AtomicU64>,
}

/// What posts the events; it starts with the first of them, where there is a runtime to run on.
struct Poster {
    caller: Caller,
    timeout: Duration,
    events: mpsc::Receiver<Value>,
    clock: Clock,
    dropped: Arc<AtomicU64>,
}

impl Notifier {
    pub(crate) fn new(notify: &Notify, group: &str) -> Result<Self, Wrong> {
        let caller = Caller::new(&notify.endpoint).map_err(|(what, remedy)| {
            (format!("notify: {what}"), remedy.replace("handler.http.", "notify."))
        })?;
        let (queue, events) = mpsc::channel(notify.queue.get() as usize);
        let (clock, dropped) = (Clock::system(), Arc::default());
        let poster = Poster {
            caller,
            timeout: notify.timeout,
            events,
            clock: clock.clone(),
            dropped: Arc::clone(&dropped),
        };
        Ok(Self { group: group.to_owned(), clock, queue, poster: Some(poster).into(), dropped })
    }

    fn begin(&self) {
        let mut poster = self.poster.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let (Some(_), Ok(runtime)) = (&*poster, tokio::runtime::Handle::try_current())
            && let Some(poster) = poster.take()
        {
            runtime.spawn(poster.run(Leaving::new()));
        }
    }

    fn event(&self, kind: &str, told: Told<'_>, more: Value) -> Value {
        let at = &told.record.at;
        let mut data = json!({
            "topic": at.topic.as_str(),
            "partition": at.partition,
            "offset": at.offset,
            "group": self.group,
            "attempts": told.attempts,
            "class": told.class.map(redrive::Class::name),
            "error": told.failure.map(|failure| {
                let cause = failure.outermost();
                json!({ "type": cause.type_name, "message": cause.message, "status": cause.status, "code": cause.code })
            }),
        });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        json!({
            "specversion": "1.0",
            "id": Uuid::new_v4().to_string(),
            "source": format!("/redrive/{}/{}", self.group, at.topic),
            "type": format!("redrive.{kind}"),
            "subject": at.to_string(),
            "time": event::rfc3339(self.clock.now().wall),
            "datacontenttype": "application/json",
            "data": data,
        })
    }
}

impl Listener for Notifier {
    fn hear(&self, event: &Event<'_>) {
        self.begin();
        let nothing = || Value::Object(Map::new());
        let event = match event {
            Event::BeforeAside(told) => self.event("aside.before", *told, nothing()),
            Event::AfterAside(told) => self.event("aside.after", *told, nothing()),
            Event::BeforeLetter { told, reason } => {
                self.event("letter.before", *told, json!({ "reason": reason.to_string() }))
            }
            Event::AfterLetter { told, reason, topic, .. } => {
                let more = json!({ "reason": reason.to_string(), "letters": topic.as_str() });
                self.event("letter.after", *told, more)
            }
            Event::LetterRefused { told, topic, error } => {
                let more = json!({ "letters": topic.as_str(), "publish_error": error.to_string() });
                self.event("letter.refused", *told, more)
            }
            _ => return,
        };
        if self.queue.try_send(event).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            // Said once, and again when there is room: there may be thousands.
            if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                warn!(group = self.group, "events are dropped: whoever is notified is too slow");
            }
        }
    }
}

impl Poster {
    async fn run(mut self, leaving: Leaving) {
        while let Some(event) = self.events.recv().await {
            if self.events.is_closed() {
                let mut rest = vec![event];
                while let Ok(event) = self.events.try_recv() {
                    rest.push(event);
                }
                self.post_the_last(rest).await;
                break;
            }
            self.post(event).await;
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                warn!(dropped, "events were dropped: whoever is notified was too slow");
            }
        }
        drop(leaving);
    }

    async fn post_the_last(&self, events: Vec<Value>) {
        let until = self.clock.now().steady + LAST;
        for (done, event) in events.iter().enumerate() {
            if self.clock.now().steady >= until {
                let dropped = (events.len() - done) as u64;
                DROPPED.fetch_add(dropped, Ordering::Relaxed);
                warn!(dropped, "events were dropped: there was no more time to post them");
                return;
            }
            self.post(event.clone()).await;
        }
    }

    async fn post(&self, event: Value) {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let subject = event["subject"].as_str().unwrap_or_default().to_owned();
        let posted = tokio::select! {
            posted = self.caller.post("application/cloudevents+json", Bytes::from(event.to_string()), self.timeout) => {
                posted.map(drop).map_err(|failure| failure.outermost().message.clone())
            }
            () = self.clock.sleep(self.timeout) => Err("no answer in time".to_owned()),
        };
        match posted {
            Ok(()) => debug!(origin = subject, event = kind, "notified"),
            Err(why) => {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                warn!(origin = subject, event = kind, why, "not notified");
            }
        }
    }
}
