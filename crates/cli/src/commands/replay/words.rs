//! What is told of jobs.

use redrive::Clock;
use redrive_letters::jobs::{Counts, Job, Standing, Whereto};

/// How a job stands now, in a word.
pub(super) fn standing(job: &Job) -> &'static str {
    job.standing_at(Clock::system().now().wall).name()
}

/// The same, with what helps where its process is gone.
pub(super) fn standing_and_help(job: &Job) -> String {
    match job.standing_at(Clock::system().now().wall) {
        Standing::Interrupted => {
            format!("interrupted: nobody goes on with it (redrive replay resume {} does)", job.id)
        }
        standing => standing.name().to_owned(),
    }
}

/// What became of what was sent, where it is over: what did not happen is told, too.
pub(super) fn all_counts(counts: &Counts) -> String {
    let always = [
        (counts.sent, "sent"),
        (counts.handled, "succeeded"),
        (counts.buried, "failed again"),
        (counts.waiting, "waiting to be tried again"),
        (counts.unheard(), "not heard of"),
    ];
    let unusual =
        [(counts.dropped, "given up by a rule"), (counts.refused, "not taken"), (counts.skipped, "left out")];
    let unusual = unusual.into_iter().filter(|(count, _)| *count > 0);
    always
        .into_iter()
        .chain(unusual)
        .map(|(count, what)| format!("{count} {what}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What became of what was sent, for a line.
pub(super) fn counts(counts: &Counts) -> String {
    let mut parts = vec![format!("{} sent", counts.sent)];
    let heard = [
        (counts.handled, "succeeded"),
        (counts.buried, "failed again"),
        (counts.waiting, "waiting to be tried again"),
        (counts.dropped, "given up by a rule"),
        (counts.refused, "not taken"),
        (counts.unheard(), "not heard of yet"),
        (counts.skipped, "left out"),
    ];
    parts.extend(heard.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    parts.join(", ")
}

/// Where letters go.
pub(super) fn whereto(to: &Whereto) -> String {
    match to {
        Whereto::Usual => "where each belongs: the shelf of its group, or its original topic".to_owned(),
        Whereto::Retry => "the shelf of the group".to_owned(),
        Whereto::Origin => "the original topic".to_owned(),
        Whereto::Topic(topic) => format!("the topic {topic}"),
    }
}
