//! Replays that failed again, that wait for somebody, or that stopped half way.

use std::time::Duration;

use redrive::Timestamp;
use redrive_letters::jobs::{Counts, Ending, Job, Standing, State};

use super::look::Look;
use crate::human;

/// For so long it is told that letters of a job that is over failed again: they are letters again, which are told, too.
const RECENT: Duration = Duration::from_secs(24 * 3_600);

pub(super) fn look(look: &mut Look<'_>, state: &State) {
    for job in state.jobs().into_iter().filter(|job| job.sends()) {
        one(look, job);
    }
}

fn one(look: &mut Look<'_>, job: &Job) {
    let (counts, place) = (job.counts(), format!("job {}", job.id));
    let quiet = look.now.since(last(job));
    let left = human::count(left(&counts), "letter is not sent", "letters are not sent");
    let again = failed(&counts);
    match job.standing() {
        Standing::Ended(Ending::Withdrawn) => {}
        Standing::Ended(Ending::Finished | Ending::Cancelled) => {
            if again > 0 && quiet < RECENT {
                let what = format!("{again} of {} failed again", counts.sent);
                look.add("failed-again", &place, what, look.command(&format!("replay show {}", job.id)));
            }
        }
        Standing::Paused => {
            let wish = job.wish.as_ref();
            let by = wish.map_or("somebody", |wish| wish.by.as_str());
            let why = wish.filter(|wish| !wish.why.is_empty()).map(|wish| format!(": {}", wish.why));
            let what = format!("paused by {by}{}; {left}", why.unwrap_or_default());
            look.add("replay-paused", &place, what, look.command(&format!("replay resume {}", job.id)));
        }
        Standing::Running | Standing::Interrupted if quiet >= look.patience || job.mark.stopped => {
            let held = match job.begun.lanes.len() {
                0 => String::new(),
                lanes => format!(", {} held", human::count(lanes as u64, "lane is", "lanes are")),
            };
            let what = match job.mark.stopped {
                true => format!(
                    "its process stopped {} ago and it is not over; {left}{held}",
                    human::rough(quiet)
                ),
                false => format!("no progress for {} and not over; {left}{held}", human::rough(quiet)),
            };
            look.add("replay-stopped", &place, what, look.command(&format!("replay resume {}", job.id)));
        }
        Standing::Cancelling if quiet >= look.patience => {
            let what = format!("cancelled {} ago and not over; {left}", human::rough(quiet));
            look.add("replay-stopped", &place, what, look.command(&format!("replay cancel {}", job.id)));
        }
        Standing::Running | Standing::Interrupted | Standing::Cancelling => {}
    }
}

/// When it was last heard of.
fn last(job: &Job) -> Timestamp {
    let end = job.end.as_ref().map_or(0, |end| end.at);
    job.last_heard().max(Timestamp::from_millis(end))
}

fn failed(counts: &Counts) -> u64 {
    counts.buried + counts.dropped + counts.refused
}

fn left(counts: &Counts) -> u64 {
    counts.letters.saturating_sub(counts.sent + counts.skipped)
}
