//! `redrive replay pause|resume|cancel`: what is wanted of a job, from any machine.

use std::io;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_letters::jobs::{Job, JobId, Want, Wish};
use redrive_letters::journal;
use redrive_letters::replay::{control, deeds, lanes, take_over};

use super::running::{Driven, drive};
use super::{Place, words};
use crate::exit::Exit;
use crate::screen;
use crate::when::length;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay pause k3f9 --reason 'the ledger is slow'

The process that runs the job heeds it within moments. redrive replay resume lets it go on.")]
pub(super) struct Pause {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay resume k3f9               run it here, from exactly where it was
  redrive replay resume k3f9 --elsewhere   let the process go on that has it

A job that pauses because of its first letters goes on whatever becomes of those: the others are sent.
A job is run by one process at a time: another that still runs it is fenced off, and says so. No letter is sent
twice.")]
pub(super) struct Resume {
    #[command(flatten)]
    change: Change,
    /// Only say that it may go on: the process that has it does
    #[arg(long)]
    elsewhere: bool,
    /// How long to wait for what becomes of the last letters
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "30s")]
    wait: Duration,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay cancel k3f9 --reason 'wrong letters'

What was sent stays sent; the other letters are open again.")]
pub(super) struct Cancel {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
struct Change {
    /// The job
    #[arg(value_name = "JOB")]
    id: String,
    #[command(flatten)]
    place: Place,
    /// Why; it is written down
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl Change {
    async fn find(&self) -> Result<(Settings, Option<redrive_config::Config>, Job), Exit> {
        let (settings, config) = self.place.reach()?;
        let (followed, id) = self.place.job(&settings, &self.id).await?;
        let job = followed.state.job(&id).cloned().ok_or(Exit::NothingMatched)?;
        if job.end.is_some() {
            screen::say(&format!("error: job {id} is {} already", words::standing(&job)));
            return Err(Exit::Failed);
        }
        Ok((settings, config, job))
    }

    async fn written(&self, settings: &Settings, what: &str, job: &Job) -> bool {
        let who = (journal::writer(), self.reason.as_str());
        let deed = deeds::changes(&Clock::system(), (&who.0, who.1), what, job);
        let written = journal::append(settings, deed).await;
        if let Err(error) = &written {
            screen::say(&format!("error: {}", screen::told(error)));
        }
        written.is_ok()
    }
}

impl Pause {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, _, job) = match self.change.find().await {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        if !self.change.written(&settings, "replay pause", &job).await {
            return Ok(Exit::Failed);
        }
        let (at, why) = (Clock::system().now().wall.millis(), self.change.reason.clone());
        let wish = Wish { want: Want::Pause, by: journal::writer(), at, why, canary: false };
        if let Err(error) = control::wish(&settings, &job.id, &wish).await {
            return Ok(self.change.place.failed(&error));
        }
        screen::data(&format!("job {} pauses: {}\n", job.id, words::all_counts(&job.counts())))?;
        Ok(Exit::Ok)
    }
}

impl Resume {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, config, job) = match self.change.find().await {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        if !self.change.written(&settings, "replay resume", &job).await {
            return Ok(Exit::Failed);
        }
        let by = journal::writer();
        let wish = job.go_on(&by, Clock::system().now().wall, &self.change.reason);
        if self.elsewhere {
            return Ok(match control::wish(&settings, &job.id, &wish).await {
                Ok(()) => {
                    screen::data(&format!("job {} may go on where it is run\n", job.id))?;
                    Exit::Ok
                }
                Err(error) => self.change.place.failed(&error),
            });
        }
        let held = match take_over(&settings, &Clock::system(), &job.id, Some(wish), false).await {
            Ok(held) => held,
            Err(error) => return Ok(self.change.place.failed(&error)),
        };
        say_where(&job.id, held.job());
        self.hold(&settings, &job, &by).await;
        let driven = Driven {
            file: self.change.place.file.name(),
            settings,
            config: config.as_ref(),
            by,
            wait: if job.silent() < job.begun.letters { self.wait } else { Duration::ZERO },
        };
        drive(&driven, held).await
    }
}

impl Resume {
    /// Announces anew the lanes whose letters are not all sent: their time may be over.
    async fn hold(&self, settings: &Settings, job: &Job, by: &str) {
        let who = (by, self.change.reason.as_str());
        let told = lanes::announce_again(settings, &Clock::system(), job, who).await;
        match told {
            Ok(told) => told.not.iter().for_each(|(lane, why)| {
                screen::say(&format!("warning: the lane of {} is not held: {why}", lane.leader));
            }),
            Err(error) => screen::say(&format!("warning: no lane is held: {}", screen::told(&error))),
        }
    }
}

fn say_where(id: &JobId, job: Option<&Job>) {
    let Some(job) = job else { return };
    screen::say(&format!("job {id} goes on behind letter {} of {}", job.mark.upto, job.begun.letters));
}

impl Cancel {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, _, job) = match self.change.find().await {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        if !self.change.written(&settings, "replay cancel", &job).await {
            return Ok(Exit::Failed);
        }
        let clock = Clock::system();
        match control::cancel(&settings, &clock, &job.id, &journal::writer(), &self.change.reason).await {
            Ok(job) => {
                screen::data(&format!(
                    "job {} is {}: {}\n",
                    job.id,
                    words::standing(&job),
                    words::all_counts(&job.counts())
                ))?;
                Ok(Exit::Ok)
            }
            Err(error) => Ok(self.change.place.failed(&error)),
        }
    }
}
