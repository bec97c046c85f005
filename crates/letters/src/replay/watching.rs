//! Follows what is told of a job while it runs: what is wanted of it, and what became of what it sent.

use std::time::Duration;

use redrive::{Clock, Settings};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::warn;

use crate::jobs::{Counts, Followed, JobId, State, Wish};

/// So often it is told what was heard, while something is heard.
const TELL: Duration = Duration::from_millis(100);

/// How long to wait when the state cannot be read.
const AGAIN: Duration = Duration::from_secs(1);

/// What was heard of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Heard {
    pub(super) counts: Counts,
    pub(super) canary: Counts,
    pub(super) wish: Option<Wish>,
}

/// Hears of a job until it is dropped.
pub(super) struct Watching {
    pub(super) heard: watch::Receiver<Heard>,
    task: AbortHandle,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watching {
    pub(super) fn start(settings: &Settings, clock: &Clock, id: &JobId, followed: Followed) -> Self {
        let (tell, heard) = watch::channel(heard(&followed.state, id));
        let (settings, clock, id) = (settings.clone(), clock.clone(), id.clone());
        let task = tokio::spawn(async move {
            let mut followed = followed;
            loop {
                let failed = follow(&mut followed, &clock, &id, &tell).await;
                warn!(error = %failed, "what becomes of letters cannot be read; it is tried again");
                clock.sleep(AGAIN).await;
                if let Ok(again) = Followed::read(&settings).await {
                    followed = again;
                }
            }
        });
        Self { heard, task: task.abort_handle() }
    }
}

async fn follow(
    followed: &mut Followed,
    clock: &Clock,
    id: &JobId,
    tell: &watch::Sender<Heard>,
) -> redrive_kafka::Error {
    let mut told = clock.now().steady;
    let mut is_news = false;
    loop {
        let due = if is_news { told + TELL } else { Duration::MAX };
        tokio::select! {
            biased;
            () = clock.sleep_until(due) => {
                told = clock.now().steady;
                is_news = false;
                let now = heard(&followed.state, id);
                tell.send_if_modified(|heard| *heard != now && { *heard = now; true });
            }
            took = followed.next() => match took {
                Ok(()) => is_news = true,
                Err(error) => return error,
            },
        }
    }
}

fn heard(state: &State, id: &JobId) -> Heard {
    let Some(job) = state.job(id) else { return Heard::default() };
    Heard {
        counts: job.counts(),
        canary: job.counts_of_first(job.begun.options.canary.unwrap_or(0)),
        wish: job.wish.clone(),
    }
}
