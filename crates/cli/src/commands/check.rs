//! `redrive check`: every problem of a configuration, or what it means in words.

use std::fmt::Write;
use std::io;

use clap::Args;
use redrive_config::{Config, Subscription};
use redrive_core::Class;
use redrive_core::lanes::Followers;
use redrive_core::route::{Exhausted, Strategy};
use redrive_core::settings::OrderBy;
use redrive_push::BadHandler;

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive check
  redrive check -c staging.toml
  REDRIVE_CONFIG=staging.toml redrive check")]
pub(crate) struct Check {
    #[command(flatten)]
    file: ConfigFile,
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
        Ok(Exit::Ok)
    }
}

/// What is wrong with the handlers that the file names, such as a file of certificates that is not there.
fn handlers(config: &Config) -> Vec<BadHandler> {
    let named = config.subscriptions.iter().filter(|one| one.handler.is_some());
    named.filter_map(|one| redrive_push::handled(one).err()).collect()
}

fn meaning(config: &Config) -> String {
    let mut text = String::new();
    for subscription in &config.subscriptions {
        let _ = writeln!(text, "\n{} consumed by {}", subscription.topic, subscription.group);
        for class in Class::ALL {
            let _ = writeln!(text, "  {:<10} {}", class.name(), fate(subscription, class));
        }
        let _ = writeln!(text, "  {:<10} {}", "order", order(subscription));
        let _ = writeln!(text, "  {:<10} {}", "topics", topics(subscription));
    }
    text
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
    [waiting, vec![subscription.letters.to_string()]].concat().join(", ")
}
