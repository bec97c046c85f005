//! Replays: jobs that send letters back, seen, begun and changed.

pub(super) mod begin;
pub(super) mod change;
mod drive;
pub(crate) mod take_up;

use std::sync::{Arc, PoisonError};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use redrive_letters::export;
use redrive_letters::jobs::{Ending, Followed, Job, JobId, Kind, Standing};
use redrive_letters::replay::control;
use serde_json::{Value, json};

use super::{Answer, desk};
use crate::answer;
use crate::desk::Desk;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;

type Id = Result<Path<String>, PathRejection>;

pub(super) async fn list(State(shared): State<Arc<Shared>>, uri: Uri) -> Answer {
    let mut given = Given::in_address(&uri)?;
    let all = given.flag("all")?;
    given.end()?;
    let desk = desk(&shared)?;
    let followed = Followed::read(&desk.letters.settings).await?;
    let shown = |job: &&Job| {
        let withdrew = job.standing() == Standing::Ended(Ending::Withdrawn);
        all || job.begun.kind == Kind::Replay && !withdrew
    };
    let jobs: Vec<Value> =
        followed.state.jobs().into_iter().filter(shown).map(|job| told(desk, job)).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "replays": jobs })))
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, id: Id, uri: Uri) -> Answer {
    Given::in_address(&uri)?.end()?;
    let desk = desk(&shared)?;
    let (_, job) = find(desk, id).await?;
    let mut value = export::job_in_full(&job, desk.now());
    value["runs_here"] = runs_here(desk, &job.id).into();
    Ok(answer::json(StatusCode::OK, &value))
}

/// A job as JSON, and whether it runs in this process.
fn told(desk: &Desk, job: &Job) -> Value {
    let mut value = export::job(job, desk.now());
    value["runs_here"] = runs_here(desk, &job.id).into();
    value
}

fn runs_here(desk: &Desk, id: &JobId) -> bool {
    let jobs = desk.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.get(id).is_some_and(|job| !job.is_finished())
}

/// The job that is meant, by its id or how that begins.
async fn find(desk: &Desk, id: Id) -> Result<(Followed, Job), Problem> {
    let Path(id) = id.map_err(|error| Problem::bad(error.body_text()))?;
    let followed = Followed::read(&desk.letters.settings).await?;
    let job = control::find(&followed.state, &id)?.clone();
    Ok((followed, job))
}
