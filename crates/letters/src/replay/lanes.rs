//! Letters that closed their lanes, sent back with those that followed them into the letters: the lane is announced,
//! so that what arrives of it waits; then leader and followers are sent in their order; then the lane is opened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use redrive::replay::{Answers, Shelf, Verdict};
use redrive::{Clock, Settings};
use redrive_core::{Origin, Topic};
use redrive_kafka::{Outgoing, Publisher, Publishing};
use serde::{Deserialize, Serialize};

use super::Error;
use super::route::{Candidate, Route, Routes};
use crate::jobs::{Begun, Job, JobId};

/// So many lanes at most are held at once: more than that is asked for in parts.
pub const MOST: usize = 2_000;

/// A lane that a letter closed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lane {
    /// The shelf.
    pub shelf: String,
    /// The group.
    pub group: String,
    /// Where the letter's record was consumed.
    pub leader: String,
}

impl Lane {
    fn parts(&self) -> Option<(Shelf, Origin)> {
        let shelf: Topic = self.shelf.parse().ok()?;
        Some((Shelf::named(shelf, &self.group), self.leader.parse().ok()?))
    }
}

/// Who announces lanes: the job, its person and reason.
#[derive(Debug, Clone, Copy)]
pub struct Announcer<'a> {
    /// The job, as the shelf knows it.
    pub job: &'a JobId,
    /// Who.
    pub by: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// What came of announcing lanes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Announced {
    /// What arrives of these waits.
    pub held: Vec<Lane>,
    /// These are not closed any more.
    pub open: Vec<Lane>,
    /// Of these another job has announced a replay, or no worker answered.
    pub not: Vec<(Lane, &'static str)>,
    /// Of those the ones that no worker answered for: the announcement still stands there.
    pub unanswered: Vec<Lane>,
}

/// The lanes that these letters closed, as their shelves tell it.
pub async fn closed(settings: &Settings, letters: &[Candidate], routes: &Routes) -> Result<Vec<Lane>, Error> {
    let mut shelves: BTreeMap<(Topic, String), BTreeSet<&Origin>> = BTreeMap::new();
    for letter in letters {
        if let (Ok(Route::Shelf { shelf, group }), Some(origin)) = (routes.route(letter), &letter.origin) {
            shelves.entry((shelf, group)).or_default().insert(origin);
        }
    }
    let mut lanes = Vec::new();
    for ((shelf, group), origins) in shelves {
        let partitions: BTreeSet<i32> = origins.iter().map(|origin| origin.partition).collect();
        let partitions: Vec<i32> = partitions.into_iter().collect();
        let answers = Answers::open(settings, shelf.clone(), &partitions).await?;
        let closing = origins.into_iter().filter(|origin| answers.closes(origin));
        lanes.extend(closing.map(|origin| Lane {
            shelf: shelf.to_string(),
            group: group.clone(),
            leader: origin.to_string(),
        }));
    }
    Ok(lanes)
}

/// Announces that the letters of these lanes are about to be sent, and waits for the workers' answers. Until
/// `hold` is over, or the job opens the lanes, what arrives of them waits.
pub async fn announce(
    settings: &Settings,
    clock: &Clock,
    announcer: Announcer<'_>,
    lanes: &[Lane],
    hold: Duration,
    wait: Duration,
) -> Result<Announced, Error> {
    let mut shelves: BTreeMap<&str, Vec<&Lane>> = BTreeMap::new();
    for lane in lanes {
        shelves.entry(&lane.shelf).or_default().push(lane);
    }
    let publisher = Publisher::new(settings, &Publishing::default())?;
    let deadline = clock.now().wall.plus(hold);
    let mut told = Announced::default();
    for (_, lanes) in shelves {
        let parts: Vec<(&Lane, Shelf, Origin)> = lanes
            .into_iter()
            .filter_map(|lane| lane.parts().map(|(shelf, leader)| (lane, shelf, leader)))
            .collect();
        let Some((_, shelf, _)) = parts.first() else { continue };
        let partitions: BTreeSet<i32> = parts.iter().map(|(_, _, leader)| leader.partition).collect();
        let partitions: Vec<i32> = partitions.into_iter().collect();
        let mut answers = Answers::open(settings, shelf.topic().clone(), &partitions).await?;
        let (mut asked, mut sent) = (HashMap::new(), Vec::new());
        for (lane, shelf, leader) in &parts {
            let who = (announcer.by, announcer.reason);
            let order = shelf.announce(leader, announcer.job.as_str(), deadline, who);
            asked.insert(order.id.clone(), (*lane, leader.partition));
            sent.push(publisher.publish(order.outgoing));
        }
        for sent in sent {
            sent.await?;
        }
        let orders = asked.iter().map(|(id, (_, partition))| (*partition, id.clone()));
        let answered = answers.wait(orders.collect::<Vec<_>>(), wait, clock).await?;
        for (id, (lane, _)) in asked {
            match answered.get(&id).map(|outcome| outcome.verdict) {
                Some(Verdict::Announced { .. }) => told.held.push(lane.clone()),
                Some(Verdict::Finished | Verdict::Unknown | Verdict::Opened) => told.open.push(lane.clone()),
                Some(Verdict::Taken { .. }) => told.not.push((lane.clone(), "another job holds its lane")),
                Some(_) => told.not.push((lane.clone(), "its worker refused")),
                None => {
                    told.not.push((lane.clone(), "no worker has answered for its lane"));
                    told.unanswered.push(lane.clone());
                }
            }
        }
    }
    told.held.sort();
    told.open.sort();
    Ok(told)
}

/// Takes back what was announced of these lanes, for whichever worker comes: nothing is sent of them.
pub async fn withdraw(settings: &Settings, announcer: Announcer<'_>, lanes: &[Lane]) -> Result<(), Error> {
    if lanes.is_empty() {
        return Ok(());
    }
    let publisher = Publisher::new(settings, &Publishing::default())?;
    let sent: Vec<_> = resolves(announcer, lanes).into_iter().map(|order| publisher.publish(order)).collect();
    for sent in sent {
        sent.await?;
    }
    Ok(())
}

/// Announces the lanes of a job anew that is about to go on: their time may be over.
pub async fn announce_again(
    settings: &Settings,
    clock: &Clock,
    job: &Job,
    (by, reason): (&str, &str),
) -> Result<Announced, Error> {
    const HOLD: Duration = Duration::from_secs(600);
    const ANSWER: Duration = Duration::from_secs(15);
    if job.begun.lanes.is_empty() {
        return Ok(Announced::default());
    }
    let announcer = Announcer { job: job.begun.announced.as_ref().unwrap_or(&job.id), by, reason };
    announce(settings, clock, announcer, &job.begun.lanes, HOLD, ANSWER).await
}

impl Begun {
    /// The orders that open the lanes which are held for this job.
    #[must_use]
    pub fn opens(&self, id: &JobId, by: &str) -> Vec<Outgoing> {
        let job = self.announced.as_ref().unwrap_or(id);
        resolves(Announcer { job, by, reason: &self.reason }, &self.lanes)
    }
}

/// The orders that open these lanes, behind all of their letters.
#[must_use]
pub fn resolves(announcer: Announcer<'_>, lanes: &[Lane]) -> Vec<Outgoing> {
    let order = |lane: &Lane| {
        let (shelf, leader) = lane.parts()?;
        let who = (announcer.by, announcer.reason);
        Some(shelf.resolve(&leader, announcer.job.as_str(), who).outgoing)
    };
    lanes.iter().filter_map(order).collect()
}
