//! Makes of a letter what is sent: the record as it was, with its own key and its user's headers, and who sent it
//! back, how often and when. Plain data in, plain data out.

use bytes::Bytes;
use redrive::replay as back;
use redrive_core::headers::{Headers, Name};
use redrive_core::{Origin, Record, Timestamp};
use redrive_kafka::Outgoing;

use super::route::{Candidate, Route, Routes, Why};
use crate::Dialect;
use crate::jobs::JobId;
use crate::letter::Letter;

/// What is known of a letter that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) candidate: Candidate,
    /// Its original key.
    pub(super) key: Option<Bytes>,
    /// Where its payload is, if it is not in it.
    pub(super) pointer: Option<Origin>,
}

impl Known {
    /// Of a record of a letter topic. Of a letter of ours only what is needed is read: the story of its failures
    /// is not sent on.
    pub(super) fn of(record: &Record) -> Self {
        let dialect = Dialect::of(&record.headers);
        if dialect != Dialect::Redrive {
            let letter = Letter::read(record);
            let (key, pointer) = (letter.key.clone(), letter.pointer.clone());
            return Self { candidate: Candidate::of(&letter), key, pointer };
        }
        let text = |name: Name| record.headers.text(name.as_str());
        // Where it is filed under its origin, and no other key is told, it had none.
        let own = record.key.as_ref().filter(|key| record.headers.last(Name::Origin.as_str()) != Some(key));
        let key = record.headers.last(Name::Key.as_str()).or(own).cloned();
        let origin: Option<Origin> = text(Name::Origin).and_then(|origin| origin.parse().ok());
        let candidate = Candidate {
            at: record.at.clone(),
            dialect,
            source: origin.as_ref().map(|origin| (origin.topic.clone(), Some(origin.partition))),
            origin,
            group: text(Name::Group).map(ToOwned::to_owned),
            replays: text(Name::Replays).and_then(|replays| replays.parse().ok()).unwrap_or(0),
            others: Vec::new(),
            is_empty: false,
            leaders: Vec::new(),
        };
        Self { candidate, key, pointer: text(Name::Pointer).and_then(|pointer| pointer.parse().ok()) }
    }
}

/// The job that sends a letter, its number there, and the time.
pub(super) struct Sending<'a> {
    pub(super) job: &'a JobId,
    pub(super) number: u64,
    pub(super) at: Timestamp,
}

/// What is sent of a letter. Where it only points to its record, that is `original`: its key, headers and value are
/// sent, since the letter may have none of them.
pub(super) fn outgoing(
    known: &Known,
    (record, original): (&Record, Option<&Record>),
    routes: &Routes,
    sending: &Sending<'_>,
) -> Result<Outgoing, Why> {
    let Known { candidate, key, pointer } = known;
    let route = routes.route(candidate)?;
    let headers = match original {
        // What others put on the record before it was consumed is the user's.
        Some(original) => Dialect::Unknown.strip(&original.headers),
        None => candidate.dialect.strip(&record.headers),
    };
    let (key, value) = match original {
        Some(original) => (&original.key, &original.value),
        None => (key, &record.value),
    };
    let topic = route.topic().clone();
    let partition = routes.partition(&route, candidate);
    match route {
        Route::Shelf { shelf, group } => {
            let letter = back::Letter {
                origin: candidate.origin.clone().ok_or(Why::NoOrigin)?,
                timestamp: number(record, Name::OriginTimestamp).map(Timestamp::from_millis),
                key: key.clone(),
                // On the shelf, too, a record may wait as a pointer.
                value: value.clone().filter(|_| pointer.is_none()),
                headers,
                lane: record.headers.last(Name::Lane.as_str()).cloned(),
                pointer: pointer.clone(),
                replays: candidate.replays,
            };
            let shelf = back::Shelf::named(shelf, &group);
            Ok(shelf.replay(&letter, sending.job.as_str(), sending.number, sending.at))
        }
        Route::Origin(_) | Route::ByKey(_) | Route::Topic(_) => {
            let headers = marked(headers, candidate, sending);
            // The time is that of sending: at its own, an old record might be removed at once.
            Ok(Outgoing {
                topic,
                partition,
                timestamp: None,
                key: key.clone(),
                value: value.clone(),
                headers,
            })
        }
    }
}

fn number(record: &Record, name: Name) -> Option<i64> {
    record.headers.text(name.as_str())?.parse().ok()
}

/// The user's headers, and who sent it back. A group that is known is named: only its worker tells what became
/// of the record, where others consume the topic, too.
fn marked(mut headers: Headers, letter: &Candidate, sending: &Sending<'_>) -> Headers {
    let group = letter.group.as_deref().filter(|_| letter.dialect == Dialect::Redrive);
    let replays = letter.replays.saturating_add(1);
    back::mark(&mut headers, (sending.job.as_str(), sending.number), replays, sending.at, group);
    headers
}
