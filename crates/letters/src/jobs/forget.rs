//! Jobs that ended long ago are forgotten, so that `redrive.state` does not grow for ever: each of their keys gets a
//! tombstone. Never one of whose letters any is still there: it would be open again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::{Timestamp, Topic};
use redrive_kafka::{Admin, Outgoing, Settings, Transacting, Transactions};
use tracing::{info, warn};

use super::{Job, Key, State};
use crate::replay::Error;
use crate::told;

/// How long a job is remembered after its end at least.
pub const REMEMBERED: Duration = Duration::from_secs(90 * 86_400);

/// Records of one transaction.
const AT_ONCE: usize = 5_000;

/// Forgets what can be forgotten. What cannot be done now is done another time.
pub(crate) async fn forget_when_possible(settings: &Settings, state: &State, now: Timestamp) {
    match forget_old(settings, state, now).await {
        Ok(0) => {}
        Ok(jobs) => info!(jobs, "jobs that ended long ago are forgotten: their letters are gone"),
        Err(error) => warn!(error = told(&error), "jobs that ended long ago are not forgotten yet"),
    }
}

/// Forgets jobs that ended so long ago and whose letters are all gone; how many.
pub async fn forget_old(settings: &Settings, state: &State, now: Timestamp) -> Result<usize, Error> {
    let is_old = |job: &&Job| {
        let end = job.end.as_ref().map(|end| Timestamp::from_millis(end.at));
        end.is_some_and(|end| now.since(end) >= REMEMBERED)
    };
    let old: Vec<&Job> = state.jobs().into_iter().filter(is_old).collect();
    if old.is_empty() {
        return Ok(0);
    }
    let topics: BTreeSet<Topic> =
        old.iter().flat_map(|job| job.selection.iter().map(|letter| letter.topic)).collect();
    let begins = begins(&Admin::new(settings)?, topics.into_iter().collect()).await?;
    let moves = state.moves();
    let is_any_there = |job: &Job| {
        // Letters of a topic that was made anew are gone, whatever lies in their places.
        let anew = state.anew(job);
        // Those that it moved need it as long as they are there: what was said of them goes by where they were.
        let moved = job.moved.values().flat_map(|moved| moved.pairs().map(|(_, to)| to));
        let letters = job.selection.iter().chain(moved).filter(|letter| !anew.contains(&letter.topic));
        letters.map(|letter| moves.now(letter)).any(|letter| {
            let begin = begins.get(&(letter.topic, letter.partition));
            begin.is_some_and(|begin| letter.offset >= *begin)
        })
    };
    let mut forgotten = 0;
    for job in old.into_iter().filter(|job| !is_any_there(job)) {
        forget(settings, job).await?;
        forgotten += 1;
    }
    Ok(forgotten)
}

/// Where the partitions of these topics begin; of a topic that is gone there is nothing.
async fn begins(admin: &Admin, topics: Vec<Topic>) -> Result<BTreeMap<(Topic, i32), i64>, Error> {
    let mut begins = BTreeMap::new();
    for (topic, state) in admin.outline(&topics).await? {
        let bounds = admin.bounds(&topic, state.partitions).await?;
        begins.extend((0..).zip(bounds).map(|(partition, (begin, _))| ((topic.clone(), partition), begin)));
    }
    Ok(begins)
}

/// What became of its letters first, the job itself last and at once: half of it would be another job.
async fn forget(settings: &Settings, job: &Job) -> Result<(), Error> {
    let id = &job.id;
    let transactions = Transactions::new(settings, &id.transactional_id(), &Transacting::default()).await?;
    let outcomes = (0..job.begun.letters).filter(|number| job.outcome(*number).is_some());
    let outcomes: Vec<Outgoing> =
        outcomes.map(|number| tombstone(&Key::Outcome(id.clone(), number))).collect();
    let selection = (0..job.begun.chunks).map(|chunk| Key::Selection(id.clone(), chunk));
    let own = [Key::Begun, Key::Mark, Key::Wish, Key::Turn, Key::End].map(|key| key(id.clone()));
    let moved = job.moved.keys().map(|some| Key::Moved(id.clone(), *some));
    let own: Vec<Outgoing> = selection.chain(moved).chain(own).map(|key| tombstone(&key)).collect();
    for records in outcomes.chunks(AT_ONCE).map(<[_]>::to_vec).chain([own]) {
        let written = transactions.publish(records).await;
        written.map_err(|source| Error::Write { job: id.clone(), source })?;
    }
    Ok(())
}

fn tombstone(key: &Key) -> Outgoing {
    Outgoing::to(redrive::pauses::topic()).partition(0).key(key.to_string())
}
