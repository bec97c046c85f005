//! What happened to a letter.

use redrive_core::Timestamp;

use crate::Whole;

/// When it was tried, sent back and buried, in order.
pub(super) fn of(whole: &Whole) -> Vec<(Timestamp, String)> {
    let letter = &whole.letter;
    let mut told = Vec::new();
    if let Some(at) = letter.first_failed_at.filter(|_| letter.history.is_empty()) {
        told.push((at, "failed first".to_owned()));
    }
    for attempt in &letter.history {
        let what = format!("failed, {} {} on {}", attempt.class, attempt.error_type, attempt.instance);
        told.push((Timestamp::from_millis(attempt.at), what));
    }
    if let Some(at) = letter.replayed_at {
        let job = letter.replay.as_deref().unwrap_or("?");
        told.push((at, format!("sent back by {job}")));
    }
    if let Some(at) = letter.buried_at {
        told.push((at, "became a letter".to_owned()));
    }
    told.sort_by_key(|(at, _)| *at);
    told
}
