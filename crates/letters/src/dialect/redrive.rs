//! Redrive's own letters.

use std::borrow::Cow;

use redrive_core::headers::{Headers, Name, Trail};

use super::values::lossy;
use crate::letter::Letter;

/// The types of the wrappers with which a handler says the class of an error.
const WRAPPERS: [&str; 4] =
    ["redrive::Permanent", "redrive::Transient", "redrive::Outage", "redrive::NotReady"];

/// What only a letter has: a record that was sent back has neither.
pub(super) fn marks(name: &str) -> bool {
    matches!(Name::of(name), Some(Name::Reason | Name::BuriedAt | Name::Origin))
}

pub(super) fn read(headers: &Headers, letter: &mut Letter) {
    let trail = lenient(headers, &mut letter.problems);
    let origin = trail.origin;
    // Where a letter topic is compacted, letters are filed under their origin.
    let key = letter.key.as_deref().filter(|key| key.contains(&b'/'));
    let is_filed = origin.as_ref().zip(key).is_some_and(|(origin, key)| key == origin.to_string().as_bytes());
    if is_filed || trail.key.is_some() {
        letter.filed_under = std::mem::replace(&mut letter.key, trail.key);
    }
    if let Some(origin) = origin {
        letter.source.topic = Some(origin.topic.as_str().to_owned());
        letter.source.partition = Some(origin.partition);
        letter.source.offset = Some(origin.offset);
    }
    letter.source.timestamp = trail.origin_timestamp;
    letter.group = trail.group;
    letter.lane = trail.lane;
    letter.class = trail.class;
    letter.reason = trail.reason;
    // A wrapper says a class; what it wraps is what a person looks for.
    let wrapped = trail.error_chain.iter().find(|link| !WRAPPERS.contains(&link.error_type.as_str()));
    let is_wrapped = trail.error_type.as_deref().is_some_and(|name| WRAPPERS.contains(&name));
    (letter.error_type, letter.message) = match wrapped.filter(|_| is_wrapped) {
        Some(link) => (Some(link.error_type.clone()), Some(link.message.clone())),
        None => (trail.error_type, trail.error_message),
    };
    letter.chain = trail.error_chain;
    letter.stack = trail.error_stack;
    letter.attempts = trail.attempt;
    letter.history = trail.history;
    letter.first_failed_at = trail.first_failed_at;
    letter.buried_at = trail.buried_at;
    letter.leader = trail.leader;
    letter.service = trail.service;
    letter.instance = trail.instance;
    letter.handler = trail.handler;
    letter.content_type = trail.content_type;
    letter.replay = trail.replay;
    letter.replays = trail.replays.unwrap_or(0);
    letter.pointer = trail.pointer;
    letter.pointer_expires = trail.pointer_expires;
}

/// The trail without what cannot be read of it.
fn lenient(headers: &Headers, problems: &mut Vec<String>) -> Trail {
    let mut headers = Cow::Borrowed(headers);
    loop {
        let bad = match Trail::read(&headers) {
            Ok(trail) => return trail,
            Err(bad) => bad,
        };
        problems.push(bad.to_string());
        let (name, headers) = (bad.name.as_str(), headers.to_mut());
        let text =
            headers.last(name).filter(|value| std::str::from_utf8(value).is_err()).map(|value| lossy(value));
        // A text is better with replacements than not there.
        match (bad.name, text) {
            (
                Name::Group
                | Name::ErrorType
                | Name::ErrorMessage
                | Name::ErrorStack
                | Name::Service
                | Name::Instance
                | Name::Handler
                | Name::ContentType
                | Name::Replay
                | Name::Signature,
                Some(text),
            ) => headers.set(name, text),
            _ => headers.remove(name),
        }
    }
}
