//! `redrive check`: every problem of a configuration, or what it means in words.

mod kept;

use std::fmt::Write;
use std::io;

use clap::Args;
use redrive::pauses;
use redrive_config::{Config, Subscription};
use redrive_core::Class;
use redrive_core::lanes::Followers;
use redrive_core::route::{Exhausted, Strategy};
use redrive_core::settings::{Delivery, OrderBy};
use redrive_push::{BadHandler, Traces};

use crate::cluster::ClusterArgs;
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::{handler_text, human, screen};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive check
  redrive check -c staging.toml
  REDRIVE_CONFIG=staging.toml redrive check

If the cluster answers, it is also looked whether its topics delete letters, or what waits, too early.")]
pub(crate) struct Check {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Check {
    pub(crate) fn run(&self) -> io::Result<Exit> {
        let config = match self.file.read() {
            Ok(config) => config,
            Err(exit) => return Ok(exit),
        };
        let wrong = handlers(&config);
        if !wrong.is_empty() {
            for BadHandler { subscription, what, remedy } in wrong {
                screen::say(&format!("error: {}: {subscription}: {what}\nhelp: {remedy}", self.file.name()));
            }
            return Ok(Exit::Config);
        }
        screen::data(&format!("{} is valid\n{}", self.file.name(), meaning(&config)))?;
        self.warn(&config)?;
        Ok(Exit::Ok)
    }

    /// Warns of topics that delete too early, as far as the cluster can be asked.
    fn warn(&self, config: &Config) -> io::Result<()> {
        let Some(settings) = self.cluster.settings(config) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let file = self.file.name();
        let warnings = runtime.block_on(kept::warnings(&settings, &config.subscriptions, &file));
        // A name that is looked up may take longer than anybody waits.
        runtime.shutdown_background();
        match warnings {
            Some(Ok(warnings)) => warnings.iter().for_each(|one| {
                screen::say(&format!("warning: {}\nhelp: {}", one.what, one.help));
            }),
            Some(Err(error)) => {
                let why = screen::told(&error);
                screen::say(&format!("note: what the topics keep is not checked: {why}"));
            }
            None => screen::say(&format!(
                "note: {} does not answer, so what its topics keep is not checked",
                settings.brokers
            )),
        }
        Ok(())
    }
}

/// What is wrong with the handlers and the collector that the file names, such as a file of certificates that is not there.
fn handlers(config: &Config) -> Vec<BadHandler> {
    let named = config.subscriptions.iter().filter(|one| one.handler.is_some());
    let bad = named.filter_map(|one| redrive_push::handled(one).err());
    bad.chain(config.traces.iter().filter_map(|traces| Traces::new(traces, None).err())).collect()
}

fn meaning(config: &Config) -> String {
    let mut text = String::new();
    for subscription in &config.subscriptions {
        let name = subscription.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let _ = writeln!(text, "\n{name}{} consumed by {}", subscription.topic, subscription.group);
        let mut line = |what: &str, said: &str| {
            let _ = writeln!(text, "  {what:<10} {said}");
        };
        line("handler", &handling(subscription));
        line("classes", &classes(subscription));
        for class in Class::ALL {
            line(class.name(), &fate(subscription, class));
        }
        line("order", &order(subscription));
        line("delivery", &delivery(subscription));
        line("topics", &topics(subscription));
    }
    if let Some(traces) = &config.traces {
        let (url, share) = (&traces.endpoint.url, traces.sample);
        let _ = writeln!(
            text,
            "\na span of each attempt to {url}: of records whose producer is traced, and of a share of {share} of the others"
        );
    }
    text
}

/// Who handles the records, and how many at once for how long.
fn handling(subscription: &Subscription) -> String {
    let Subscription { concurrency, retry_concurrency, timeout, retry_timeout, .. } = subscription;
    let handler = handler_text::handler(subscription.handler.as_ref());
    let (first, retry) = (human::duration(*timeout), human::duration(*retry_timeout));
    let beside = format!("{concurrency} at once within {first} each");
    match concurrency == retry_concurrency && timeout == retry_timeout {
        true => format!("{handler}; {beside}, and as many retries"),
        false => format!("{handler}; {beside}, and {retry_concurrency} retries within {retry}"),
    }
}

/// How a failure gets its class. The rules are not repeated: a variable in them may stand for a secret.
fn classes(subscription: &Subscription) -> String {
    let classifier = &subscription.rules.classifier;
    let otherwise = format!("{} if nothing else says so", classifier.default);
    let own = human::count(classifier.own.len() as u64, "rule of its own", "rules of its own");
    let global = human::count(classifier.global.len() as u64, "of the defaults", "of the defaults");
    match (classifier.own.is_empty(), classifier.global.is_empty()) {
        (true, true) => otherwise,
        (false, true) => format!("by {own}; {otherwise}"),
        (true, false) => format!("by {global}; {otherwise}"),
        (false, false) => format!("by {own}, then {global}; {otherwise}"),
    }
}

/// What may happen twice.
fn delivery(subscription: &Subscription) -> String {
    let effects = handler_text::side_effects(subscription.handler.as_ref());
    match subscription.delivery {
        Delivery::AtLeastOnce => {
            "at least once: a crash or a rebalance may repeat a record; its topic, partition and offset are \
             the same each time"
                .to_owned()
        }
        Delivery::ExactlyOnce => format!(
            "exactly once for what is in Kafka: letters, waiting records and offsets are one transaction. \
             It does not cover {effects} (a database, a mail, a payment): a crash, a timeout or a rebalance may \
             repeat that, and the record's topic, partition and offset are what to recognise it by"
        ),
    }
}

/// What becomes of a failure of this class, stage by stage.
fn fate(subscription: &Subscription, class: Class) -> String {
    let rules = &subscription.rules;
    let mut stages = Vec::new();
    let mut stage = class;
    for _ in Class::ALL {
        let policy = &rules.policies[stage];
        if !policy.runs().is_empty() {
            let how = match stage {
                Class::Permanent | Class::Transient => "tried again in place",
                Class::Outage => "everything waits",
                Class::NotReady => "set aside while its neighbours go on",
            };
            stages.push(format!("{how}, {policy}"));
        }
        if policy.is_endless() {
            return stages.join("; then ");
        }
        stage = match rules.exhausted[stage] {
            Exhausted::Shelve => Class::NotReady,
            Exhausted::Block => Class::Outage,
            Exhausted::Bury => {
                stages.push("a dead letter".to_owned());
                break;
            }
            Exhausted::Drop => {
                stages.push("dropped and counted".to_owned());
                break;
            }
        };
    }
    stages.join("; then ")
}

fn order(subscription: &Subscription) -> String {
    let by = match &subscription.order_by {
        OrderBy::None => return "none: records are independent of each other".to_owned(),
        OrderBy::Key => "by key".to_owned(),
        OrderBy::Partition => "by partition: one record after the other".to_owned(),
        OrderBy::Header(name) => format!("by the header {name}"),
        OrderBy::Json(pointer) => format!("by {pointer} in the JSON value"),
    };
    let followers = match subscription.followers {
        Followers::Pass => "those behind a dead letter go on",
        Followers::Hold => "those behind a dead letter wait until it is replayed or resolved",
        Followers::Bury => "those behind a dead letter follow it into the letters",
    };
    format!("{by}; {followers}")
}

fn topics(subscription: &Subscription) -> String {
    let waiting: Vec<String> = match &subscription.rules.strategy {
        Strategy::Shelf => vec![subscription.shelf.to_string()],
        Strategy::Postgres => vec![],
        Strategy::Return(topic) => vec![topic.to_string()],
        Strategy::Ladder(rungs) => rungs.values().map(ToString::to_string).collect(),
        Strategy::Service { buckets, back } => {
            buckets.values().chain(std::iter::once(back)).map(ToString::to_string).collect()
        }
    };
    let waiting = match waiting.is_empty() {
        true => "nothing waits in Kafka".to_owned(),
        false => format!("waits in {}", waiting.join(", ")),
    };
    let made = match subscription.auto_create {
        true => "made and mended when it starts",
        false => "verified when it starts; redrive topics apply makes them",
    };
    format!("{waiting}; dead letters in {}; pauses in {}; {made}", subscription.letters, pauses::TOPIC)
}
