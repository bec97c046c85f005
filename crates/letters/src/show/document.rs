//! A whole letter as JSON.

use redrive_core::Origin;
use serde_json::{Value, json};

use super::{Event, Shown};
use crate::export::{self, moment};

/// Everything about a letter as JSON.
pub(super) fn document(shown: &Shown) -> Value {
    let (letter, record) = (&shown.whole.letter, &shown.whole.record);
    let text = |origin: Option<&Origin>| origin.map(ToString::to_string);
    let (replay, replayed_at) = shown.last_replay();
    let mut value = json!({
        "id": letter.at.to_string(),
        "dialect": letter.dialect.name(),
        "state": shown.summary.as_ref().map(|letter| letter.state.name()),
        "job": shown.summary.as_ref().and_then(|letter| letter.job.clone()),
        "outcome": shown.summary.as_ref().and_then(|letter| Some(letter.outcome?.name())),
        "failure": letter.fingerprint().to_string(),
        "time": moment(letter.time()),
        "time_ms": letter.time().millis(),
        "source": {
            "topic": letter.source.topic,
            "partition": letter.source.partition,
            "offset": letter.source.offset,
            "timestamp": letter.source.timestamp.map(moment),
        },
        "group": letter.group,
        "class": letter.class.map(redrive_core::Class::name),
        "reason": letter.reason.map(|reason| reason.to_string()),
        "error_type": letter.error_type,
        "error_message": letter.message,
        "error_chain": letter.chain,
        "error_stack": letter.stack,
        "attempts": letter.attempts,
        "history": letter.history,
        "leader": text(letter.leader.as_ref()),
        "service": letter.service,
        "instance": letter.instance,
        "handler": letter.handler,
        "content_type": letter.content_type,
        "replays": shown.replays(),
        "replay": replay,
        "replayed_at": replayed_at.map(moment),
        "pointer": text(letter.pointer.as_ref()),
        "pointer_expires": letter.pointer_expires.map(moment),
        "tombstone": letter.is_tombstone(),
        "size": letter.payload,
        "problems": letter.problems,
    });
    let timeline = shown.timeline().into_iter();
    let event =
        |event: Event| json!({ "at": moment(event.at), "kind": event.kind.name(), "what": event.what });
    value["timeline"] = timeline.map(event).collect();
    let links = shown.links.iter().map(|(name, address)| (name.clone(), Value::from(address.as_str())));
    value["links"] = Value::Object(links.collect());
    for (name, letters) in
        [("followers", &shown.followers), ("same_lane", &shown.lane), ("same_error", &shown.same)]
    {
        value[name] = letters.iter().map(|letter| letter.at.to_string()).collect();
    }
    export::put(&mut value, "key", letter.key.as_deref());
    export::put(&mut value, "lane", letter.lane.as_deref());
    let headers = record.headers.iter().map(|header| {
        let mut one = json!({ "name": header.name });
        export::put(&mut one, "value", header.value.as_deref());
        one
    });
    value["headers"] = headers.collect();
    match &shown.payload {
        Ok(payload) => export::put(&mut value, "payload", payload.as_deref()),
        Err(why) => value["payload_missing"] = why.as_str().into(),
    }
    value
}
