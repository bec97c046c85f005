//! Hands what became of letters over to the index, job by job: of jobs that stand as they stood, nothing is written.
//! What was said of letters in a topic that was made anew since is not said of what lies there now.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use redrive_core::{Origin, Timestamp};

use super::fold::about;
use super::{Job, LetterState as Now, State, TopicIds, What};
use crate::state::{GroupWish, LetterState, Outcome, Wish};
use crate::{Error, Fingerprint, Index};

impl State {
    /// Brings the index to this state; how many letters changed theirs.
    pub fn hand_over(&self, index: &mut Index) -> Result<u64, Error> {
        let topics = index.topics()?;
        // A topic that was not read before, or is another now: it was not told what became of its letters.
        let known = topics.iter().fold(DefaultHasher::new(), |mut hasher, topic| {
            (topic.id, topic.name.as_str(), &topic.mark).hash(&mut hasher);
            hasher
        });
        let known = known.finish();
        let topics = TopicIds::of(topics.into_iter().map(|topic| (topic.name, topic.mark)));
        let (moves, all) = (self.moves_in(&topics), self.jobs());
        // Where some were moved, those that other jobs are about lie elsewhere.
        let times: usize = all.iter().map(|job| job.moved.len()).sum();
        let mut changed: Vec<(&Job, String)> = Vec::new();
        for job in all {
            let stands = format!("{} {known:016x} {times}", stands(job));
            if index.note(&note(job))?.as_deref() != Some(stands.as_str()) {
                changed.push((job, stands));
            }
        }
        let about = changed.iter().flat_map(|(job, _)| about(job, &topics, &moves).map(|(_, letter)| letter));
        let left = moves.left().filter(|_| !changed.is_empty());
        let mut letters: Vec<Origin> = about.chain(left).collect();
        letters.sort_unstable();
        letters.dedup();
        let states = self.letters_in(&letters, &topics);
        let told: Vec<LetterState> =
            letters.into_iter().map(|letter| self.told(letter.clone(), states.get(&letter))).collect();
        let count = if told.is_empty() { 0 } else { index.set_states(&told)? };
        for (job, stands) in changed {
            index.set_note(&note(job), &stands)?;
        }
        for (fingerprint, said) in self.groups() {
            let Ok(failure) = fingerprint.parse::<Fingerprint>() else { continue };
            let wish = match said.state {
                super::GroupStanding::Open => Wish::Open,
                super::GroupStanding::Muted => Wish::Muted,
                super::GroupStanding::Resolved => Wish::Resolved,
            };
            let why = Some(said.why.clone()).filter(|why| !why.is_empty());
            let at = Timestamp::from_millis(said.at);
            index.set_group_wish(&GroupWish { failure, wish, by: said.by.clone(), at, why })?;
        }
        Ok(count)
    }
}

fn note(job: &Job) -> String {
    format!("job/{}", job.id)
}

/// How a job stands, as far as its letters go.
fn stands(job: &Job) -> String {
    format!("{} {} {:016x}", job.mark.upto, job.end.is_some(), job.outcomes.digest())
}

impl State {
    fn told(&self, letter: Origin, now: Option<&Now>) -> LetterState {
        use crate::state::State as Named;
        let (state, job, outcome) = match now {
            None | Some(Now::Open) => (Named::Open, None, None),
            Some(Now::Replaying(job)) => (Named::Replaying, Some(job), None),
            Some(Now::Replayed(job, what)) => (Named::Replayed, Some(job), what.and_then(outcome)),
            Some(Now::Resolved(job)) => (Named::Resolved, Some(job), None),
            Some(Now::Purged(job)) => (Named::Purged, Some(job), None),
            Some(Now::Erased(job)) => (Named::Erased, Some(job), None),
            // It is known in its new place.
            Some(Now::Moved(_)) => (Named::Erased, None, None),
        };
        // The job may have done it a moment earlier.
        let at = job.and_then(|job| self.job(job)).map(|job| Timestamp::from_millis(job.mark.at));
        LetterState { letter, state, job: job.map(ToString::to_string), outcome, at }
    }
}

fn outcome(what: What) -> Option<Outcome> {
    match what {
        What::Handled => Some(Outcome::Handled),
        What::Waiting => Some(Outcome::Waiting),
        What::Buried => Some(Outcome::Buried),
        What::Dropped | What::Refused | What::Skipped => None,
    }
}
