//! A dead letter as it is sent back: the record as it was, and what is still to be known of it.

use bytes::Bytes;
use redrive_core::headers::{Headers, Name, Trail};
use redrive_core::{Origin, Record, Timestamp};

/// A dead letter on its way back to the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where the record was first consumed: it is handed to the handler as that.
    pub origin: Origin,
    /// The timestamp it had there.
    pub timestamp: Option<Timestamp>,
    /// Its key as it was produced.
    pub key: Option<Bytes>,
    /// Its value; none where there is only a pointer, too.
    pub value: Option<Bytes>,
    /// The user's headers, in order.
    pub headers: Headers,
    /// Its business key.
    pub lane: Option<Bytes>,
    /// Where the value is, if the letter had no room for it.
    pub pointer: Option<Origin>,
    /// How often it was sent back before: as it says itself, or as a state says that knows of later times, whichever
    /// is more. One that is sent back with a number that was used is taken for the same.
    pub replays: u32,
}

/// A record that is no dead letter of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} cannot be sent back to a shelf: {why}; send it to its original topic instead")]
pub struct NotOurs {
    /// Where it stands.
    pub at: Origin,
    /// What is missing.
    pub why: String,
}

impl Letter {
    /// A record of a topic of dead letters that Redrive wrote.
    pub fn read(record: &Record) -> Result<Self, NotOurs> {
        let not_ours = |why: String| NotOurs { at: record.at.clone(), why };
        let trail = Trail::read(&record.headers).map_err(|error| not_ours(error.to_string()))?;
        let origin =
            trail.origin.ok_or_else(|| not_ours("it does not say where it was consumed".to_owned()))?;
        // Where it is filed under its origin, and no other key is told, it had none.
        let own = record.key.clone().filter(|key| *key != origin.to_string());
        Ok(Self {
            origin,
            timestamp: trail.origin_timestamp,
            key: trail.key.or(own),
            value: record.value.clone(),
            headers: record.headers.without_ours(),
            lane: trail.lane,
            pointer: trail.pointer,
            replays: trail.replays.unwrap_or(0),
        })
    }
}

/// Puts on a record what says that a job sent it back to a topic: which job and the letter's number there, how
/// often it was sent back, this time included, and when. Workers of `group`, or of any if none is given, report
/// what becomes of it.
pub fn mark(
    headers: &mut Headers,
    (job, number): (&str, u64),
    replays: u32,
    at: Timestamp,
    group: Option<&str>,
) {
    headers.set(Name::Replay.as_str(), format!("{job}/{number}"));
    headers.set(Name::Replays.as_str(), replays.to_string());
    headers.set(Name::ReplayedAt.as_str(), at.to_string());
    if let Some(group) = group {
        headers.set(Name::Group.as_str(), group.to_owned());
    }
}
