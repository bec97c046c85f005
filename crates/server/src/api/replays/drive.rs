//! Runs a job in this process until it ends, and writes down how it did.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use redrive_letters::jobs::{JobId, Whereto};
use redrive_letters::replay::{self, Destinations, Ended, Error, Held, Progress, Running, control, deeds};
use redrive_letters::{journal, told};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::desk::Desk;

/// How long to wait for what becomes of the first letters where the job does not say.
const PATIENCE: Duration = Duration::from_secs(300);

/// Starts it.
pub(super) fn start(desk: &Arc<Desk>, job: Held, by: String) {
    let id = job.id().clone();
    let task = tokio::spawn({
        let (desk, id) = (desk.clone(), id.clone());
        async move {
            match run(&desk, job, &by).await {
                Ok(ended) => write_down(&desk, &id, &by, &ended).await,
                Err(error) => {
                    let remedy = "it can be resumed, and goes on from exactly where it was";
                    warn!(job = %id, error = told(&error), remedy, "the replay has stopped");
                }
            }
        }
    });
    let mut jobs = desk.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.retain(|_, job| !job.is_finished());
    jobs.insert(id, task);
}

async fn run(desk: &Desk, job: Held, by: &str) -> Result<Ended, Error> {
    let to = job.job().map_or(Whereto::Usual, |job| job.begun.to.clone());
    let (settings, shelves) = (&desk.letters.settings, &desk.letters.shelves);
    let running = Running {
        settings: settings.clone(),
        clock: desk.clock.clone(),
        by: by.to_owned(),
        patience: PATIENCE,
        stop: desk.stop.subscribe(),
        progress: watch::Sender::new(Progress::default()),
    };
    replay::run(&running, job, || Destinations::new(settings, to.clone(), shelves.clone())).await
}

/// What is done stays done if that cannot be written.
async fn write_down(desk: &Desk, id: &JobId, by: &str, ended: &Ended) {
    info!(job = %id, ?ended, "the replay has ended");
    let settings = &desk.letters.settings;
    let written = async {
        let job = control::listen(settings, &desk.clock, id, Duration::ZERO, |_| {}).await;
        let job = job.map_err(|error| told(&error))?;
        if let Some(deed) = deeds::ended(&desk.clock, by, ended, &job) {
            journal::append(settings, deed).await.map_err(|error| told(&error))?;
        }
        Ok::<_, String>(())
    };
    if let Err(error) = written.await {
        warn!(job = %id, error, "how the replay ended is not in the journal");
    }
}
