//! `redrive replay list`: the jobs there are.

use std::io;

use clap::Args;
use redrive::Clock;
use redrive_letters::export;
use redrive_letters::jobs::{Ending, Job, Kind, Standing};
use serde_json::Value;

use super::{Output, Place, words};
use crate::exit::Exit;
use crate::{screen, table, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay list
  redrive replay list --all -o json        also what was resolved, purged and erased

STATE is running while a process sends letters, and interrupted when that stopped or nothing was heard of it for half
a minute: redrive replay resume ID goes on with it.")]
pub(super) struct List {
    #[command(flatten)]
    place: Place,
    /// Also jobs that send nothing, and those that withdrew for another
    #[arg(long)]
    all: bool,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl List {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, _) = match self.place.reach() {
            Ok(reached) => reached,
            Err(exit) => return Ok(exit),
        };
        let followed = match self.place.read(&settings).await {
            Ok(followed) => followed,
            Err(exit) => return Ok(exit),
        };
        let shown = |job: &&Job| {
            let withdrew = job.standing() == Standing::Ended(Ending::Withdrawn);
            self.all || job.begun.kind == Kind::Replay && !withdrew
        };
        let jobs: Vec<&Job> = followed.state.jobs().into_iter().filter(shown).collect();
        if jobs.is_empty() {
            screen::say("there are no jobs");
            return Ok(Exit::NothingMatched);
        }
        let now = Clock::system().now().wall;
        match self.output {
            Output::Table => {
                let head = [
                    "JOB",
                    "KIND",
                    "STATE",
                    "LETTERS",
                    "SENT",
                    "SUCCEEDED",
                    "FAILED",
                    "WAITING",
                    "BEGAN",
                    "BY",
                    "WHY",
                ];
                let is_left = |job: &&Job| job.sends() && job.standing_at(now) == Standing::Interrupted;
                let left: Vec<String> =
                    jobs.iter().copied().filter(is_left).map(|job| job.id.to_string()).collect();
                screen::lines(table::lines(&head, jobs.into_iter().map(row).collect()))?;
                for id in left {
                    screen::say(&format!("help: redrive replay resume {id} goes on with it: nobody does"));
                }
            }
            Output::Json => {
                let all: Value = jobs.into_iter().map(|job| export::job(job, now)).collect();
                screen::data(&format!("{all:#}\n"))?;
            }
            Output::Ndjson => {
                screen::lines(jobs.into_iter().map(|job| format!("{}\n", export::job(job, now))))?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn row(job: &Job) -> Vec<String> {
    let counts = job.counts();
    vec![
        job.id.to_string(),
        job.begun.kind.name().to_owned(),
        words::standing(job).to_owned(),
        counts.letters.to_string(),
        counts.sent.to_string(),
        counts.handled.to_string(),
        counts.buried.to_string(),
        counts.waiting.to_string(),
        when::shown(job.begun.time()),
        job.begun.by.clone(),
        job.begun.reason.clone(),
    ]
}
