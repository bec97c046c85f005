//! Waiting records, closures and orders in words.

use bytes::Bytes;
use redrive::Timestamp;
use redrive::delayed::{Counts, Delayed, Standing};

use crate::{bytes_text, human, when};

pub(super) use redrive_letters::waiting::{answer, closure, counts, deed, order, put, record};

pub(super) fn standing(record: &Delayed) -> String {
    match record.standing {
        _ if record.cancelled => "cancelled".to_owned(),
        Standing::First => "first".to_owned(),
        Standing::Behind { leader } => format!("behind {leader}"),
        Standing::Closed { letter } => format!("held by letter {letter}"),
    }
}

pub(super) fn error(record: &Delayed) -> String {
    match (&record.error_type, &record.error_message) {
        (_, Some(message)) => message.to_string(),
        (Some(name), None) => name.to_string(),
        (None, None) => "-".to_owned(),
    }
}

pub(super) fn bytes(bytes: Option<&Bytes>) -> String {
    bytes.map_or("-".to_owned(), |bytes| bytes_text::cut(&bytes_text::line(bytes), 40))
}

/// Everything that is counted, on one line.
pub(super) fn summary(counts: &Counts, now: Timestamp) -> String {
    let mut parts = vec![format!("{} waiting", counts.total), format!("{} due now", counts.due_now)];
    for (number, what) in
        [(counts.behind, "behind another"), (counts.held, "held"), (counts.cancelled, "cancelled")]
    {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    if let Some(oldest) = counts.oldest {
        parts.push(format!("the oldest for {}", human::rough(now.since(oldest))));
    }
    if let Some(next) = counts.next_due {
        parts.push(format!("the next due {}", when::from_now(next, now)));
    }
    parts.join(", ")
}
