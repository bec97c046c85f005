//! Opens the lanes that letters closed, when those are dealt with: what waits behind them is released, or follows
//! them into the letters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use redrive::delayed::{Answer, Deed, Error, Standing, View, Wish};
use redrive::{Clock, Settings};
use redrive_core::{Origin, Topic};

use crate::jobs::Whereto;
use crate::replay::{Candidate, Destinations, Error as ReplayError, Route};

/// What becomes of the records that wait behind a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followers {
    /// They are handled.
    Release,
    /// They become letters, too.
    Bury,
}

/// What came of opening lanes.
#[derive(Debug, Default)]
pub struct Opened {
    /// The letters that closed lanes, and what came of opening each.
    pub lanes: Vec<(Origin, Answer)>,
    /// The records that became letters, and what came of that.
    pub buried: Vec<(Origin, Answer)>,
}

/// Opens the lanes of a shelf that the letters of these origins closed.
pub async fn open_lanes(
    (settings, clock): (&Settings, &Clock),
    shelf: &Topic,
    letters: &BTreeSet<Origin>,
    followers: Followers,
    (by, reason): (&str, &str),
    wait: Duration,
) -> Result<Opened, Error> {
    let mut view = View::read(settings, shelf.clone(), &[], Arc::new(|_| true), |_| {}).await?;
    let closures = view.closures();
    let ours: Vec<_> = closures.iter().filter(|closure| letters.contains(&closure.letter)).collect();
    let lanes: BTreeSet<(i32, Vec<u8>)> =
        ours.iter().map(|closure| (closure.letter.partition, closure.lane.to_vec())).collect();
    let mut opened = Opened::default();
    if followers == Followers::Bury {
        let held: Vec<Wish> = view
            .records()
            .into_iter()
            .filter(|record| matches!(record.standing, Standing::Closed { .. } | Standing::Behind { .. }))
            .filter(|record| {
                let lane = record.lane.as_deref().unwrap_or_default().to_vec();
                lanes.contains(&(record.origin.partition, lane))
            })
            .map(|record| Wish { origin: record.origin, deed: Deed::Cancel })
            .collect();
        let answers = view.give(&held, (by, reason), wait, clock).await?;
        opened.buried = held.into_iter().map(|wish| wish.origin).zip(answers).collect();
        // Those that have just become letters close their lane, too, once they are written.
        let done = opened.buried.iter().filter(|(_, answer)| answer.is_done());
        let letters = done.map(|(origin, _)| origin.clone()).collect();
        view.until_closed(&letters, wait, clock).await?;
    }
    let in_lane = |closure: &redrive::delayed::Closure| {
        lanes.contains(&(closure.letter.partition, closure.lane.to_vec()))
            && (followers == Followers::Bury || letters.contains(&closure.letter))
    };
    let wishes: Vec<Wish> = view
        .closures()
        .into_iter()
        .filter(in_lane)
        .map(|closure| Wish { origin: closure.letter, deed: Deed::Resolve })
        .collect();
    let answers = view.give(&wishes, (by, reason), wait, clock).await?;
    opened.lanes = wishes.into_iter().map(|wish| wish.origin).zip(answers).collect();
    Ok(opened)
}

/// Opens the lanes that these letters closed, on whichever shelves. `named` are shelves that are not called as they
/// usually are. What came of it, by shelf.
pub async fn open_all(
    (settings, clock): (&Settings, &Clock),
    named: BTreeMap<(Topic, String), Topic>,
    letters: &[Candidate],
    followers: Followers,
    who: (&str, &str),
    wait: Duration,
) -> Result<Vec<(Topic, Result<Opened, Error>)>, ReplayError> {
    let mut destinations = Destinations::new(settings, Whereto::Retry, named)?;
    destinations.learn(letters).await?;
    let mut shelves: BTreeMap<Topic, BTreeSet<Origin>> = BTreeMap::new();
    for letter in letters {
        if let (Ok(Route::Shelf { shelf, .. }), Some(origin)) =
            (destinations.routes().route(letter), &letter.origin)
        {
            shelves.entry(shelf).or_default().insert(origin.clone());
        }
    }
    let mut all = Vec::new();
    for (shelf, origins) in shelves {
        let opened = open_lanes((settings, clock), &shelf, &origins, followers, who, wait).await;
        all.push((shelf, opened));
    }
    Ok(all)
}

impl Opened {
    /// Each lane and record, and whether it is done, or is going to be when a worker runs.
    pub fn all(&self) -> impl Iterator<Item = (&Origin, bool)> {
        let is_good = |answer: &Answer| answer.is_done() || matches!(answer, Answer::Queued);
        self.buried.iter().chain(&self.lanes).map(move |(origin, answer)| (origin, is_good(answer)))
    }
}
