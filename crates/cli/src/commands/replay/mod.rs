//! `redrive replay`: the jobs that send letters back, seen and steered from any machine.

mod bar;
mod change;
mod list;
mod running;
mod show;
mod words;

use std::collections::BTreeMap;
use std::io;

use clap::{Args, Subcommand};
use redrive::Settings;
use redrive_config::Config;
use redrive_core::Topic;
use redrive_letters::jobs::{Followed, JobId};
use redrive_letters::replay::{Error, control};

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

pub(crate) use running::{Driven, drive};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ReplayCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the jobs, the newest last
    List(list::List),
    /// Show everything about a job
    Show(show::Show),
    /// Watch a job until it has ended and everything is heard of
    Watch(show::Watch),
    /// Have a job wait, wherever it runs
    Pause(change::Pause),
    /// Let a job go on, and run it here: also after a crash, from exactly where it was
    Resume(change::Resume),
    /// End a job where it is
    Cancel(change::Cancel),
}

/// Where the jobs are.
#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

impl ReplayCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ran = runtime.block_on(async {
            match self.command {
                Command::List(list) => list.run().await,
                Command::Show(show) => show.run().await,
                Command::Watch(watch) => watch.run().await,
                Command::Pause(pause) => pause.run().await,
                Command::Resume(resume) => resume.run().await,
                Command::Cancel(cancel) => cancel.run().await,
            }
        });
        // A thread may still wait for the broker: nobody waits for the thread.
        runtime.shutdown_background();
        ran
    }
}

impl Place {
    pub(crate) fn reach(&self) -> Result<(Settings, Option<Config>), Exit> {
        self.cluster.reach(&self.file)
    }

    async fn read(&self, settings: &Settings) -> Result<Followed, Exit> {
        Followed::read(settings).await.map_err(|error| cluster::failed(&error, &self.file.name()))
    }

    /// The job that is meant, by how its id begins.
    async fn job(&self, settings: &Settings, begins: &str) -> Result<(Followed, JobId), Exit> {
        let followed = self.read(settings).await?;
        match control::find(&followed.state, begins).map(|job| job.id.clone()) {
            Ok(id) => Ok((followed, id)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    pub(crate) fn failed(&self, error: &Error) -> Exit {
        failed(error, &self.file.name())
    }
}

/// Says what went wrong, and what may help.
pub(crate) fn failed(error: &Error, file: &str) -> Exit {
    let help = match error {
        Error::Kafka(error) => return cluster::failed(error, file),
        Error::NoJob(_) | Error::Several { .. } => Some("redrive replay list shows the jobs there are"),
        Error::Refused { .. } => {
            Some("mend the topic, then redrive replay resume goes on from exactly where it was")
        }
        Error::Unread => Some("try again in a minute: the broker ends transactions that nobody ends"),
        _ => None,
    };
    screen::say(&format!("error: {}", screen::told(error)));
    if let Some(help) = help {
        screen::say(&format!("help: {help}"));
    }
    match error {
        Error::NoJob(_) => Exit::NothingMatched,
        Error::Several { .. } => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// The shelves of a file that are not called as they usually are.
pub(crate) fn shelves(config: Option<&Config>) -> BTreeMap<(Topic, String), Topic> {
    let subscriptions = config.iter().flat_map(|config| &config.subscriptions);
    subscriptions.map(|one| ((one.topic.clone(), one.group.clone()), one.shelf.clone())).collect()
}
