//! What is wanted of a job: that it waits, goes on here, or ends.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use bytes::Bytes;
use redrive_letters::jobs::{Followed, Job, Kind, Want, Wish};
use redrive_letters::journal;
use redrive_letters::replay::{Error, control, deeds};

use super::{Id, find, runs_here, take_up, told};
use crate::answer;
use crate::api::{Answer, body, desk};
use crate::desk::Desk;
use crate::listen::Shared;
use crate::problem::Problem;

type Body = Result<Bytes, BytesRejection>;

pub(in crate::api) async fn pause(State(shared): State<Arc<Shared>>, id: Id, given: Body) -> Answer {
    let desk = desk(&shared)?;
    let change = Change::read(desk, id, given, "replay pause").await?;
    control::wish(&desk.letters.settings, &change.job.id, &change.pause(desk)).await?;
    change.answer(desk).await
}

/// Where it runs here already it is told to go on; otherwise it is taken over, whoever has it.
pub(in crate::api) async fn resume(State(shared): State<Arc<Shared>>, id: Id, given: Body) -> Answer {
    let desk = desk(&shared)?;
    let change = Change::read(desk, id, given, "replay resume").await?;
    let (settings, wish) = (&desk.letters.settings, change.job.go_on(&change.by, desk.now(), &change.reason));
    if runs_here(desk, &change.job.id) {
        control::wish(settings, &change.job.id, &wish).await?;
        return change.answer(desk).await;
    }
    take_up::go_on(desk, &change.job, (&change.by, &change.reason), Some(wish)).await?;
    change.answer(desk).await
}

pub(in crate::api) async fn cancel(State(shared): State<Arc<Shared>>, id: Id, given: Body) -> Answer {
    let desk = desk(&shared)?;
    let change = Change::read(desk, id, given, "replay cancel").await?;
    let Change { job, by, reason } = &change;
    let job = control::cancel(&desk.letters.settings, &desk.clock, &job.id, by, reason).await?;
    Ok(answer::json(StatusCode::OK, &told(desk, &job)))
}

/// A job that is to be changed, by whom and why.
struct Change {
    job: Job,
    by: String,
    reason: String,
}

impl Change {
    /// Finds the job, and writes down what is about to be done.
    async fn read(desk: &Desk, id: Id, given: Body, what: &str) -> Result<Self, Problem> {
        let mut given = body(given)?;
        let reason: String = given.read("reason")?.unwrap_or_default();
        given.end()?;
        let (_, job) = find(desk, id).await?;
        if job.end.is_some() {
            return Err(Error::Ended(job.id).into());
        }
        if job.begun.kind != Kind::Replay {
            return Err(Error::NoReplay(job.id).into());
        }
        let by = journal::writer();
        let deed = deeds::changes(&desk.clock, (&by, &reason), what, &job);
        journal::append(&desk.letters.settings, deed).await?;
        Ok(Self { job, by, reason })
    }

    fn pause(&self, desk: &Desk) -> Wish {
        let (by, at, why) = (self.by.clone(), desk.now().millis(), self.reason.clone());
        Wish { want: Want::Pause, by, at, why, canary: false }
    }

    /// The job as it is now.
    async fn answer(&self, desk: &Desk) -> Answer {
        let followed = Followed::read(&desk.letters.settings).await?;
        let job = followed.state.job(&self.job.id).unwrap_or(&self.job);
        Ok(answer::json(StatusCode::OK, &told(desk, job)))
    }
}
