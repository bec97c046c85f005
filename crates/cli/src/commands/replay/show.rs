//! `redrive replay show` and `watch`: one job.

use std::io;
use std::time::Duration;

use clap::Args;
use redrive::Clock;
use redrive_letters::export;
use redrive_letters::jobs::{Job, State, What};
use redrive_letters::replay::{Progress, control};

use super::bar::Bar;
use super::{Output, Place, words};
use crate::exit::Exit;
use crate::when::length;
use crate::{human, screen, when};

/// How many letters that failed again are named.
const NAMED: usize = 20;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay show k3f9                 how its id begins is enough
  redrive replay show k3f9 -o json")]
pub(super) struct Show {
    /// The job
    #[arg(value_name = "JOB")]
    id: String,
    #[command(flatten)]
    place: Place,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive replay watch k3f9
  redrive replay watch k3f9 --wait 10m     no longer than that

It ends when the job has ended and all is heard of that ever is: of letters in topics that no group of Redrive
consumes nothing is.
Exit codes: 0 none failed and nothing more is to be heard, 3 some did not succeed or are not heard of yet.")]
pub(super) struct Watch {
    /// The job
    #[arg(value_name = "JOB")]
    id: String,
    #[command(flatten)]
    place: Place,
    /// How long to watch
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "1d")]
    wait: Duration,
}

impl Show {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, _) = match self.place.reach() {
            Ok(reached) => reached,
            Err(exit) => return Ok(exit),
        };
        let (followed, id) = match self.place.job(&settings, &self.id).await {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        let Some(job) = followed.state.job(&id) else { return Ok(Exit::NothingMatched) };
        let now = Clock::system().now().wall;
        match self.output {
            Output::Table => screen::data(&told(&followed.state, job))?,
            Output::Json => screen::data(&format!("{:#}\n", export::job_in_full(job, now)))?,
            Output::Ndjson => screen::data(&format!("{}\n", export::job_in_full(job, now)))?,
        }
        Ok(Exit::Ok)
    }
}

impl Watch {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (settings, _) = match self.place.reach() {
            Ok(reached) => reached,
            Err(exit) => return Ok(exit),
        };
        let (followed, id) = match self.place.job(&settings, &self.id).await {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        let clock = Clock::system();
        let from = followed.state.job(&id).map_or(0, |job| job.mark.upto);
        drop(followed);
        let mut bar = Bar::new(&clock);
        let shown = |job: &Job| {
            let progress = Progress { from, upto: job.mark.upto, counts: job.counts(), waits: None };
            bar.show(&progress);
        };
        let watching = control::listen(&settings, &clock, &id, self.wait, shown);
        let job = tokio::select! {
            job = watching => job,
            () = redrive::stop_signal() => {
                screen::progress("");
                return Ok(Exit::Partly);
            }
        };
        screen::progress("");
        match job {
            Ok(job) => {
                let counts = job.counts();
                screen::data(&format!(
                    "job {id} is {}: {}\n",
                    words::standing(&job),
                    words::all_counts(&counts)
                ))?;
                let silent = counts.unheard().min(job.silent());
                if job.end.is_some() && silent > 0 {
                    screen::say(&format!(
                        "nothing more will be heard of {}: no group of Redrive is known to consume where they went",
                        human::count(silent, "letter", "letters")
                    ));
                }
                let is_done = job.end.is_some() && counts.handled + silent == counts.letters;
                Ok(if is_done { Exit::Ok } else { Exit::Partly })
            }
            Err(error) => Ok(self.place.failed(&error)),
        }
    }
}

fn told(state: &State, job: &Job) -> String {
    let begun = &job.begun;
    let mut lines = vec![
        format!("job        {} ({})", job.id, begun.kind.name()),
        format!("state      {}", words::standing_and_help(job)),
        format!("letters    {} of {}", begun.letters, begun.query),
        format!("to         {}", words::whereto(&begun.to)),
        format!("so far     {}", words::all_counts(&job.counts())),
        format!("began      {} by {}", when::shown(begun.time()), begun.by),
    ];
    let options = &begun.options;
    let rate = options.rate.iter().map(|rate| format!("at most {rate}"));
    let canary = options.canary.iter().map(|canary| format!("{canary} first"));
    let failed =
        options.max_failed.iter().map(|failed| format!("pauses when more than {failed}% fail again"));
    let how: Vec<String> = rate.chain(canary).chain(failed).collect();
    if !how.is_empty() {
        lines.push(format!("how        {}", how.join(", ")));
    }
    if !begun.reason.is_empty() {
        lines.push(format!("why        {}", begun.reason));
    }
    if let Some(wish) = &job.wish {
        let why = if wish.why.is_empty() { String::new() } else { format!(": {}", wish.why) };
        lines.push(format!("wanted     {:?} by {}{why}", wish.want, wish.by).to_lowercase());
    }
    if let Some(end) = &job.end {
        let at = redrive::Timestamp::from_millis(end.at);
        lines.push(format!("ended      {} by {}", when::shown(at), end.by));
    }
    let failed = (0..)
        .zip(job.selection.iter())
        .filter(|(number, _)| job.outcome(*number).is_some_and(|what| what != What::Handled));
    let named: Vec<String> = failed.take(NAMED).map(|(number, letter)| named(job, number, &letter)).collect();
    if !named.is_empty() {
        lines.push(format!("not well   {}", named.join("\n           ")));
    }
    let mut others =
        state.jobs().into_iter().filter(|other| other.order > job.order && other.begun.query == begun.query);
    if let Some(later) = others.next_back() {
        lines.push(format!("later      job {} asked for the same", later.id));
    }
    format!("{}\n", lines.join("\n"))
}

fn named(job: &Job, number: u64, letter: &redrive_core::Origin) -> String {
    let what = match job.outcome(number) {
        Some(What::Buried) => "failed again",
        Some(What::Waiting) => "waits to be tried again",
        Some(What::Dropped) => "given up by a rule",
        Some(What::Refused) => "not taken by its worker",
        Some(What::Skipped) => "left out",
        Some(What::Handled) | None => "",
    };
    let again = job.again(number).map(|again| format!(", now {again}")).unwrap_or_default();
    match job.why(number) {
        Some(why) => format!("{letter} {what}{again}: {why}"),
        None => format!("{letter} {what}{again}"),
    }
}
