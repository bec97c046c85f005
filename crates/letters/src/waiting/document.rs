//! Waiting records, closures and orders as JSON.

use redrive::delayed::{Answer, Closure, Counts, Deed, Delayed, Order, Standing, Verdict};
use redrive_core::{Class, Timestamp};
use serde_json::{Value, json};

use crate::export::moment;
use crate::told;

/// As text where it is text, otherwise in digits under another name.
pub fn put(value: &mut Value, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => value[name] = Value::Null,
        Some((Ok(text), _)) => value[name] = text.into(),
        Some((Err(_), bytes)) => value[format!("{name}_hex")] = hex(bytes).into(),
    }
}

/// A record that waits.
#[must_use]
pub fn record(record: &Delayed, group: Option<&str>) -> Value {
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
        "due": moment(record.due),
        "due_ms": record.due.millis(),
        "earliest": record.earliest.map(moment),
        "since": record.since.map(moment),
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

/// A lane that is closed.
#[must_use]
pub fn closure(closure: &Closure) -> Value {
    let mut value = json!({ "letter": closure.letter.to_string() });
    put(&mut value, "lane", Some(&closure.lane));
    value
}

/// An order that waits for its answer.
#[must_use]
pub fn order(topic: &str, partition: i32, order: &Order) -> Value {
    let mut value = json!({
        "id": order.id,
        "origin": format!("{topic}/{partition}/{}", order.origin),
        "deed": deed(order.deed),
        "by": order.by,
        "reason": order.reason,
    });
    if let Deed::Reschedule { due } = order.deed {
        value["due"] = moment(Timestamp::from_millis(due)).into();
    }
    value
}

/// What is ordered, in a word.
#[must_use]
pub fn deed(deed: Deed) -> &'static str {
    match deed {
        Deed::Release => "release",
        Deed::Reschedule { .. } => "reschedule",
        Deed::Cancel => "cancel",
        Deed::Resolve => "resolve",
        Deed::Announce { .. } => "announce",
    }
}

/// How many wait.
#[must_use]
pub fn counts(counts: &Counts) -> Value {
    json!({
        "total": counts.total,
        "by_partition": counts.by_partition,
        "due_now": counts.due_now,
        "behind": counts.behind,
        "held": counts.held,
        "cancelled": counts.cancelled,
        "bytes": counts.bytes,
        "oldest": counts.oldest.map(moment),
        "next_due": counts.next_due.map(moment),
    })
}

/// What came of an order: a word for programs, a sentence for people.
#[must_use]
pub fn answer(answer: &Answer, group: &str) -> (&'static str, String) {
    match answer {
        Answer::Said(Verdict::Due { due }) => {
            ("due", format!("due {}", moment(Timestamp::from_millis(*due))))
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
        Answer::Said(Verdict::Replayed) => ("replayed", "sent back: it waits, due now".to_owned()),
        Answer::Said(Verdict::Already) => ("already", "it was sent back before".to_owned()),
        Answer::Said(Verdict::StillWaiting) => {
            ("still-waiting", "it still waits, or is with the handler".to_owned())
        }
        Answer::Said(Verdict::TooLarge) => ("too-large", "it does not fit on the shelf".to_owned()),
        Answer::Said(Verdict::Announced { deadline }) => {
            let until = moment(Timestamp::from_millis(*deadline));
            ("announced", format!("the lane is held until {until}"))
        }
        Answer::Said(Verdict::Taken { deadline }) => {
            let until = moment(Timestamp::from_millis(*deadline));
            ("taken", format!("a replay holds the lane until {until}: wait for it, or cancel it"))
        }
        Answer::Queued => (
            "queued",
            format!("queued: no worker of group {group} runs; it will be carried out when one does"),
        ),
        Answer::Unanswered => {
            ("unanswered", format!("no answer in time: the order stays, and group {group} will carry it out"))
        }
        Answer::NotGiven(error) => ("failed", format!("failed: {}", told(error))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
