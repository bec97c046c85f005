//! Which shelves are looked at: those of a file, those that are named, or all there are.

use clap::Args;
use redrive::Settings;
use redrive::delayed::{Error, Keep, View};
use redrive_config::Config;
use redrive_core::settings::Delay;
use redrive_core::topic::{Purpose, derived};
use redrive_core::{Topic, spelling};
use redrive_kafka::Admin;

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(super) struct Shelves {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only records of this source topic
    #[arg(short, long)]
    topic: Option<Topic>,
    /// Only records of this consumer group
    #[arg(short, long)]
    group: Option<String>,
    /// The shelf's topic, where it is not TOPIC.GROUP.shelf
    #[arg(long, value_name = "TOPIC")]
    shelf: Option<Topic>,
    /// Only this partition
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(0..))]
    pub(super) partition: Option<i32>,
}

/// The shelves, and how to reach them.
pub(super) struct Targets {
    pub(super) settings: Settings,
    pub(super) targets: Vec<Target>,
    file: Option<String>,
}

pub(super) struct Target {
    pub(super) shelf: Topic,
    /// The consumer group, where it is known before the shelf is read.
    pub(super) group: Option<String>,
}

impl Shelves {
    /// The shelves that are meant; `of` is the topic of the origins that were named.
    pub(super) async fn targets(&self, of: Option<&Topic>) -> Result<Targets, Exit> {
        let topic = of.or(self.topic.as_ref());
        let (settings, config) = self.cluster.reach(&self.file)?;
        let file = config.as_ref().map(|_| self.file.name());
        let found = |targets| Ok(Targets { settings: settings.clone(), targets, file: file.clone() });
        if let Some(shelf) = &self.shelf {
            return found(vec![Target { shelf: shelf.clone(), group: self.group.clone() }]);
        }
        let configured = config.as_ref().map(|config| self.configured(config, topic)).unwrap_or_default();
        if !configured.is_empty() {
            return found(configured);
        }
        if let (Some(topic), Some(group)) = (topic, &self.group) {
            let shelf = derived(topic, group, Purpose::Shelf).map_err(|error| {
                screen::say(&format!("error: {error}\nhelp: name the shelf's topic with --shelf"));
                Exit::Usage
            })?;
            return found(vec![Target { shelf, group: Some(group.clone()) }]);
        }
        if let Some(config) = &config {
            return Err(self.not_in_the_file(config));
        }
        let all = self.all(&settings, topic).await?;
        if all.is_empty() {
            screen::say(&format!(
                "error: {} has no topic that ends in .shelf{}\nhelp: name it with --shelf, or make it with redrive topics apply",
                settings.brokers,
                topic.map(|topic| format!(" for {topic}")).unwrap_or_default()
            ));
            return Err(Exit::Failed);
        }
        found(all)
    }

    /// Those of the file that fit what was named.
    fn configured(&self, config: &Config, topic: Option<&Topic>) -> Vec<Target> {
        let named = config.subscriptions.iter().filter(|one| {
            topic.is_none_or(|topic| *topic == one.topic)
                && self.group.as_ref().is_none_or(|group| *group == one.group)
        });
        let mut targets = Vec::new();
        for one in named {
            match one.delay {
                Delay::Shelf => {
                    targets.push(Target { shelf: one.shelf.clone(), group: Some(one.group.clone()) });
                }
                Delay::Ladder | Delay::Return | Delay::Service | Delay::Postgres => screen::say(&format!(
                    "note: {} has no shelf as {}: its delay is \"{}\"",
                    one.topic, one.group, one.delay
                )),
            }
        }
        targets
    }

    fn not_in_the_file(&self, config: &Config) -> Exit {
        let all: Vec<_> =
            config.subscriptions.iter().map(|one| format!("{} as {}", one.topic, one.group)).collect();
        let file = self.file.name();
        let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        screen::say(&format!(
            "error: {file} has no such subscription with a shelf; it has {there}\nhelp: name both --topic and --group, or the shelf's topic with --shelf"
        ));
        Exit::Usage
    }

    /// All there are, by their names.
    async fn all(&self, settings: &Settings, topic: Option<&Topic>) -> Result<Vec<Target>, Exit> {
        let begins = topic.map(|topic| format!("{topic}.")).unwrap_or_default();
        let ends = self.group.as_ref().map_or(".shelf".to_owned(), |group| format!(".{group}.shelf"));
        let names = names(settings).await.map_err(|error| self.failed(&error))?;
        let fits = |name: &Topic| name.as_str().starts_with(&begins) && name.as_str().ends_with(&ends);
        let target = |shelf| Target { shelf, group: self.group.clone() };
        Ok(names.into_iter().filter(fits).map(target).collect())
    }

    fn failed(&self, error: &redrive_kafka::Error) -> Exit {
        cluster::failed(error, &self.file.name())
    }
}

impl Targets {
    /// The one shelf that is meant.
    pub(super) fn one(&self) -> Result<&Target, Exit> {
        match self.targets.as_slice() {
            [one] => Ok(one),
            many => {
                let names: Vec<_> = many.iter().map(|one| one.shelf.as_str()).collect();
                screen::say(&format!(
                    "error: several groups have it: {}\nhelp: name one with --group",
                    names.join(", ")
                ));
                Err(Exit::Usage)
            }
        }
    }

    /// Reads a shelf; what is wrong is told with its remedy.
    pub(super) async fn view(&self, target: &Target, partitions: &[i32], keep: Keep) -> Result<View, Exit> {
        let shelf = target.shelf.clone();
        let shown = {
            let shelf = shelf.clone();
            move |progress: redrive::delayed::Progress| {
                screen::progress(&format!("{shelf}: {} of {} entries", progress.read, progress.of));
            }
        };
        let read = View::read(&self.settings, shelf, partitions, keep, shown).await;
        screen::progress("");
        match read {
            Ok(view) => Ok(view),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    pub(super) async fn failed(&self, error: &Error) -> Exit {
        let help = match error {
            Error::Kafka(error) => {
                return cluster::failed(error, self.file.as_deref().unwrap_or("redrive.toml"));
            }
            Error::NoShelf(shelf) => Some(self.missing(shelf).await),
            Error::NoPartition { .. } => None,
            _ => Some("run the version that wrote it, or a later one".to_owned()),
        };
        screen::say(&format!("error: {}", screen::told(error)));
        if let Some(help) = help {
            screen::say(&format!("help: {help}"));
        }
        Exit::Failed
    }

    /// What to do about a shelf that is not there.
    async fn missing(&self, shelf: &Topic) -> String {
        let names = names(&self.settings).await.unwrap_or_default();
        let names: Vec<_> = names.iter().map(Topic::as_str).filter(|name| name.ends_with(".shelf")).collect();
        if let Some(near) = spelling::nearest(shelf.as_str(), names.iter().copied()) {
            return format!("did you mean --shelf {near}?");
        }
        let make = match &self.file {
            _ if shelf.as_str().starts_with(redrive::send::TOPIC) => {
                "redrive send --deliver makes it, and takes over what was sent".to_owned()
            }
            Some(file) => format!("redrive topics apply -c {file} makes it"),
            None => "redrive topics apply makes it, and so does a worker with auto-create".to_owned(),
        };
        match names.as_slice() {
            [] => format!("{make}; there is no topic that ends in .shelf"),
            some => format!("{make}; there are {}", some.join(", ")),
        }
    }
}

async fn names(settings: &Settings) -> Result<Vec<Topic>, redrive_kafka::Error> {
    Ok(Admin::new(settings)?.topics().await?.into_iter().collect())
}
