//! What people want of jobs, from any machine: that they wait, go on, or end.

use std::time::Duration;

use redrive::{Clock, Settings};
use redrive_core::{Origin, Timestamp};
use redrive_kafka::{Publisher, Publishing};

use super::Error;
use super::begin::take_over;
use crate::jobs::{Counts, Ending, Followed, Job, JobId, Key, State, Want, Wish, outgoing};

/// How long a process that runs a job may take to end it when that is wanted.
const HEED: Duration = Duration::from_secs(5);

/// The job that is meant by its id, or by how its id begins.
pub fn find<'a>(state: &'a State, begins: &'a str) -> Result<&'a Job, Error> {
    let mut jobs = state.jobs_like(begins);
    match (jobs.next(), jobs.next()) {
        (None, _) => Err(Error::NoJob(begins.to_owned())),
        (Some(job), None) => Ok(job),
        (Some(_), Some(_)) => match begins.parse().ok().and_then(|id: JobId| state.job(&id)) {
            Some(job) => Ok(job),
            None => {
                let ids = state.jobs_like(begins).map(|job| job.id.to_string()).collect();
                Err(Error::Several { begins: begins.to_owned(), ids })
            }
        },
    }
}

/// The jobs that are about to send some of these letters, and how many each; the earliest first.
#[must_use]
pub fn holders<'a>(state: &'a State, letters: &[Origin]) -> Vec<(&'a Job, u64)> {
    let held = state.held(letters, None);
    let count = |job: &Job| held.values().filter(|hold| !hold.sent && hold.job == job.id).count() as u64;
    let jobs = state.jobs().into_iter().map(|job| (job, count(job)));
    jobs.filter(|(_, letters)| *letters > 0).collect()
}

/// A job that has letters which somebody else asks for, in words.
#[must_use]
pub fn held_by(job: &Job, letters: u64, now: Timestamp) -> String {
    let Counts { letters: all, .. } = job.counts();
    format!(
        "job {} of {} has {letters} of the letters that match; it is {}, with {} of {all} dealt with",
        job.id,
        job.begun.by,
        job.standing_at(now).name(),
        job.mark.upto,
    )
}

/// Writes down what is wanted of a job. The process that runs it heeds that within moments.
pub async fn wish(settings: &Settings, id: &JobId, wish: &Wish) -> Result<(), Error> {
    let publisher = Publisher::new(settings, &Publishing::default())?;
    publisher.publish(outgoing(&Key::Wish(id.clone()), wish)).await?;
    Ok(())
}

/// Ends a job where it is: by the process that runs it, or, where none heeds it, by this one in its place.
pub async fn cancel(
    settings: &Settings,
    clock: &Clock,
    id: &JobId,
    by: &str,
    why: &str,
) -> Result<Job, Error> {
    let at = clock.now().wall.millis();
    let wanted = Wish { want: Want::Cancel, by: by.to_owned(), at, why: why.to_owned(), canary: false };
    wish(settings, id, &wanted).await?;
    let mut followed = Followed::read(settings).await?;
    let has_ended = |state: &State| state.job(id).is_some_and(|job| job.end.is_some());
    if !followed.until(clock, HEED, has_ended).await? {
        match take_over(settings, clock, id, None, false).await {
            Ok(held) => {
                let upto = held.job().map_or(0, |job| job.mark.upto);
                let lanes = held.job().map(|job| job.begun.opens(id, by)).unwrap_or_default();
                held.grip.end(clock, Ending::Cancelled, by, upto, lanes).await?;
            }
            // Somebody was faster.
            Err(Error::Ended(_)) => {}
            Err(error) => return Err(error),
        }
        followed.until(clock, crate::jobs::READ_BACK, has_ended).await?;
    }
    followed.state.job(id).cloned().ok_or_else(|| Error::NoJob(id.to_string()))
}

/// Waits until a job has ended and something was heard of everything that is ever heard of, or nothing more comes in
/// time. `tell` is called
/// with the job each time something was heard.
pub async fn listen(
    settings: &Settings,
    clock: &Clock,
    id: &JobId,
    wait: Duration,
    mut tell: impl FnMut(&Job),
) -> Result<Job, Error> {
    const TURN: Duration = Duration::from_millis(200);
    let mut followed = Followed::read(settings).await?;
    let deadline = clock.now().steady.saturating_add(wait);
    loop {
        let job = followed.state.job(id).ok_or_else(|| Error::NoJob(id.to_string()))?;
        tell(job);
        let left = deadline.saturating_sub(clock.now().steady);
        if job.is_over() || left.is_zero() {
            return Ok(job.clone());
        }
        followed.until(clock, TURN.min(left), |_| false).await?;
    }
}
