//! How often letters were sent back before: as they say themselves, or as the jobs tell that sent them since,
//! whichever is more. A number that was used is taken for the same replay, so each has to be higher than all before.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use redrive_core::Origin;

use super::route::Candidate;
use crate::jobs::{Job, State};

/// So many numbers at most are written down with a job: they have to fit into one record.
const MOST: usize = 20_000;

/// How often the letters of a job were sent back before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Before {
    /// How often other jobs sent each letter.
    sent: HashMap<Origin, u32>,
    /// What is known besides, by the letter's number in the job: other letters of the same record count, too.
    known: BTreeMap<u64, u32>,
}

impl Before {
    /// As the state tells it when a job is taken up.
    pub(super) fn of(state: &State, job: &Job) -> Self {
        let moves = state.moves();
        let letters: Vec<Origin> = job.selection.iter().map(|letter| moves.now(letter)).collect();
        Self { sent: state.sends(&letters, Some(&job.id)), known: job.begun.replays.clone() }
    }

    /// How often this letter was sent back, which says of itself that it was so often.
    pub(super) fn count(&self, number: u64, at: &Origin, says: u32) -> u32 {
        let since = self.sent.get(at).copied().unwrap_or(0);
        says.saturating_add(since).max(self.known.get(&number).copied().unwrap_or(0))
    }
}

/// Makes known to these letters how often they were sent back; in the answer are those whose records were sent back
/// more often than they and the jobs that sent them tell.
pub(super) fn count(state: &State, candidates: &mut [Candidate]) -> HashMap<Origin, u32> {
    let own = candidates.iter().map(|letter| &letter.at);
    let others = candidates.iter().flat_map(|letter| letter.others.iter().map(|(at, _)| at));
    let places: Vec<Origin> = own.chain(others).cloned().collect();
    let sent = state.sends(&places, None);
    let times = |at: &Origin| sent.get(at).copied().unwrap_or(0);
    let mut more = HashMap::new();
    for letter in candidates {
        let own = letter.replays.saturating_add(times(&letter.at));
        let others = letter.others.iter();
        let most = others.clone().map(|(at, says)| says.saturating_add(times(at))).max().unwrap_or(0);
        let all = others.fold(times(&letter.at), |sum, (at, _)| sum.saturating_add(times(at)));
        letter.replays = own.max(most).max(all);
        if letter.replays > own {
            more.insert(letter.at.clone(), letter.replays);
        }
    }
    more
}

/// The same by their numbers in a job of these letters.
pub(super) fn numbered(letters: &[Origin], more: &HashMap<Origin, u32>) -> BTreeMap<u64, u32> {
    // Of those that do not fit the worker says that it had them already.
    let known = (0..).zip(letters).filter_map(|(number, at)| Some((number, *more.get(at)?)));
    known.take(MOST).collect()
}
