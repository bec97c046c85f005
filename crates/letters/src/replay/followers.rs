//! Letters that followed another into the letters, sent back after it: their lane is held meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive::{Clock, Settings};
use redrive_core::Origin;

use super::lanes::{self, Announced, Announcer, Lane};
use super::{Candidate, Destinations, Error, Rate, Wanted, new_id};
use crate::jobs::JobId;
use crate::{Index, Query, State};

/// How long lanes are held at least.
const HOLD: Duration = Duration::from_secs(600);
/// How long workers may take to answer.
const ANSWER: Duration = Duration::from_secs(15);

/// The lanes that letters closed, and the letters that followed those.
#[derive(Debug, Default)]
pub struct Followers {
    /// The lanes.
    pub lanes: Vec<Lane>,
    /// The letters.
    pub letters: Vec<Candidate>,
}

/// What came of announcing lanes.
#[derive(Debug)]
pub struct Holding {
    id: JobId,
    announced: Announced,
}

impl Followers {
    /// Those of these letters: of lanes that are closed and have other letters.
    pub async fn of(
        settings: &Settings,
        index: &mut Index,
        leaders: &[Candidate],
        destinations: &mut Destinations,
    ) -> Result<Self, Error> {
        destinations.learn(leaders).await?;
        let mut found = Self::default();
        for lane in lanes::closed(settings, leaders, destinations.routes()).await? {
            let letters = behind(index, &lane);
            if !letters.is_empty() {
                found.lanes.push(lane);
                found.letters.extend(letters);
            }
        }
        Ok(found)
    }

    /// Announces the lanes, so that what arrives of them waits until their letters are sent.
    pub async fn hold(
        &self,
        settings: &Settings,
        leaders: usize,
        wanted: &Wanted,
        rate: Option<Rate>,
    ) -> Result<Holding, Error> {
        if self.lanes.len() > lanes::MOST {
            return Err(Error::TooManyLanes(self.lanes.len()));
        }
        let id = new_id();
        let letters = (leaders + self.letters.len()) as u64;
        let hold = HOLD + rate.map_or(Duration::ZERO, |rate| rate.time_of(letters) * 2);
        let announcer = Announcer { job: &id, by: &wanted.by, reason: &wanted.reason };
        let clock = Clock::system();
        let announced = lanes::announce(settings, &clock, announcer, &self.lanes, hold, ANSWER).await?;
        // Nobody could find the job that they would wait for.
        lanes::withdraw(settings, announcer, &announced.unanswered).await?;
        Ok(Holding { id, announced })
    }
}

impl Holding {
    /// The lanes that cannot be held, and why.
    #[must_use]
    pub fn not(&self) -> &[(Lane, &'static str)] {
        &self.announced.not
    }

    /// Takes back what was announced, where nothing is sent after all.
    pub async fn withdraw(self, settings: &Settings, wanted: &Wanted) {
        let lanes = Some((self.id, self.announced.held));
        Wanted { lanes, ..wanted.clone() }.withdraw(settings).await;
    }

    /// How many lanes are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.announced.held.len()
    }

    /// Adds the letters that are there now that no more can come; `index` is up to date. Letters whose lanes cannot
    /// be held are taken out, and so are those that followed them.
    pub fn gather(self, index: &mut Index, candidates: &mut Vec<Candidate>, wanted: &mut Wanted) {
        let not = self.announced.not.iter().map(|(lane, _)| lane);
        let leaders: BTreeSet<(Origin, &str)> =
            not.clone().filter_map(|lane| Some((lane.leader.parse().ok()?, lane.group.as_str()))).collect();
        let behind_them: BTreeSet<Origin> =
            not.flat_map(|lane| behind(index, lane)).map(|letter| letter.at).collect();
        candidates.retain(|letter| {
            let leads = letter.origin.clone().zip(letter.group.as_deref());
            !leads.is_some_and(|leads| leaders.contains(&leads)) && !behind_them.contains(&letter.at)
        });
        for lane in self.announced.held.iter().chain(&self.announced.open) {
            candidates.extend(behind(index, lane));
        }
        candidates.sort_by(|one, other| one.at.cmp(&other.at));
        candidates.dedup_by(|one, other| one.at == other.at);
        if !self.announced.held.is_empty() {
            wanted.lanes = Some((self.id, self.announced.held));
        }
    }
}

/// The open letters that followed the one that closed this lane.
fn behind(index: &mut Index, lane: &Lane) -> Vec<Candidate> {
    let Ok(leader) = lane.leader.parse::<Origin>() else { return Vec::new() };
    let query = Query {
        leader: Some(leader),
        groups: vec![lane.group.clone()],
        states: vec![State::Open],
        ..Query::default()
    };
    index.candidates_of(&query).unwrap_or_default()
}
