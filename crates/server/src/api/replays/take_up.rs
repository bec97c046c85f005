//! Goes on with jobs in this process: one that somebody wants to go on, and by itself those that a process like this
//! one began over HTTP and left: it was killed, or stopped.

use std::sync::Arc;
use std::time::Duration;

use redrive_letters::jobs::{Job, Standing, State, Wish};
use redrive_letters::replay::{Error, Rate, deeds, lanes, take_over};
use redrive_letters::{journal, told};
use tracing::{info, warn};

use super::{drive, runs_here};
use crate::desk::Desk;

/// Of a job that another machine runs nothing is heard for so long before it is taken for left.
const QUIET: Duration = Duration::from_secs(600);

const WHY: &str = "the process that ran it is gone";

/// Takes up what was left. At the start of this process a job of the same user and machine is; later, and those of
/// other machines, when nothing was heard of them for long. Whether all that was left goes on.
pub(crate) async fn left(desk: &Arc<Desk>, state: &State, is_start: bool) -> bool {
    let (by, now) = (journal::writer(), desk.now());
    let left: Vec<&Job> = state
        .jobs()
        .into_iter()
        .filter(|job| job.sends() && job.is_unattended() && job.standing() == Standing::Running)
        .filter(|job| is_start && last_by(job) == by || now.since(job.last_heard()) >= patience(job))
        .filter(|job| !runs_here(desk, &job.id))
        .collect();
    let mut all_go_on = true;
    for job in left {
        match again(desk, job, &by).await {
            Ok(()) => {
                info!(job = %job.id, sent = job.mark.upto, letters = job.begun.letters, "the replay goes on");
            }
            Err(error) => {
                warn!(job = %job.id, error, "the replay does not go on; it is tried again");
                all_go_on = false;
            }
        }
    }
    all_go_on
}

async fn again(desk: &Arc<Desk>, job: &Job, by: &str) -> Result<(), String> {
    let deed = deeds::changes(&desk.clock, (by, WHY), "replay resume", job);
    journal::append(&desk.letters.settings, deed).await.map_err(|error| told(&error))?;
    match go_on(desk, job, (by, WHY), None).await {
        // Somebody was faster.
        Ok(()) | Err(Error::Ended(_)) => Ok(()),
        Err(error) => Err(told(&error)),
    }
}

/// Goes on with a job here, whoever has it.
pub(super) async fn go_on(
    desk: &Arc<Desk>,
    job: &Job,
    (by, why): (&str, &str),
    wish: Option<Wish>,
) -> Result<(), Error> {
    let (settings, clock) = (&desk.letters.settings, &desk.clock);
    let held = take_over(settings, clock, &job.id, wish, true).await?;
    match lanes::announce_again(settings, clock, job, (by, why)).await {
        Ok(announced) => announced.not.iter().for_each(|(lane, why)| {
            warn!(leader = lane.leader, why, "a lane is not held while its letters are sent");
        }),
        Err(error) => warn!(error = told(&error), "no lane is held while its letters are sent"),
    }
    drive::start(desk, held, by.to_owned());
    Ok(())
}

/// Who ran it last.
fn last_by(job: &Job) -> &str {
    if job.mark.by.is_empty() { &job.begun.by } else { &job.mark.by }
}

/// How long nothing may be heard of it: longer where it is to be slow.
fn patience(job: &Job) -> Duration {
    let rate: Option<Rate> = job.begun.options.rate.as_deref().and_then(|rate| rate.parse().ok());
    QUIET + rate.map_or(Duration::ZERO, |rate| rate.time_of(rate.handful()) * 3)
}
