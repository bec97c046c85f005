//! What is told of jobs.

use redrive_letters::jobs::{Counts, Job, Whereto};

/// How a job stands, in a word.
pub(super) fn standing(job: &Job) -> &'static str {
    job.standing().name()
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

/// Whether whoever handles the letters tells what became of them.
pub(super) fn is_told(to: &Whereto) -> bool {
    match to {
        Whereto::Usual | Whereto::Retry => true,
        Whereto::Origin | Whereto::Topic(_) => false,
    }
}
