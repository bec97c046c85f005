//! `redrive send`: a record for a topic, now or at a time.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use redrive::delayed::{Attendance, attendance};
use redrive::send::{self, Scheduled};
use redrive::{Clock, Cluster, Origin, Outgoing, Publisher, Publishing, Settings, Timestamp, Topic};
use redrive_core::spelling;
use redrive_kafka::{Admin, Error};
use serde_json::json;

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::when::{When, length};
use crate::{screen, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive send orders --key customer-7 --value '{\"id\": 42}'
  redrive send orders --key customer-7 --value-file order.json --header trace-id=abc
  redrive send orders --key customer-7 --value hello --in 10m
  cat order.json | redrive send orders --at 2026-11-01T06:00:00Z
  redrive send --deliver                    delivers what is scheduled, until Ctrl-C

With a time the record goes to the topic redrive.send and waits on its shelf until then, be it months.
Whoever runs `redrive send --deliver` delivers it, exactly once; several may run. What waits:
  redrive delayed list --topic redrive.send --group redrive-send
Key, value and headers arrive byte for byte.")]
pub(crate) struct Send {
    /// The topic
    #[arg(required_unless_present = "deliver")]
    topic: Option<Topic>,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The record's key; none if absent
    #[arg(short, long)]
    key: Option<String>,
    /// Its value; what comes from stdin if absent
    #[arg(short, long, conflicts_with_all = ["value_file", "tombstone"], allow_hyphen_values = true)]
    value: Option<String>,
    /// A file with its value
    #[arg(long, value_name = "FILE", conflicts_with = "tombstone")]
    value_file: Option<PathBuf>,
    /// No value: null, which deletes a key of a compacted topic
    #[arg(long)]
    tombstone: bool,
    /// A header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The partition, whatever the key
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// Deliver it at this time
    #[arg(long, value_name = "TIME", conflicts_with = "later", allow_hyphen_values = true)]
    at: Option<When>,
    /// Deliver it so long from now
    #[arg(long = "in", value_name = "DURATION", value_parser = length)]
    later: Option<Duration>,
    /// Deliver what is scheduled, until Ctrl-C
    #[arg(long, conflicts_with_all = ["topic", "key", "value", "value_file", "tombstone", "headers", "partition", "at", "later"])]
    deliver: bool,
    /// Say where it is as JSON
    #[arg(long)]
    json: bool,
}

fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "write NAME=VALUE, such as trace-id=abc".to_owned())
}

impl Send {
    pub(crate) fn run(&self) -> io::Result<Exit> {
        let (settings, _) = match self.cluster.reach(&self.file) {
            Ok(reached) => reached,
            Err(exit) => return Ok(exit),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let Some(topic) = &self.topic else { return runtime.block_on(self.deliver(&settings)) };
        let value = match self.value() {
            Ok(value) => value,
            Err(exit) => return Ok(exit),
        };
        let outgoing = Outgoing {
            partition: self.partition,
            key: self.key.clone().map(Bytes::from),
            value,
            headers: self.headers.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect(),
            ..Outgoing::to(topic.clone())
        };
        match runtime.block_on(self.send(&settings, outgoing)) {
            Ok(sent) => sent,
            Err(error) => Ok(cluster::failed(&error, &self.file.name())),
        }
    }

    fn value(&self) -> Result<Option<Bytes>, Exit> {
        if self.tombstone {
            return Ok(None);
        }
        if let Some(value) = &self.value {
            return Ok(Some(value.clone().into()));
        }
        let (name, read) = match &self.value_file {
            Some(file) => (file.display().to_string(), std::fs::read(file)),
            None => {
                if io::stdin().is_terminal() {
                    screen::say("the value is read from here; Ctrl-D ends it");
                }
                let mut value = Vec::new();
                ("stdin".to_owned(), io::stdin().read_to_end(&mut value).map(|_| value))
            }
        };
        let unreadable = |error| {
            screen::say(&format!("error: cannot read the value from {name}: {error}"));
            Exit::Failed
        };
        read.map(|value| Some(value.into())).map_err(unreadable)
    }

    async fn send(&self, settings: &Settings, outgoing: Outgoing) -> Result<io::Result<Exit>, Error> {
        let admin = Admin::new(settings)?;
        if let Some(exit) = self.refusal(&admin, &outgoing).await? {
            return Ok(Ok(exit));
        }
        let publisher = Publisher::new(settings, &Publishing::default())?;
        let now = Clock::system().now().wall;
        let due = self.at.map(|at| at.at(now)).or(self.later.map(|later| now.plus(later)));
        let Some(due) = due.filter(|due| *due > now) else {
            if due.is_some() {
                screen::say("that time has passed: it is delivered at once");
            }
            let at = publisher.publish(outgoing).await?;
            return Ok(self.tell(&json!({ "origin": at.to_string() }), &at));
        };
        send::prepare(&admin).await?;
        let target = outgoing.topic.clone();
        let at = publisher.publish(Scheduled { due, outgoing }.write()).await?;
        let attended = attendance(&admin, send::GROUP, &at.topic, at.partition).await;
        let attended = attended.unwrap_or(Attendance::Unsure);
        let told = json!({
            "queued": at.to_string(),
            "topic": target.as_str(),
            "due": when::shown(due),
            "due_ms": due.millis(),
            "deliverer": word(attended),
        });
        screen::say(&queued(&target, due, now, attended));
        Ok(self.tell(&told, &at))
    }

    /// Why it cannot be sent: nobody would see that it fails when its time has come.
    async fn refusal(&self, admin: &Admin, outgoing: &Outgoing) -> Result<Option<Exit>, Error> {
        let topic = &outgoing.topic;
        let found = admin.outline(std::slice::from_ref(topic)).await?;
        let Some(state) = found.get(topic) else {
            screen::say(&format!("error: there is no topic {topic}"));
            let names = admin.topics().await?;
            match spelling::nearest(topic.as_str(), names.iter().map(Topic::as_str)) {
                Some(near) => screen::say(&format!("help: did you mean {near}?")),
                None => screen::say("help: make it first; nothing is sent to a topic that is not there"),
            }
            return Ok(Some(Exit::Failed));
        };
        match outgoing.partition.filter(|partition| *partition >= state.partitions) {
            Some(partition) => {
                let partitions = state.partitions;
                screen::say(&format!(
                    "error: {topic} has {partitions} partitions; there is none with number {partition}"
                ));
                Ok(Some(Exit::Usage))
            }
            None => Ok(None),
        }
    }

    fn tell(&self, told: &serde_json::Value, at: &Origin) -> io::Result<Exit> {
        screen::data(&if self.json { format!("{told}\n") } else { format!("{at}\n") })?;
        Ok(Exit::Ok)
    }

    async fn deliver(&self, settings: &Settings) -> io::Result<Exit> {
        tracing_subscriber::fmt()
            .with_writer(io::stderr)
            .with_ansi(screen::is_coloured())
            .with_max_level(tracing::Level::WARN)
            .init();
        match self.delivered(settings).await {
            Ok(()) => {
                screen::say("stopped");
                Ok(Exit::Ok)
            }
            Err(redrive::Error::Kafka(error)) => Ok(cluster::failed(&error, &self.file.name())),
            Err(error) => {
                screen::say(&format!("error: {}", screen::told(&error)));
                Ok(Exit::Failed)
            }
        }
    }

    async fn delivered(&self, settings: &Settings) -> Result<(), redrive::Error> {
        send::prepare(&Admin::new(settings)?).await?;
        let cluster = Cluster::with(&settings.brokers, settings.properties.clone()).await?;
        let mut running = send::deliverer(&cluster).start().await?;
        screen::say("delivering what is scheduled; Ctrl-C stops");
        tokio::select! {
            () = redrive::stop_signal() => {}
            ended = running.ended() => return ended,
        }
        running.stop().await
    }
}

fn word(attended: Attendance) -> &'static str {
    match attended {
        Attendance::Present => "runs",
        Attendance::Unsure => "unsure",
        Attendance::Unseen | Attendance::Absent => "none",
    }
}

fn queued(target: &Topic, due: Timestamp, now: Timestamp, attended: Attendance) -> String {
    let when = format!("{}, {}", when::shown(due), when::from_now(due, now));
    let who = match attended {
        Attendance::Present => "a deliverer runs",
        Attendance::Unsure => "a deliverer is starting, or it is not known whether one runs",
        Attendance::Unseen | Attendance::Absent => {
            "no deliverer runs: redrive send --deliver, now or by then, delivers it"
        }
    };
    format!("queued for {target} at {when}; {who}")
}
