//! `redrive pause|resume SUBSCRIPTION`: what every instance heeds, now and after a restart.

use std::env;
use std::io;

use clap::Args;
use redrive::pauses::{self, Pauses, Wanted};
use redrive::{Clock, Pause, Settings, Topic};
use redrive_config::{Config, Subscription};
use redrive_core::spelling;
use redrive_kafka::{Admin, Error};
use serde_json::json;

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::{screen, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive pause orders/billing --reason 'the ledger is being moved'
  redrive pause billing                    by the name that the file gives it
  redrive resume orders/billing

Nothing new of it starts, on any instance; what runs may end. Its partitions stay where they are, what waits
goes on waiting, nothing is lost. It is written to the topic redrive.state, so that it holds for instances
that start later, too. A subscription that is paused is ready, and says that it is paused.")]
pub(crate) struct PauseCommand {
    #[command(flatten)]
    whose: Whose,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Who wants it [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive resume orders/billing
  redrive resume billing                   by the name that the file gives it")]
pub(crate) struct Resume {
    #[command(flatten)]
    whose: Whose,
}

#[derive(Args)]
struct Whose {
    /// The subscription: TOPIC/GROUP, or the name that the file gives it
    subscription: String,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Say what is so as JSON
    #[arg(long)]
    json: bool,
}

impl PauseCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let by = self.by.or_else(|| env::var("USER").ok().filter(|name| !name.is_empty()));
        let since = Clock::system().now().wall;
        let pause = Pause { by: by.unwrap_or_else(|| "unknown".to_owned()), reason: self.reason, since };
        self.whose.run(Some(pause))
    }
}

impl Resume {
    pub(crate) fn run(self) -> io::Result<Exit> {
        self.whose.run(None)
    }
}

impl Whose {
    fn run(&self, pause: Option<Pause>) -> io::Result<Exit> {
        let (settings, config) = match self.cluster.reach(&self.file) {
            Ok(reached) => reached,
            Err(exit) => return Ok(exit),
        };
        let (topic, group) = match self.find(config.as_ref()) {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        let wanted = Wanted { topic, group, pause };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match runtime.block_on(written(&settings, &wanted)) {
            Ok((before, now)) => self.tell(&wanted, before.as_ref(), now.as_ref()),
            Err(error) => Ok(cluster::failed(&error, &self.file.name())),
        }
    }

    /// The subscription that is meant.
    fn find(&self, config: Option<&Config>) -> Result<(Topic, String), Exit> {
        let asked = &self.subscription;
        let pair = asked.split_once('/').filter(|(_, group)| !group.is_empty());
        let pair = pair.and_then(|(topic, group)| Some((topic.parse::<Topic>().ok()?, group.to_owned())));
        let Some(config) = config else {
            return pair.ok_or_else(|| {
                screen::say(&format!(
                    "error: {asked} is not TOPIC/GROUP, and there is no file that names it"
                ));
                Exit::Usage
            });
        };
        let is_it = |one: &&Subscription| {
            let same_pair =
                pair.as_ref().is_some_and(|(topic, group)| one.topic == *topic && one.group == *group);
            one.name.as_ref() == Some(asked) || same_pair
        };
        if let Some(found) = config.subscriptions.iter().find(is_it) {
            return Ok((found.topic.clone(), found.group.clone()));
        }
        let file = self.file.name();
        screen::say(&format!("error: {file} has no subscription {asked}"));
        let names: Vec<String> = config.subscriptions.iter().flat_map(names).collect();
        match spelling::nearest(asked, names.iter().map(String::as_str)) {
            Some(near) => screen::say(&format!("help: did you mean {near}?")),
            None => screen::say(&format!("help: there are {}", names.join(", "))),
        }
        Err(Exit::NothingMatched)
    }

    fn tell(&self, wanted: &Wanted, before: Option<&Pause>, now: Option<&Pause>) -> io::Result<Exit> {
        let Wanted { topic, group, .. } = wanted;
        let text = match now {
            Some(pause) => {
                let why = pause.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{topic}/{group} is paused by {} since {}{why}", pause.by, when::shown(pause.since))
            }
            None if before.is_some() => format!("{topic}/{group} goes on"),
            None => format!("{topic}/{group} was not paused"),
        };
        if self.json {
            let paused = now.map(
                |pause| json!({ "by": pause.by, "reason": pause.reason, "since_ms": pause.since.millis() }),
            );
            let told = json!({ "topic": topic.as_str(), "group": group, "paused": paused });
            screen::data(&format!("{told}\n"))?;
        } else {
            screen::data(&format!("{text}\n"))?;
        }
        if now != before {
            screen::say("it is written; every instance that runs heeds it within moments");
        }
        Ok(Exit::Ok)
    }
}

fn names(subscription: &Subscription) -> Vec<String> {
    let pair = format!("{}/{}", subscription.topic, subscription.group);
    subscription.name.clone().into_iter().chain([pair]).collect()
}

/// Writes it unless it is so, and reads back what is so.
async fn written(settings: &Settings, wanted: &Wanted) -> Result<(Option<Pause>, Option<Pause>), Error> {
    let admin = Admin::new(settings)?;
    let of = |pauses: &Pauses| pauses.of(&wanted.topic, &wanted.group).cloned();
    let before = of(&Pauses::read(settings, &admin).await?);
    if before.is_none() && wanted.pause.is_none() {
        return Ok((None, None));
    }
    pauses::set(settings, wanted).await?;
    let now = of(&Pauses::read(settings, &admin).await?);
    Ok((before, now))
}
