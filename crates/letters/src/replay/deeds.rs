//! What is written into the journal about a replay.

use redrive::Clock;

use super::{Ended, Wanted};
use crate::jobs::{Job, JobId};
use crate::journal::Deed;

/// That it begins: written before anything is sent.
#[must_use]
pub fn begins(clock: &Clock, wanted: &Wanted, id: &JobId, letters: u64) -> Deed {
    Deed {
        who: wanted.by.clone(),
        at: clock.now().wall.millis(),
        what: "replay".to_owned(),
        selection: wanted.query.clone(),
        job: Some(id.to_string()),
        counts: [("letters".to_owned(), letters)].into(),
        why: wanted.reason.clone(),
    }
}

/// That somebody changes how it goes on: `replay pause`, for example.
#[must_use]
pub fn changes(clock: &Clock, (who, why): (&str, &str), what: &str, job: &Job) -> Deed {
    Deed {
        who: who.to_owned(),
        at: clock.now().wall.millis(),
        what: what.to_owned(),
        selection: job.begun.query.clone(),
        job: Some(job.id.to_string()),
        counts: [("letters".to_owned(), job.begun.letters), ("sent".to_owned(), job.counts().sent)].into(),
        why: why.to_owned(),
    }
}

/// How it ended; nothing if another process goes on with it.
#[must_use]
pub fn ended(clock: &Clock, who: &str, ended: &Ended, job: &Job) -> Option<Deed> {
    let (what, why) = match ended {
        Ended::Finished => ("replay finished", String::new()),
        Ended::Cancelled => ("replay cancelled", String::new()),
        Ended::Paused(why) => ("replay paused", why.clone()),
        Ended::Stopped => ("replay stopped", String::new()),
        Ended::TakenOver => return None,
    };
    let counts = job.counts();
    let counts = [
        ("letters", counts.letters),
        ("sent", counts.sent),
        ("skipped", counts.skipped),
        ("handled", counts.handled),
        ("buried", counts.buried),
        ("waiting", counts.waiting),
    ];
    Some(Deed {
        who: who.to_owned(),
        at: clock.now().wall.millis(),
        what: what.to_owned(),
        selection: job.begun.query.clone(),
        job: Some(job.id.to_string()),
        counts: counts.map(|(name, count)| (name.to_owned(), count)).into_iter().collect(),
        why,
    })
}
