//! A subscription as users write it: topic, group, handler, and whatever differs from the defaults.

use std::fmt::Display;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use redrive_config::Surroundings;
use redrive_core::classify::{Rule, Subject};
use redrive_core::lanes::Followers;
use redrive_core::route::Exhausted;
use redrive_core::settings::{
    Blocking, Delay, Delivery, LetterPartition, OrderBy, Payload, Start, SurgeGuard,
};
use redrive_core::{Class, Failure, Mask, Policy, Topic};
use serde::de::DeserializeOwned;

use crate::handler::{BatchHandler, Handler, Received, Typed, Work};
use crate::listener::Listener;

/// A topic, the group that consumes it, the handler and what happens to records that fail.
///
/// Settings that cannot be are not refused one by one: [`Worker::run`](crate::Worker::run) tells all of them.
#[derive(Clone)]
pub struct Subscription {
    pub(crate) name: String,
    pub(crate) settled: Option<redrive_config::Subscription>,
    pub(crate) work: Option<Work>,
    pub(crate) handler_name: Option<String>,
    pub(crate) listeners: Vec<Arc<dyn Listener>>,
    pub(crate) clears_source: bool,
    pub(crate) problems: Vec<String>,
}

impl Subscription {
    /// A subscription with the defaults of the configuration file.
    #[must_use]
    pub fn new(topic: &str, group: &str) -> Self {
        let text = format!(
            "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = {}\ngroup = {}\n",
            quoted(topic),
            quoted(group)
        );
        let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
        let name = format!("{topic} as {group}");
        match redrive_config::read("subscription", &text, surroundings) {
            Ok(config) => Self { name, ..Self::of(config.subscriptions.into_iter().next()) },
            Err(report) => {
                let problems = report.problems().iter().map(|problem| format!("{name}: {}", problem.message));
                Self { problems: problems.collect(), name, ..Self::of(None) }
            }
        }
    }

    /// A subscription as the configuration file has it; what handles the records comes from here.
    #[must_use]
    pub fn configured(subscription: redrive_config::Subscription) -> Self {
        let name = format!("{} as {}", subscription.topic, subscription.group);
        Self { name, ..Self::of(Some(subscription)) }
    }

    fn of(settled: Option<redrive_config::Subscription>) -> Self {
        Self {
            name: String::new(),
            settled,
            work: None,
            handler_name: None,
            listeners: Vec::new(),
            clears_source: false,
            problems: Vec::new(),
        }
    }

    /// The handler: a struct, or an async closure over a record.
    #[must_use]
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.work = Some(Work::One(Arc::new(handler)));
        self
    }

    /// A handler of values of this type, read from JSON. What cannot be read becomes a dead letter with
    /// the reason `undecodable`.
    #[must_use]
    pub fn json_handler<T, F, Answer, E>(self, handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, Received) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        self.handler(Typed { handle, reads: PhantomData })
    }

    /// A handler of at most so many records at once, none of which waits for another.
    #[must_use]
    pub fn batch_handler(mut self, most: NonZeroU32, handler: impl BatchHandler) -> Self {
        self.work = Some(Work::Batch { handler: Arc::new(handler), most: most.get() as usize });
        self
    }

    /// The name of the handler in dead letters; its type if absent.
    #[must_use]
    pub fn handler_name(mut self, name: impl Into<String>) -> Self {
        self.handler_name = Some(name.into());
        self
    }

    /// Someone who hears what becomes of records that fail.
    #[must_use]
    pub fn listener(mut self, listener: impl Listener) -> Self {
        self.listeners.push(Arc::new(listener));
        self
    }

    /// What is complete is deleted from the source, which is nobody else's.
    pub(crate) fn clears_source(mut self) -> Self {
        self.clears_source = true;
        self
    }

    /// What of a record must not be repeated in the texts of its failures, wherever they are written.
    #[must_use]
    pub fn mask(self, mask: Mask) -> Self {
        self.set(|settled| settled.mask = mask)
    }

    /// When a failure of this class is tried again: `list(100ms x2, 1s)`, `exponential(1s..60s x2)`.
    #[must_use]
    pub fn retry(self, class: Class, policy: &str) -> Self {
        self.parsed("retry", policy, move |settled, policy: Policy| settled.rules.policies[class] = policy)
    }

    /// What follows when the tries of a class are used up: `bury`, `shelve`, `block` or `drop`.
    #[must_use]
    pub fn exhausted(self, class: Class, choice: &str) -> Self {
        self.parsed("exhausted", choice, move |settled, choice: Exhausted| {
            settled.rules.exhausted[class] = choice;
        })
    }

    /// A rule that names the class of a failure, asked after those given before.
    #[must_use]
    pub fn classify(self, rule: Rule) -> Self {
        self.set(|settled| settled.rules.classifier.own.push(rule))
    }

    /// The class of whatever no rule matches.
    #[must_use]
    pub fn class(self, class: Class) -> Self {
        self.set(|settled| settled.rules.classifier.default = class)
    }

    /// Code that names the class of a failure before any rule does.
    #[must_use]
    pub fn resolver(
        self,
        resolver: impl Fn(Subject<'_>, &Failure) -> Option<Class> + Send + Sync + 'static,
    ) -> Self {
        // One that panics knows nothing: the rules are asked.
        let resolver = move |subject: Subject<'_>, failure: &Failure| {
            catch_unwind(AssertUnwindSafe(|| resolver(subject, failure))).unwrap_or_default()
        };
        self.set(|settled| settled.rules.classifier.resolver = Some(Arc::new(resolver)))
    }

    /// What the records of a lane share: `key`, `header:NAME`, `json:/pointer`, `partition` or `none`.
    #[must_use]
    pub fn order_by(self, order: &str) -> Self {
        self.parsed("order-by", order, |settled, order: OrderBy| settled.order_by = order)
    }

    /// What becomes of the records of a lane behind one that became a letter: `pass`, `hold` or `bury`.
    #[must_use]
    pub fn followers(self, choice: &str) -> Self {
        self.parsed("followers", choice, |settled, choice: Followers| settled.followers = choice)
    }

    /// Where a group begins that has never run: `earliest`, `latest` or a time.
    #[must_use]
    pub fn start(self, start: &str) -> Self {
        self.parsed("start", start, |settled, start: Start| settled.start = start)
    }

    /// What is promised about repeats.
    #[must_use]
    pub fn delivery(self, delivery: Delivery) -> Self {
        self.set(|settled| settled.delivery = delivery)
    }

    /// How many first tries run at once, and as many retries beside them.
    #[must_use]
    pub fn concurrency(self, most: u32) -> Self {
        self.number("concurrency", most, |settled, most| {
            (settled.concurrency, settled.retry_concurrency) = (most, most);
        })
    }

    /// How many retries run at once, beside the first tries.
    #[must_use]
    pub fn retry_concurrency(self, most: u32) -> Self {
        self.number("retry-concurrency", most, |settled, most| settled.retry_concurrency = most)
    }

    /// How long the handler may take, for first tries and for retries.
    #[must_use]
    pub fn timeouts(self, first: Duration, retry: Duration) -> Self {
        self.set(|settled| (settled.timeout, settled.retry_timeout) = (first, retry))
    }

    /// How long the broker may take to confirm a dead letter.
    #[must_use]
    pub fn publish_timeout(self, timeout: Duration) -> Self {
        self.set(|settled| settled.publish_timeout = timeout)
    }

    /// How long what runs may take to end when a partition is given up or the worker stops.
    #[must_use]
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        self.set(|settled| settled.drain_timeout = timeout)
    }

    /// When many failures are taken for an outage: `50% of 20 keys in 30s`, or `off`.
    #[must_use]
    pub fn surge_guard(self, guard: &str) -> Self {
        if guard == "off" {
            return self.set(|settled| settled.surge_guard = None);
        }
        self.parsed("surge-guard", guard, |settled, guard: SurgeGuard| settled.surge_guard = Some(guard))
    }

    /// How much may be dropped before it is an alarm: `1% over 5m`.
    #[must_use]
    pub fn max_loss(self, limit: &str) -> Self {
        self.parsed("max-loss", limit, |settled, limit| settled.max_loss = Some(limit))
    }

    /// What an outage stops.
    #[must_use]
    pub fn outage_pauses(self, what: Blocking) -> Self {
        self.set(|settled| settled.outage_pauses = what)
    }

    /// Where dead letters go, if not to `TOPIC.GROUP.dlq`.
    #[must_use]
    pub fn letters(self, topic: &str) -> Self {
        self.parsed("letters", topic, |settled, topic: Topic| settled.letters = topic)
    }

    /// Which partition a dead letter goes to.
    #[must_use]
    pub fn letter_partition(self, choice: LetterPartition) -> Self {
        self.set(|settled| settled.letter_partition = choice)
    }

    /// Whether topics are made and mended; otherwise they are verified, and a mismatch is refused.
    #[must_use]
    pub fn auto_create(self, mend: bool) -> Self {
        self.set(|settled| settled.auto_create = mend)
    }

    /// Whether to pass over records that are letters of this group already: for a group that reads its topic anew.
    #[must_use]
    pub fn skip_damaged(self, skip: bool) -> Self {
        self.set(|settled| settled.skip_damaged = skip)
    }

    /// How many records, and bytes of them, may be in memory.
    #[must_use]
    pub fn in_memory(self, records: u32, bytes: u64) -> Self {
        let this = self.number("max-records", records, |settled, most| settled.max_records = most);
        this.size("max-bytes", bytes, |settled, most| settled.max_bytes = most)
    }

    /// How many records of a partition, and bytes of them, may wait on the shelf.
    #[must_use]
    pub fn waiting(self, records: u32, bytes: u64) -> Self {
        let this =
            self.number("shelf.max-records", records, |settled, most| settled.shelf_limits.records = most);
        this.size("shelf.max-bytes", bytes, |settled, most| settled.shelf_limits.bytes = most)
    }

    /// How many bytes of waiting records are kept in memory; the others are read back when they are due.
    #[must_use]
    pub fn shelf_cache(self, bytes: u64) -> Self {
        self.size("shelf.cache", bytes, |settled, most| settled.shelf_limits.cache = most)
    }

    /// What is written of a record that waits: all of it, or where it is to be found again.
    #[must_use]
    pub fn payload(self, payload: Payload) -> Self {
        self.set(|settled| settled.payload = payload)
    }

    /// What is settled, or everything that is wrong with it.
    pub(crate) fn settle(self) -> Result<Settled, Vec<String>> {
        let Self { name, settled, work, handler_name, listeners, clears_source, mut problems } = self;
        if work.is_none() {
            problems.push(format!("{name}: there is no handler; give it one with `handler`"));
        }
        if let Some(settled) = &settled {
            problems.extend(unsupported(settled).into_iter().map(|problem| format!("{name}: {problem}")));
        }
        match (settled, work) {
            (Some(settled), Some(work)) if problems.is_empty() => {
                let handler_name = handler_name.unwrap_or_else(|| work.name());
                Ok(Settled { settled, work, handler_name, listeners, clears_source })
            }
            _ => Err(problems),
        }
    }

    fn set(mut self, change: impl FnOnce(&mut redrive_config::Subscription)) -> Self {
        if let Some(settled) = &mut self.settled {
            change(settled);
        }
        self
    }

    fn number(
        mut self,
        what: &str,
        number: u32,
        change: impl FnOnce(&mut redrive_config::Subscription, NonZeroU32),
    ) -> Self {
        match NonZeroU32::new(number) {
            Some(number) => self.set(|settled| change(settled, number)),
            None => {
                self.problems.push(format!("{}: {what} cannot be 0", self.name));
                self
            }
        }
    }

    fn size(
        mut self,
        what: &str,
        bytes: u64,
        change: impl FnOnce(&mut redrive_config::Subscription, NonZeroU64),
    ) -> Self {
        match NonZeroU64::new(bytes) {
            Some(bytes) => self.set(|settled| change(settled, bytes)),
            None => {
                self.problems.push(format!("{}: {what} cannot be 0", self.name));
                self
            }
        }
    }

    fn parsed<T: FromStr<Err: Display>>(
        mut self,
        what: &str,
        text: &str,
        change: impl FnOnce(&mut redrive_config::Subscription, T),
    ) -> Self {
        match text.parse() {
            Ok(value) => self.set(|settled| change(settled, value)),
            Err(error) => {
                self.problems.push(format!("{}: {what} = \"{text}\": {error}", self.name));
                self
            }
        }
    }
}

/// A subscription that can run.
#[derive(Clone)]
pub(crate) struct Settled {
    pub(crate) settled: redrive_config::Subscription,
    pub(crate) work: Work,
    pub(crate) handler_name: String,
    pub(crate) listeners: Vec<Arc<dyn Listener>>,
    /// Whether what is complete is deleted from the source.
    pub(crate) clears_source: bool,
}

/// What this version does not carry out: refused, rather than done by halves.
fn unsupported(settled: &redrive_config::Subscription) -> Vec<String> {
    let mut problems = Vec::new();
    if settled.delay != Delay::Shelf {
        problems.push(format!("delay = \"{}\" is not carried out by this version", settled.delay));
    }
    if settled.skip_damaged && settled.followers != Followers::Pass {
        // A letter whose lane was to be closed when its worker died would be passed over, its followers not.
        let what = "skip-damaged needs followers = \"pass\": what followed a damaged record would be handled";
        problems.push(what.to_owned());
    }
    problems
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
