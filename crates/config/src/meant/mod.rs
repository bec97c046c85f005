//! The file as meant: defaults filled in, rules and policies resolved, contradictions refused.

mod conflicts;
mod handler;
mod letters;
mod process;
mod rules;
mod subscription;
mod traces;

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::lanes::Followers;
use redrive_core::settings::{
    Blocking, Delay, Delivery, LetterPartition, MaxLoss, OrderBy, Payload, Start, SurgeGuard,
};
use redrive_core::{Mask, Rules, Topic};

use crate::problem::{Problem, Report};
use crate::typed;

pub use handler::{Batch, Command, Credentials, Handler, Http, Notify, Secret};
pub use letters::{Letters, Link};
pub use process::{Log, LogFormat, LogLevel, Server};
pub use traces::Traces;

/// A configuration that can be run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where Kafka is.
    pub kafka: Kafka,
    /// The name of the service, as dead letters tell it.
    pub service: Option<String>,
    /// Where a process tells of itself.
    pub server: Server,
    /// What it writes to stderr.
    pub log: Log,
    /// Where it sends spans, if anywhere.
    pub traces: Option<Traces>,
    /// How dead letters are found and indexed.
    pub letters: Letters,
    /// What is consumed, and how.
    pub subscriptions: Vec<Subscription>,
    /// What is hardly meant but harmless.
    pub warnings: Report,
}

/// The cluster to work with.
#[derive(Debug, Clone)]
pub struct Kafka {
    /// Where it is.
    pub brokers: Brokers,
    /// Settings of librdkafka.
    pub properties: Vec<Property>,
    /// Where the embedded broker listens.
    pub listen: SocketAddr,
    /// The folder of the embedded broker; without one everything is in memory.
    pub data: Option<PathBuf>,
}

/// A setting of librdkafka; its value may be secret and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brokers {
    /// Inside this process.
    Embedded,
    /// At these addresses.
    At(String),
}

/// A topic, the group that consumes it, and what happens to its records.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each field is the key of its name, described in the reference")]
pub struct Subscription {
    pub name: Option<String>,
    pub topic: Topic,
    pub group: String,
    pub handler: Option<Handler>,
    pub notify: Option<Notify>,
    pub mask: Mask,
    pub rules: Rules,
    pub order_by: OrderBy,
    pub followers: Followers,
    pub delay: Delay,
    pub delivery: Delivery,
    pub start: Start,
    pub surge_guard: Option<SurgeGuard>,
    pub max_loss: Option<MaxLoss>,
    pub auto_create: bool,
    pub skip_damaged: bool,
    pub concurrency: NonZeroU32,
    pub retry_concurrency: NonZeroU32,
    pub timeout: Duration,
    pub retry_timeout: Duration,
    pub publish_timeout: Duration,
    pub drain_timeout: Duration,
    pub max_records: NonZeroU32,
    pub max_bytes: NonZeroU64,
    pub payload: Payload,
    pub shelf_limits: ShelfLimits,
    pub outage_pauses: Blocking,
    pub letter_partition: LetterPartition,
    pub shelf: Topic,
    pub letters: Topic,
}

/// How much may wait on the shelf, and how much of that is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShelfLimits {
    /// Bytes that are kept in memory.
    pub cache: NonZeroU64,
    /// Records of one partition.
    pub records: NonZeroU32,
    /// Bytes of one partition.
    pub bytes: NonZeroU64,
}

/// Checks everything that was typed; the configuration is meaningless if an error is among the problems.
pub(crate) fn check(file: &typed::File) -> (Config, Vec<Problem>) {
    let mut problems = Vec::new();
    let kafka = Kafka::from_typed(file.kafka.as_ref().map(|kafka| &kafka.value), &mut problems);
    let defaults = file.defaults.as_ref().map(|defaults| &defaults.value);
    let typed = file.subscription.iter().flat_map(|list| &list.value);
    let global = rules::global(defaults, &mut problems);
    let mut subscriptions = Vec::new();
    for subscription in typed.clone() {
        subscriptions.extend(subscription::resolve(subscription, defaults, &global, &mut problems));
    }
    conflicts::same_group(typed.clone(), &mut problems);
    conflicts::same_name(typed.clone(), &mut problems);
    conflicts::shared_topics(&subscriptions, &mut problems);
    // A subscription that could not be read may be the one that a rule is for.
    if subscriptions.len() == typed.count() {
        rules::unreachable(&global, &subscriptions, &mut problems);
    }
    let subscriptions = subscriptions.into_iter().map(|resolved| resolved.subscription).collect();
    let service = file.service.as_ref().map(|service| service.value.0.clone());
    let server = Server::from_typed(file.server.as_ref().map(|server| &server.value), &mut problems);
    let log = Log::from_typed(file.log.as_ref().map(|log| &log.value));
    let traces = Traces::from_typed(file.traces.as_ref(), &mut problems);
    let letters = Letters::from_typed(file.letters.as_ref().map(|letters| &letters.value), &mut problems);
    let warnings = Report::default();
    (Config { kafka, service, server, log, traces, letters, subscriptions, warnings }, problems)
}

impl Kafka {
    fn from_typed(typed: Option<&typed::Kafka>, problems: &mut Vec<Problem>) -> Self {
        let brokers = typed.and_then(|kafka| kafka.brokers.as_ref()).map(|brokers| brokers.value.0.as_str());
        let brokers = match brokers.unwrap_or_default() {
            "embedded" => Brokers::Embedded,
            addresses => Brokers::At(addresses.to_owned()),
        };
        let properties = typed.and_then(|kafka| kafka.properties.as_ref());
        let properties = properties.map(|properties| properties.value.0.clone()).unwrap_or_default();
        let listen = typed.and_then(|kafka| kafka.listen.as_ref());
        if let Some(listen) = listen.filter(|listen| !listen.value.ip().is_loopback()) {
            let message = "the embedded broker asks nobody who they are: others must not reach it".to_owned();
            problems.push(Problem::error(listen.span.clone(), message).help("listen on 127.0.0.1"));
        }
        let listen = listen.map(|listen| listen.value);
        let data = typed.and_then(|kafka| kafka.data.as_ref()).map(|data| PathBuf::from(&data.value.0));
        Self { brokers, properties, listen: listen.unwrap_or(process::BROKER), data }
    }
}

impl Subscription {
    /// What commands, metrics and logs call it: its name, or `TOPIC/GROUP`.
    #[must_use]
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}/{}", self.topic, self.group))
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=***", self.name)
    }
}
