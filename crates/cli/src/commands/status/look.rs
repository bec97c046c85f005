//! What is needed to look, and what was found.

use std::fmt::Display;
use std::time::Duration;

use redrive::delayed::View;
use redrive::pauses::Pauses;
use redrive::{Settings, Timestamp, Topic};
use redrive_config::Config;
use redrive_core::settings::Delay;
use redrive_kafka::{Admin, Error};

use super::trouble::Trouble;
use crate::exit::Exit;
use crate::{cluster, screen};

pub(super) struct Look<'a> {
    pub(super) settings: &'a Settings,
    pub(super) admin: &'a Admin,
    pub(super) config: Option<&'a Config>,
    /// What a command says to work with the same cluster.
    pub(super) flags: String,
    pub(super) file: String,
    pub(super) now: Timestamp,
    pub(super) patience: Duration,
    pub(super) wrong: Vec<Trouble>,
}

impl Look<'_> {
    pub(super) fn add(&mut self, kind: &str, place: &(impl Display + ?Sized), what: String, remedy: String) {
        self.wrong.push(Trouble { kind: kind.to_owned(), place: place.to_string(), what, remedy });
    }

    /// A command for the same cluster.
    pub(super) fn command(&self, deed: &str) -> String {
        format!("redrive {deed} {}", self.flags)
    }

    /// The command that consumes this.
    pub(super) fn run(&self, flow: &Flow) -> String {
        match self.config {
            _ if flow.group == redrive::send::GROUP => self.command("send --deliver"),
            Some(_) => format!("redrive run -c {}", self.file),
            None => "redrive run".to_owned(),
        }
    }

    /// Whoever may not see one thing still sees the others; whoever reaches nobody is told so.
    pub(super) fn or_unseen<T>(&mut self, place: &str, found: Result<T, Error>) -> Result<Option<T>, Exit> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if cluster::is_out_of_reach(&error) => Err(cluster::failed(&error, &self.file)),
            Err(error) => {
                let remedy = format!("redrive acls -c {}", self.file);
                self.add("unseen", place, format!("cannot be looked at: {}", screen::told(&error)), remedy);
                Ok(None)
            }
        }
    }
}

/// What is consumed, and by whom.
pub(super) struct Flow {
    pub(super) topic: Topic,
    pub(super) group: String,
    pub(super) shelf: Option<Topic>,
}

impl Flow {
    /// Those of the file; without one, those that shelves tell of, and those that somebody paused.
    pub(super) fn of(config: Option<&Config>, views: &[View], pauses: &Pauses) -> Vec<Self> {
        if let Some(config) = config {
            let flow = |one: &redrive_config::Subscription| Self {
                topic: one.topic.clone(),
                group: one.group.clone(),
                shelf: (one.delay == Delay::Shelf).then(|| one.shelf.clone()),
            };
            let mut flows: Vec<Self> = config.subscriptions.iter().map(flow).collect();
            let of_others =
                views.iter().filter(|view| view.shelf().as_str().starts_with(redrive::send::TOPIC));
            flows.extend(of_others.filter_map(Self::told_by));
            return flows;
        }
        let mut flows: Vec<Self> = views.iter().filter_map(Self::told_by).collect();
        for (topic, group, _) in pauses.all() {
            if !flows.iter().any(|flow| flow.topic == *topic && flow.group == group) {
                flows.push(Self { topic: topic.clone(), group: group.to_owned(), shelf: None });
            }
        }
        flows
    }

    fn told_by(view: &View) -> Option<Self> {
        let identity = view.identity()?;
        let (topic, group) = (identity.topic.parse().ok()?, identity.group.clone());
        Some(Self { topic, group, shelf: Some(view.shelf().clone()) })
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.topic, self.group)
    }
}
