//! Waiting records, closures and orders in words and in JSON.

use bytes::Bytes;
use redrive::delayed::{Answer, Closure, Counts, Deed, Delayed, Order, Standing, Verdict};
use redrive::{Class, Timestamp};
use serde_json::{Value, json};

use crate::{bytes_text, human, screen, when};

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

/// As text where it is text, otherwise in digits under another name.
pub(super) fn put(value: &mut Value, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => value[name] = Value::Null,
        Some((Ok(text), _)) => value[name] = text.into(),
        Some((Err(_), bytes)) => value[format!("{name}_hex")] = bytes_text::hex(bytes).into(),
    }
}

pub(super) fn record(record: &Delayed, group: Option<&str>) -> Value {
    let (standing, leader, letter) = match record.standing {
        Standing::First => ("first", None, None),
        Standing::Behind { leader } => ("behind", Some(leader), None),
        Standing::Closed { letter } => ("held", None, Some(letter)),
    };
    let mut value = json!({
        "origin": record.origin.to_string(),
        "topic": record.origin.topic.as_str(),
        "partition": record.origin.partition,
        "offset": record.origin.offset,
        "group": group,
        "due": when::shown(record.due),
        "due_ms": record.due.millis(),
        "earliest": record.earliest.map(when::shown),
        "since": record.since.map(when::shown),
        "attempts": record.attempts,
        "replays": record.replays,
        "class": record.class.map(Class::name),
        "error_type": record.error_type.as_deref(),
        "error_message": record.error_message.as_deref(),
        "standing": standing,
        "behind": leader,
        "letter": letter,
        "cancelled": record.cancelled,
        "size": record.size,
        "shelf_offset": record.at,
    });
    put(&mut value, "key", record.key.as_deref());
    put(&mut value, "lane", record.lane.as_deref());
    value
}

pub(super) fn closure(closure: &Closure) -> Value {
    let mut value = json!({ "letter": closure.letter.to_string() });
    put(&mut value, "lane", Some(&closure.lane));
    value
}

pub(super) fn order(topic: &str, partition: i32, order: &Order) -> Value {
    let mut value = json!({
        "id": order.id,
        "origin": format!("{topic}/{partition}/{}", order.origin),
        "deed": deed(order.deed),
        "by": order.by,
        "reason": order.reason,
    });
    if let Deed::Reschedule { due } = order.deed {
        value["due"] = when::shown(Timestamp::from_millis(due)).into();
    }
    value
}

pub(super) fn deed(deed: Deed) -> &'static str {
    match deed {
        Deed::Release => "release",
        Deed::Reschedule { .. } => "reschedule",
        Deed::Cancel => "cancel",
        Deed::Resolve => "resolve",
    }
}

pub(super) fn counts(counts: &Counts) -> Value {
    json!({
        "total": counts.total,
        "by_partition": counts.by_partition,
        "due_now": counts.due_now,
        "behind": counts.behind,
        "held": counts.held,
        "cancelled": counts.cancelled,
        "bytes": counts.bytes,
        "oldest": counts.oldest.map(when::shown),
        "next_due": counts.next_due.map(when::shown),
    })
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

/// What came of an order: a word for programs, a sentence for people.
pub(super) fn answer(answer: &Answer, group: &str) -> (&'static str, String) {
    match answer {
        Answer::Said(Verdict::Due { due }) => {
            ("due", format!("due {}", when::shown(Timestamp::from_millis(*due))))
        }
        Answer::Said(Verdict::Cancelled) => ("cancelled", "cancelled: it becomes a dead letter".to_owned()),
        Answer::Said(Verdict::Opened) => ("opened", "the lane is open".to_owned()),
        Answer::Said(Verdict::TooLate) => {
            ("too-late", "too late: it is with the handler, or on its way there".to_owned())
        }
        Answer::Said(Verdict::Finished) => ("finished", "finished: it does not wait any more".to_owned()),
        Answer::Said(Verdict::Unknown) => {
            ("unknown", "unknown: nothing of that origin waits here".to_owned())
        }
        Answer::Queued => (
            "queued",
            format!("queued: no worker of group {group} runs; it will be carried out when one does"),
        ),
        Answer::Unanswered => {
            ("unanswered", format!("no answer in time: the order stays, and group {group} will carry it out"))
        }
        Answer::NotGiven(error) => ("failed", format!("failed: {}", screen::told(error))),
    }
}
