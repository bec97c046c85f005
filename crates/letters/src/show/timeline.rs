//! What happened to a letter, in order: before it was one, as it tells itself, and since, as the jobs tell that dealt
//! with it.

use redrive_core::Timestamp;

use crate::Dialect;
use crate::jobs::{Chapter, Kind, Outcome, What, Whereto};
use crate::letter::Letter;

/// Something that happened to a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, by the clock of whoever tells it.
    pub at: Timestamp,
    /// What, in a word.
    pub kind: Happened,
    /// What, for people.
    pub what: String,
}

/// What may happen to a letter, in the order in which it can: of one time, the first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// Its record was written to the topic that was consumed.
    Written,
    /// The handler failed.
    Failed,
    /// Its record became a letter.
    Buried,
    /// It was sent back.
    Sent,
    /// Something became of it since.
    Outcome,
    /// Somebody said that it is dealt with.
    Resolved,
    /// It was deleted.
    Purged,
}

impl Happened {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Failed => "failed",
            Self::Buried => "buried",
            Self::Sent => "sent",
            Self::Outcome => "outcome",
            Self::Resolved => "resolved",
            Self::Purged => "purged",
        }
    }
}

/// What happened to a letter, and what jobs did with it since.
pub(super) fn of(letter: &Letter, chapters: &[Chapter]) -> Vec<Event> {
    let mut told = before(letter);
    sort(&mut told);
    // Whoever writes a letter may have read the clock before the last attempt did: it came after it all the same.
    if let Some(at) = became_one(letter) {
        told.push(Event { at, kind: Happened::Buried, what: "became a letter".to_owned() });
    }
    let mut since: Vec<Event> = chapters.iter().flat_map(|chapter| done(letter, chapter)).collect();
    sort(&mut since);
    told.append(&mut since);
    told
}

fn sort(events: &mut [Event]) {
    events.sort_by_key(|event| (event.at, event.kind));
}

fn before(letter: &Letter) -> Vec<Event> {
    let mut told = Vec::new();
    let mut add = |at, kind, what| told.push(Event { at, kind, what });
    if let Some(at) = letter.source.timestamp {
        let to = match (letter.origin(), &letter.source.topic) {
            (Some(origin), _) => format!(" to {origin}"),
            (None, Some(topic)) => format!(" to {topic}"),
            (None, None) => String::new(),
        };
        add(at, Happened::Written, format!("written{to}"));
    }
    if let Some(at) = letter.first_failed_at.filter(|_| letter.history.is_empty()) {
        add(at, Happened::Failed, "failed first".to_owned());
    }
    for attempt in &letter.history {
        let what = format!("failed, {} {} on {}", attempt.class, attempt.error_type, attempt.instance);
        add(Timestamp::from_millis(attempt.at), Happened::Failed, what);
    }
    if let Some(at) = letter.replayed_at {
        let job = letter.replay.as_deref().unwrap_or("?");
        add(at, Happened::Sent, format!("sent back by {job}"));
    }
    told
}

/// When it became a letter: as it says, or by the time of its own record, unless that is the time of the record that
/// failed.
fn became_one(letter: &Letter) -> Option<Timestamp> {
    let own = letter.timestamp.filter(|at| letter.source.timestamp != Some(*at));
    letter.buried_at.or(own)
}

/// What a job did, and what became of it. Nothing is told before what it came from, whoever has which clock.
fn done(letter: &Letter, chapter: &Chapter) -> Vec<Event> {
    let Some(at) = chapter.done else { return Vec::new() };
    let at = became_one(letter).map_or(at, |became| at.max(became));
    let (by, job) = (&chapter.begun.by, &chapter.job);
    let why = match chapter.begun.reason.as_str() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    let (kind, what) = match chapter.begun.kind {
        Kind::Resolve => (Happened::Resolved, format!("resolved by {by}{why}")),
        Kind::Purge => (Happened::Purged, format!("deleted by {by}{why}")),
        Kind::Erase => (Happened::Purged, format!("erased by {by}{why}")),
        Kind::Replay if !is_left_out(chapter) => {
            (Happened::Sent, format!("sent back by {by} (job {job}) to {}{why}", whereto(letter, chapter)))
        }
        Kind::Replay => (Happened::Sent, format!("to be sent back by {by} (job {job}){why}")),
    };
    let outcomes = chapter.outcomes.iter().map(|outcome| Event {
        at: Timestamp::from_millis(outcome.at).max(at),
        kind: Happened::Outcome,
        what: became(outcome),
    });
    std::iter::once(Event { at, kind, what }).chain(outcomes).collect()
}

fn is_left_out(chapter: &Chapter) -> bool {
    chapter.outcomes.iter().any(|outcome| outcome.what == What::Skipped)
}

fn whereto(letter: &Letter, chapter: &Chapter) -> String {
    let group = letter.group.as_deref().filter(|_| letter.dialect == Dialect::Redrive);
    let home = || letter.source.topic.clone().unwrap_or_else(|| "its original topic".to_owned());
    let is_silent = chapter.begun.silent == Some(chapter.begun.letters);
    match (&chapter.begun.to, group) {
        (Whereto::Topic(topic), _) => topic.to_string(),
        (Whereto::Origin, _) | (Whereto::Usual, None) => home(),
        (Whereto::Usual, Some(_)) if is_silent => home(),
        (Whereto::Usual | Whereto::Retry, Some(group)) => format!("the shelf of {group}"),
        (Whereto::Retry, None) => "the shelf of its group".to_owned(),
    }
}

fn became(outcome: &Outcome) -> String {
    let on = if outcome.by.is_empty() { String::new() } else { format!(" on {}", outcome.by) };
    let why = outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let again = outcome.letter.as_ref().map(|letter| format!(", now {letter}")).unwrap_or_default();
    match outcome.what {
        What::Handled => format!("handled{on}"),
        What::Waiting => format!("failed again{on}, waits to be tried again{why}"),
        What::Buried => format!("failed again{on}, a letter again{again}{why}"),
        What::Dropped => format!("given up by a rule{on}{why}"),
        What::Refused => format!("not taken{on}{why}"),
        What::Skipped => format!("left out{why}"),
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Record;
    use redrive_core::headers::Headers;

    use super::*;
    use crate::jobs::{Begun, Options};

    fn letter(headers: &[(&'static str, &[u8])], timestamp: i64) -> Letter {
        let headers: Headers = headers.iter().map(|(name, value)| (*name, Some(value.to_vec()))).collect();
        let at = "orders.billing.dlq/0/7".parse().unwrap();
        let timestamp = Some(Timestamp::from_millis(timestamp));
        Letter::read(&Record { at, timestamp, key: None, value: None, headers })
    }

    fn chapter(kind: Kind, done: i64, outcomes: &[(What, i64)]) -> Chapter {
        let begun = Begun {
            kind,
            by: "ann".into(),
            reason: "fixed".into(),
            at: 1,
            query: String::new(),
            to: Whereto::Usual,
            letters: 1,
            chunks: 1,
            options: Options::default(),
            ends: std::collections::BTreeMap::new(),
            lanes: Vec::new(),
            announced: None,
            silent: None,
            replays: std::collections::BTreeMap::new(),
            topics: std::collections::BTreeMap::new(),
            cuts: Vec::new(),
            rewrites: Vec::new(),
        };
        let outcome = |(what, at): &(What, i64)| Outcome {
            what: *what,
            at: *at,
            by: "two".into(),
            letter: None,
            why: None,
        };
        let job = "k3f9".parse().unwrap();
        let done = Some(Timestamp::from_millis(done));
        Chapter { job, number: 0, begun, done, outcomes: outcomes.iter().map(outcome).collect() }
    }

    fn told(events: &[Event]) -> Vec<(i64, &str)> {
        events.iter().map(|event| (event.at.millis(), event.what.as_str())).collect()
    }

    #[test]
    fn a_letter_that_was_sent_back_tells_by_whom_where_to_and_what_became_of_it() {
        let letter = letter(
            &[
                ("redrive-origin", b"orders/0/3"),
                ("redrive-group", b"billing"),
                ("redrive-history", br#"[{"at":200,"class":"transient","type":"Timeout","instance":"one"}]"#),
                ("redrive-buried-at", b"199"),
            ],
            199,
        );
        let replay = chapter(Kind::Replay, 150, &[(What::Waiting, 300), (What::Handled, 400)]);
        let resolve = chapter(Kind::Resolve, 400, &[]);
        let expected = [
            (200, "failed, transient Timeout on one"),
            // The clock of whoever buried it was a little behind.
            (199, "became a letter"),
            (199, "sent back by ann (job k3f9) to the shelf of billing: fixed"),
            (300, "failed again on two, waits to be tried again"),
            (400, "handled on two"),
            (400, "resolved by ann: fixed"),
        ];
        assert_eq!(told(&of(&letter, &[replay, resolve])), expected);
    }

    #[test]
    fn letters_of_others_tell_the_times_that_they_carry() {
        let spring = letter(
            &[
                ("kafka_dlt-original-topic", b"orders"),
                ("kafka_dlt-original-partition", &3_i32.to_be_bytes()),
                ("kafka_dlt-original-offset", &9_i64.to_be_bytes()),
                ("kafka_dlt-original-timestamp", &100_i64.to_be_bytes()),
            ],
            250,
        );
        let sent = chapter(Kind::Replay, 300, &[]);
        let expected = [
            (100, "written to orders/3/9"),
            (250, "became a letter"),
            (300, "sent back by ann (job k3f9) to orders: fixed"),
        ];
        assert_eq!(told(&of(&spring, &[sent])), expected);
        let share = letter(&[("__dlq.errors.topic", b"orders"), ("__dlq.errors.group", b"g")], 250);
        assert_eq!(told(&of(&share, &[])), [(250, "became a letter")]);
    }
}
